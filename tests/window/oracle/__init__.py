"""The rules of windows said again, one kind a file: plain, slow, and sharing nothing with streamer.

Where the rules leave something open, a comment that begins with "Decided:" says what is taken here.
"""
