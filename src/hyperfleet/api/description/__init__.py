"""The description of the API: every operation in a table, from which the OpenAPI document and the pages are made."""
