"""What the API tells of itself: every operation as a table, from which the OpenAPI document and the pages are made."""
