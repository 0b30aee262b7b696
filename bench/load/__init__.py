"""Measuring a running server: a fleet to load it with, the load generators, and what processes use."""
