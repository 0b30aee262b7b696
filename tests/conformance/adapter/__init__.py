"""Templates with the answers of Go's own text/template.

`template_cases` has the templates and the variables, `original/` is the Go program that renders them, and `record`
runs it and writes `templates.json`: `make record-template-cases`. `contract-block.yaml` has the expressions that the
contract prints, with what they give.
"""
