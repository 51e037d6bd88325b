"""What generated code calls: operators, paths, conversions. Nothing here knows the tree."""
