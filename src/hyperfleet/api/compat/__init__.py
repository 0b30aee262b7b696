"""The API of the existing Go clients, below `/compat`: a view of the same model. It stores nothing itself.

`docs/compat.md` lists what is the same as in the original and what is deliberately different.
"""
