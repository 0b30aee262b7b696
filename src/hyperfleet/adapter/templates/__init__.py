"""Templates of adapter files: Go's text/template with the functions of the Go adapter.

    template = parse_text("{{ .clusterId | lower }}-{{ date \"2006\" now }}").template
    rendered = template.render({"clusterId": "A1"}, now)

A file per stage: `lexer` cuts a text into pieces, `commands` and `parser` make a tree of `nodes`, `evaluator` renders
it with `functions`; `variables` finds what a template reads, `trees` applies templates to structures. All faults of a
text are found at once, each with its place, and rendering is bounded. Nothing raises: faults are results.

What differs from Go, on purpose: whole and other numbers compare by value and print as they are; where `printf` would
write `%!d(string=x)` there is a fault; a wrong number of arguments is found when the template is read; `slice` does not
cut a character in two; `define`, `template`, `block`, `call` and `js` are refused.
"""

from hyperfleet.adapter.templates.template import ParsedTemplate, RenderedText, TextTemplate, parse_text, variables_of
from hyperfleet.adapter.templates.trees import (
    ParsedTree,
    RenderedTree,
    TemplateTree,
    TreeFault,
    TreeVariable,
    parse_tree,
    place_tree_faults,
    render_tree,
    render_yaml,
)
from hyperfleet.adapter.templates.variables import ITEM, VariableUse

__all__ = [
    "ITEM",
    "ParsedTemplate",
    "ParsedTree",
    "RenderedText",
    "RenderedTree",
    "TemplateTree",
    "TextTemplate",
    "TreeFault",
    "TreeVariable",
    "VariableUse",
    "parse_text",
    "parse_tree",
    "place_tree_faults",
    "render_tree",
    "render_yaml",
    "variables_of",
]
