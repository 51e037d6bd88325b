"""Writes the parser's tables after a change of the grammar: `python -m streamer.bloblang`."""

from streamer.bloblang import parser_tables

if __name__ == "__main__" and parser_tables.read_stored_tables() is None:
    parser_tables.write_tables()
