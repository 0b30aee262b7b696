"""The OpenAPI document as one page of HTML, without scripts or external resources."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote, urlencode

from hyperfleet.api.description.operations import Operation, Parameter, Schema

_STYLE: Final = """\
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code,pre{font:14px/1.4 ui-monospace,monospace}
pre{overflow-x:auto;padding:.75rem;border:1px solid #8886;border-radius:6px}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #8884}
details{margin:.5rem 0}
summary{cursor:pointer}
.method{display:inline-block;min-width:4.5rem;font-weight:600}
"""


def render(operations: Sequence[Operation], document: Schema, server: str) -> str:
    """Return the page; `server` is the base URL of the examples."""
    info = document["info"]
    paragraphs = "".join(f"<p>{_inline(text)}</p>" for text in info["description"].strip().split("\n\n"))
    return "".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style></head><body>",
            f"<h1>{escape(info['title'])} API {escape(info['version'])}</h1>{paragraphs}",
            '<p>For programs: <a href="/openapi.json">/openapi.json</a>, ',
            'and about events: <a href="/asyncapi.json">/asyncapi.json</a>. ',
            'What errors mean: <a href="/problems">/problems</a>.</p>',
            *_render_sections(operations, document, server),
            "<h2>Shapes</h2>",
            *(_render_shape(name, shape) for name, shape in document["components"]["schemas"].items()),
            "</body></html>",
        )
    )


def _render_sections(operations: Sequence[Operation], document: Schema, server: str) -> Iterator[str]:
    by_tag = sorted(operations, key=lambda each: [tag["name"] for tag in document["tags"]].index(each.tag))
    for tag, group in groupby(by_tag, key=lambda each: each.tag):
        yield f"<h2>{escape(tag)}</h2>"
        for operation in group:
            yield _render_operation(operation, document["paths"][operation.path][operation.method], server)


def _render_operation(operation: Operation, described: Schema, server: str) -> str:
    is_guarded = "security" in described
    return "".join(
        (
            f'<details id="{escape(operation.id)}"><summary><code class="method">{operation.method.upper()}</code> ',
            f"<code>{escape(operation.path)}</code> {_inline(operation.summary)}</summary>",
            f"<p>{_inline(operation.description)}</p>" if operation.description else "",
            f"<p>Needs a token with the role {operation.role}.</p>" if is_guarded else "",
            _render_parameters(operation.parameters),
            _render_body(described.get("requestBody", {}).get("content", {})),
            _render_responses(described["responses"]),
            f"<pre>{escape(curl(operation, server, is_guarded=is_guarded))}</pre></details>",
        )
    )


def _render_parameters(parameters: Iterable[Parameter]) -> str:
    rows = [(f"<code>{escape(each.name)}</code>", each.location, _inline(each.description)) for each in parameters]
    return _table(("parameter", "in", "meaning"), rows) if rows else ""


def _render_body(content: Mapping[str, Schema]) -> str:
    if not content:
        return ""
    types = " or ".join(f"<code>{escape(each)}</code>" for each in content)
    (schema, *_) = (each["schema"] for each in content.values())
    return f"<p>Body: {_name_schema(schema)} as {types}</p>"


def _render_responses(responses: Mapping[str, Schema]) -> str:
    rows = []
    for status, response in sorted(responses.items()):
        schemas = [content["schema"] for content in response.get("content", {}).values()]
        rows.append((status, ", ".join(map(_name_schema, schemas)), _inline(response["description"])))
    return _table(("status", "shape", "when"), rows)


def _name_schema(schema: Schema) -> str:
    """Name a schema, with a link if it is a component."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_name_schema(each) for each in schema["anyOf"])
    type_ = schema.get("type", "anything")
    return escape(" or ".join(type_) if isinstance(type_, list) else type_)


def _render_shape(name: str, shape: Schema) -> str:
    required = shape.get("required", ())
    rows = [
        (
            f"<code>{escape(key)}</code>{'' if key in required else ' (optional)'}",
            _describe_type(schema),
            _inline(schema.get("description", "")),
        )
        for key, schema in shape.get("properties", {}).items()
    ]
    text = f"<p>{_inline(shape.get('description', ''))}</p>"
    return f'<h3 id="{escape(name)}">{escape(name)}</h3>{text}{_table(("field", "type", "meaning"), rows)}'


def _describe_type(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if "items" in schema:
        return f"list of {_name_schema(schema['items'])}"
    return _name_schema(schema)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table of HTML cells."""
    header = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{header}</tr>{body}</table>"


def _inline(text: str) -> str:
    """Write text as HTML; text in backticks becomes code."""
    parts = escape(text).replace("\n\n", "<br>").split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def curl(operation: Operation, server: str, *, is_guarded: bool = False) -> str:
    """Return the command that sends the example of an operation; with authentication, with `$TOKEN`."""
    command = 'curl --oauth2-bearer "$TOKEN" ' if is_guarded else "curl "  # not quoted, so that the shell expands it
    words = ["--silent", "--show-error"]
    if operation.method != "get":
        words += ["--request", operation.method.upper()]
    for parameter in operation.parameters:
        if parameter.location == "header" and parameter.is_required:
            words += ["--header", f"{parameter.name}: {parameter.example}"]
    if operation.body is not None:
        words += ["--header", f"Content-Type: {operation.body.content_types[0]}"]
        words += ["--data", json.dumps(operation.body.example)]
    return command + shlex.join([*words, server.rstrip("/") + _example_path(operation)])


def _example_path(operation: Operation) -> str:
    """Return the path with example values, and the first query parameter that has one."""
    path = operation.path
    query: dict[str, Any] = {}
    for parameter in operation.parameters:
        if parameter.location == "path":
            path = path.replace(f"{{{parameter.name}}}", quote(str(parameter.example)))
        elif parameter.location == "query" and parameter.example is not None and not query:
            query[parameter.name] = parameter.example
    return f"{path}?{urlencode(query)}" if query else path
