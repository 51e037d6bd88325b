"""One micro-batch in the workers and on the driver, as plain Python.

Spark calls it (`streamer.spark`), and so can anything else that has rows and a clock.
"""
