"""Times, durations, zones and layouts with nanoseconds."""
