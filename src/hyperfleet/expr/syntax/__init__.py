"""From source text to a syntax tree and back: lexer, literals, parser, printer."""
