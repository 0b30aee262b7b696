"""What callers with permission may do to the server, and what it may cost: bounds on counts and bytes, not on time."""
