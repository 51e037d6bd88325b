"""Functions that generated code calls: operators, paths, conversions; none knows the tree."""
