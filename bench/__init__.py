"""Measurements. Each claim about speed in the docs is a ratio or figure printed by one of these, in one run."""
