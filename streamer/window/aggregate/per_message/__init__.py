"""Parts of a mapping kept up to date message by message, for windows that are decided key by key.

The accumulators beside (`folds`) work on columns of many groups, which suits windows that close
together. Here each window has values of its own, which every message may change and which may be
asked for after every message: plain values, never changed in place as far as can be told from
outside, so that what a window came to at some message can be kept by holding on to it.
"""
