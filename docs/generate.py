"""Write the generated parts of the docs and the JSON Schemas (`make docs`); tests check they are current."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from docs import walkthrough
from docs.cli_pages import write_cli_pages
from hyperfleet.aggregation.loading.policy_document import policy_schema
from hyperfleet.aggregation.templates import VARIABLES
from hyperfleet.api.metrics import list_families
from hyperfleet.api.problems import CATALOGUE
from hyperfleet.cli.serve import FLAGS
from hyperfleet.settings import SETTINGS, settings_schema

ROOT = Path(__file__).parent.parent
SCHEMA = ROOT / "src/hyperfleet/policies/policy.schema.json"
POLICY_GUIDE = ROOT / "docs/policy.md"
SETTINGS_SCHEMA = ROOT / "docs/settings.schema.json"
SETTINGS_GUIDE = ROOT / "docs/settings.md"
API_GUIDE = ROOT / "docs/api.md"
CHART_SCHEMA = ROOT / "deploy/helm/hyperfleet/values.schema.json"
# What the chart has values of its own for, as other parts of it must agree; its `settings` takes every other one.
CHART_OWNS = ("listen", "insecureListen", "database", "policy", "specSchemas", "drainTimeout", "auth", "tls")
# What the chart installs for Prometheus and Grafana; helm reads nothing outside of a chart.
CHART_COPIES = {
    ROOT / "deploy/helm/hyperfleet/observability" / source.name: source
    for source in (
        *sorted((ROOT / "deploy/prometheus").glob("*.yaml")),
        *sorted((ROOT / "deploy/grafana").glob("*.json")),
    )
}
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


def _fill_in(page: Path, what: str, table: str) -> str:
    """Return a page with a table in the place that is kept for it."""
    begin, end = f"<!-- generated: {what} -->", "<!-- end -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{table}{end}", page.read_text(), flags=re.DOTALL)


def _write_schema(schema: object) -> str:
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def main() -> None:
    """Write all of them."""
    SCHEMA.write_text(schema_text())
    POLICY_GUIDE.write_text(policy_guide_text())
    SETTINGS_SCHEMA.write_text(settings_schema_text())
    SETTINGS_GUIDE.write_text(settings_guide_text())
    API_GUIDE.write_text(api_guide_text())
    CHART_SCHEMA.write_text(chart_schema_text())
    write_cli_pages()
    walkthrough.PAGE.write_text(walkthrough.walkthrough_text())
    OPERATIONS_GUIDE.write_text(operations_guide_text())
    for copy, source in CHART_COPIES.items():
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(source.read_bytes())


if __name__ == "__main__":
    main()
