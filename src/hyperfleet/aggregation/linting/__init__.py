"""Analyse a policy by trial: find rules that are almost surely wrong, and draw its phases."""
