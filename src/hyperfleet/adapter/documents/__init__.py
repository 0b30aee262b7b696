"""The YAML of adapter files, as msgspec types: what may be written, and nothing about what it means.

`files` first: the whole documents. An adapter is one file of ours, or the two files of the Go adapter: a deployment
config (`-c`) and a task config (`-t`). Parts have the same types in all of them, so what is ours in addition works in a
task config too. The JSON Schema is made of these types. Only the loader uses them; everything else uses `config`.
"""
