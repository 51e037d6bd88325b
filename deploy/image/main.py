"""The program as a Python file, which is what spark-submit and the Spark operator start."""

from streamer.cli.main import main

main()
