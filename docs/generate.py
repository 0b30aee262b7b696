"""Write the generated parts of the docs and the JSON Schemas (`make docs`); tests check they are current."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from docs import walkthrough
from docs.cli_pages import write_cli_pages
from hyperfleet import __version__
from hyperfleet.adapter.documents.files import adapter_schema
from hyperfleet.aggregation.loading.policy_document import policy_schema
from hyperfleet.aggregation.templates import VARIABLES
from hyperfleet.api.metrics import list_families
from hyperfleet.api.problems import CATALOGUE
from hyperfleet.cli.serve import FLAGS
from hyperfleet.events.describing import describe_events, event_schemas
from hyperfleet.sentinel.rule_file import sentinel_schema
from hyperfleet.settings import SETTINGS, settings_schema

ROOT = Path(__file__).parent.parent
SCHEMA = ROOT / "src/hyperfleet/policies/policy.schema.json"
POLICY_GUIDE = ROOT / "docs/policy.md"
SETTINGS_SCHEMA = ROOT / "docs/settings.schema.json"
ADAPTER_SCHEMA = ROOT / "docs/adapter.schema.json"
SENTINEL_SCHEMA = ROOT / "docs/sentinel.schema.json"
SETTINGS_GUIDE = ROOT / "docs/settings.md"
API_GUIDE = ROOT / "docs/api.md"
CHART_SCHEMA = ROOT / "deploy/helm/hyperfleet/values.schema.json"
# What the chart has values of its own for, as other parts of it must agree; its `settings` takes every other one.
CHART_OWNS = (
    "listen",
    "insecureListen",
    "database",
    "policy",
    "specSchemas",
    "drainTimeout",
    "auth",
    "tls",
    "sentinel",
)
# What the chart installs for Prometheus and Grafana; helm reads nothing outside of a chart.
CHART_COPIES = {
    ROOT / "deploy/helm/hyperfleet/observability" / source.name: source
    for source in (
        *sorted((ROOT / "deploy/prometheus").glob("*.yaml")),
        *sorted((ROOT / "deploy/grafana").glob("*.json")),
    )
}
EVENT_SCHEMAS = ROOT / "src/hyperfleet/events/schemas"
EVENT_GUIDE = ROOT / "docs/events.md"
OPERATIONS_GUIDE = ROOT / "docs/operations.md"


def schema_text() -> str:
    """Return the JSON Schema of policies as it ships."""
    return _write_schema(policy_schema())


def policy_guide_text() -> str:
    """Return docs/policy.md with the table of template variables filled in."""
    rows = "".join(f"| `{{{{.{name}}}}}` | {meaning} |\n" for name, meaning in VARIABLES.items())
    return _fill_in(POLICY_GUIDE, "template variables", f"| variable | meaning |\n|---|---|\n{rows}")


def settings_schema_text() -> str:
    """Return the JSON Schema of settings files."""
    return _write_schema(settings_schema())


def sentinel_schema_text() -> str:
    """Return the JSON Schema of files with rules of a sentinel."""
    return _write_schema(sentinel_schema())


def adapter_schema_text() -> str:
    """Return the JSON Schema of adapter files."""
    return _write_schema(adapter_schema())


def settings_guide_text() -> str:
    """Return docs/settings.md with the table of settings filled in."""
    flags = {key: flag for flag, key in FLAGS.items()}
    rows = "".join(
        f"| `{each.key}` | `{each.variable}` | {_code(flags.get(each.key, ''))} | `{each.write_default()}` "
        f"| {each.description} |\n"
        for each in SETTINGS
    )
    head = "| in a file | in the environment | flag | default | meaning |\n|---|---|---|---|---|\n"
    return _fill_in(SETTINGS_GUIDE, "settings", head + rows)


def chart_schema_text() -> str:
    """Return the JSON Schema of the chart's values, in which `settings` is what a settings file may have."""
    schema = msgspec.json.decode(CHART_SCHEMA.read_bytes())
    schema["$defs"] = definitions = settings_schema()["$defs"]
    for key in CHART_OWNS:
        definitions["Settings"]["properties"].pop(key, None)
    return _write_schema(schema)


def api_guide_text() -> str:
    """Return docs/api.md with the table of problem codes filled in."""
    rows = "".join(
        f"| `{code}` | {entry.status} | {entry.title} | {entry.remedy} |\n" for code, entry in CATALOGUE.items()
    )
    head = "| code | status | meaning | what to do |\n|---|---|---|---|\n"
    return _fill_in(API_GUIDE, "problem codes", head + rows)


def operations_guide_text() -> str:
    """Return docs/operations.md with the table of metrics filled in."""
    rows = "".join(
        f"| `{each.name}` | {each.kind} | {', '.join(f'`{label}`' for label in each.labels)} | {each.help} |\n"
        for each in list_families()
    )
    head = "| metric | type | labels | what it tells |\n|---|---|---|---|\n"
    return _fill_in(OPERATIONS_GUIDE, "metrics", head + rows)


def event_schema_texts() -> dict[Path, str]:
    """Return the JSON Schemas of events and the AsyncAPI document with the default names of topics, by file."""
    schemas = {EVENT_SCHEMAS / name: _write_schema(schema) for name, schema in event_schemas().items()}
    return {**schemas, EVENT_SCHEMAS / "asyncapi.json": _write_schema(describe_events(__version__))}


def event_guide_text() -> str:
    """Return docs/events.md with the tables of attributes and data filled in."""
    schemas = {name.partition(".")[0]: schema for name, schema in event_schemas().items()}
    text = EVENT_GUIDE.read_text()
    for what, name in (("attributes", "cloud-event"), ("cluster events", "cluster-event"), ("status", "status-event")):
        text = _replace(text, what, _describe_fields(schemas[name]))
    return text


def _describe_fields(schema: dict[str, Any]) -> str:
    """Return a table of the fields of a schema; those of objects within it are below them."""
    rows = _field_rows(schema["$defs"], schema["$ref"], "")
    return "| field | always | meaning |\n|---|---|---|\n" + "".join(rows)


def _field_rows(definitions: dict[str, Any], reference: str, prefix: str) -> Iterator[str]:
    shape = definitions[reference.rpartition("/")[2]]
    for name, field in shape["properties"].items():
        items = field.get("items", {})
        below = field.get("$ref") or items.get("$ref") or ""
        meaning = field.get("description") or (definitions[below.rpartition("/")[2]]["description"] if below else "")
        yield f"| `{prefix}{name}` | {'yes' if name in shape.get('required', ()) else ''} | {meaning} |\n"
        if below:
            yield from _field_rows(definitions, below, f"{prefix}{name}{'[]' if items else ''}.")


def _fill_in(page: Path, what: str, table: str) -> str:
    """Return a page with a table in the place that is kept for it."""
    return _replace(page.read_text(), what, table)


def _replace(text: str, what: str, table: str) -> str:
    begin, end = f"<!-- generated: {what} -->", "<!-- end -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{table}{end}", text, flags=re.DOTALL)


def _write_schema(schema: object) -> str:
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def main() -> None:
    """Write all of them."""
    SCHEMA.write_text(schema_text())
    POLICY_GUIDE.write_text(policy_guide_text())
    SETTINGS_SCHEMA.write_text(settings_schema_text())
    SENTINEL_SCHEMA.write_text(sentinel_schema_text())
    ADAPTER_SCHEMA.write_text(adapter_schema_text())
    SETTINGS_GUIDE.write_text(settings_guide_text())
    API_GUIDE.write_text(api_guide_text())
    CHART_SCHEMA.write_text(chart_schema_text())
    EVENT_SCHEMAS.mkdir(exist_ok=True)
    for file, text in event_schema_texts().items():
        file.write_text(text)
    EVENT_GUIDE.write_text(event_guide_text())
    write_cli_pages()
    walkthrough.PAGE.write_text(walkthrough.walkthrough_text())
    OPERATIONS_GUIDE.write_text(operations_guide_text())
    for copy, source in CHART_COPIES.items():
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(source.read_bytes())


if __name__ == "__main__":
    main()
