"""The domain values: immutable, without clock or I/O."""
