"""Load policies from YAML: the document, its checks, compiling its rules, the loader."""
