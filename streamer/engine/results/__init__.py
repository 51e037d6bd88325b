"""Results of windows, kept for as long as `retention` says, to be asked for.

What is here knows neither the stream nor Spark: rows of results come in, one micro-batch after
another (`store`), are put in order behind the stream's back (`compaction`), and are read by anybody
at any time (`query`, `statement`). Everything lies in one directory (`make_layout`).
"""
