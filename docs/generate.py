"""Write the generated parts of the docs and the JSON Schema of policies (`make docs`); tests check they are current."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from hyperfleet.aggregation.loading.policy_document import policy_schema
from hyperfleet.aggregation.templates import VARIABLES

ROOT = Path(__file__).parent.parent
SCHEMA = ROOT / "src/hyperfleet/policies/policy.schema.json"
POLICY_GUIDE = ROOT / "docs/policy.md"


def schema_text() -> str:
    """Return the JSON Schema of policies as it ships."""
    return msgspec.json.format(msgspec.json.encode(policy_schema()), indent=2).decode() + "\n"


def policy_guide_text() -> str:
    """Return docs/policy.md with the table of template variables filled in."""
    rows = "".join(f"| `{{{{.{name}}}}}` | {meaning} |\n" for name, meaning in VARIABLES.items())
    table = f"<!-- generated: template variables -->\n| variable | meaning |\n|---|---|\n{rows}<!-- end -->"
    pattern = re.compile(r"<!-- generated: template variables -->.*?<!-- end -->", re.DOTALL)
    return pattern.sub(lambda _: table, POLICY_GUIDE.read_text())


def main() -> None:
    """Write both."""
    SCHEMA.write_text(schema_text())
    POLICY_GUIDE.write_text(policy_guide_text())


if __name__ == "__main__":
    main()
