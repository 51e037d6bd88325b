"""What runs in the workers and on the driver for every micro-batch, as plain Python.

Spark calls it (`streamer.spark`), and so can anything else that has rows and a clock.
"""
