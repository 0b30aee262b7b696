"""What commands write to stdout: tables for people, documents for programs, and values picked from documents.

In reading order: `formats` parses the values of `-o`, `printer` writes resources in the chosen format, `table` and
`tree` lay out lines, `columns` has the columns of each kind, `jsonpath` picks values from documents, `documents` writes
JSON and YAML, `ages` and `colours` are what their names say. Nothing here sends a request or reads a clock.
"""
