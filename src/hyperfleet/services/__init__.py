"""The use cases of the system, in terms of values; stores and clocks are passed in."""
