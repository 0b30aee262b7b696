"""What the system does: each service is one story, told with values; stores and clocks are handed in."""
