"""The REST API: requests in, problem documents and stored answers out. Decides nothing about a status."""
