"""From a checked tree to a Python code object: folding of constants, emission of syntax trees, never of text."""
