"""From YAML text to policies: the document as people write it, its checks, its compilation, the loader."""
