"""Static types: what an environment declares, what fits what, and every error of an expression with its place."""
