"""What commands write on stdout: tables for people, documents for programs, and what a person picks out of them.

In the order a newcomer meets it: `formats` knows the values of `-o`, `printer` writes resources in the format that was
chosen, `table` and `tree` lay lines out, `columns` has the columns of each kind, `jsonpath` picks values from
documents, `documents` writes JSON and YAML, `ages` and `colours` are what their names say. Nothing here asks the
server anything or reads a clock.
"""
