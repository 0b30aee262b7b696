"""What the store port promises, asked of every backend: a test here runs on memory, SQLite and PostgreSQL alike."""
