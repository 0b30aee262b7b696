"""Events: what the relay makes of the log, how it travels, and who handles it. See docs/adr/0027."""
