"""Documents to a config: every text parsed, every name checked, every problem collected with its place.

`names` knows which variables exist at a place, `compiler` turns single texts into templates and expressions, and one
module per section of the file uses it. Sections are compiled in the order in which an event runs through them, so a
name that is defined later is a problem. `loading` puts the parts together.
"""
