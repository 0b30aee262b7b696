"""The dialect of the existing Go clients, below `/compat`: a presenter over the one model, which stores nothing itself.

What is the same and what is deliberately different is told in `docs/compat.md`.
"""
