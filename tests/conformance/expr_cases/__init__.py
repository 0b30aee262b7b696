"""Expressions of our own making with the answers of the original, for a clone that has nothing beside it.

`generator` writes the expressions from `grammar` and `chosen`, `original/` is the Go program that answers them,
`record` runs both and writes `cases.jsonl.gz`, and `worlds` holds the environments. `tests.conformance.expr` judges.
"""
