"""The REST API: reads requests, sends stored answers and problem documents. It does not compute statuses."""
