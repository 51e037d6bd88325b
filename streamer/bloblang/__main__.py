"""Writes the parser's tables after a change of the grammar: `python -m streamer.bloblang`."""

from streamer.bloblang import tables

if __name__ == "__main__":
    tables.write()
