"""Docs are executed: every Python example runs, every policy example loads, every generated part is current."""

from __future__ import annotations

import doctest
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from docs import generate
from hyperfleet.aggregation.loading.policy_document import policy_schema
from hyperfleet.aggregation.loading.policy_loader import check_policies
from tests.conformance.timeline import POLICY_FILES

ROOT = Path(__file__).parents[2]
YAML_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Parts of a rule that only make sense below another line of the page are put there before loading.
HEADER = "requiredAdapters: [validation, dns, infrastructure, hypershift]\noptionalAdapters: [monitoring]\n"


@pytest.mark.parametrize("page", ["docs/library.md"])
def test_python_examples_run(page: str) -> None:
    result = doctest.testfile(str(ROOT / page), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_policy_of_the_quick_start_loads() -> None:
    (policy,) = YAML_BLOCK.findall((ROOT / "docs/quickstart.md").read_text())
    assert check_policies(policy).problems == ()


def _as_policies() -> list[str]:
    """Return the YAML examples of the policy guide, each completed to a policy."""
    texts = []
    for block in YAML_BLOCK.findall((ROOT / "docs/policy.md").read_text()):
        text = block
        if text.startswith("    templates:"):
            text = "clusterConditions:\n  - type: A\n    evaluate: {expr: 'adapters[\"dns\"].current'}\n" + text
        elif text.startswith("  - type: PoolsReady"):
            text = (
                "clusterConditions:\n"
                "  - {type: DNSConfigured, mirror: {adapter: dns}}\n"
                "  - {type: MostAdaptersReady, mirror: {adapter: dns}}\n" + text
            )
        texts.append(text if "requiredAdapters" in text else HEADER + text)
    return texts


@pytest.mark.parametrize("text", _as_policies())
def test_the_policy_guides_examples_load(text: str) -> None:
    problems = [problem for problem in check_policies(text).problems if problem.level == "error"]
    assert problems == []


def test_the_block_of_the_guide_to_events_loads() -> None:
    (block,) = YAML_BLOCK.findall((ROOT / "docs/events.md").read_text())
    assert [each for each in check_policies(HEADER + block).problems if each.level == "error"] == []


@pytest.mark.parametrize("name", sorted(POLICY_FILES))
def test_shipped_policies_fit_the_shipped_schema(name: str) -> None:
    document = YAML(typ="safe").load(POLICY_FILES[name].read_text())
    jsonschema.Draft202012Validator(policy_schema()).validate(_with_text_keys(document))


def _with_text_keys(value: object) -> object:
    """Spell the keys `true` and `false` as editors do: JSON has no other keys than text."""
    if isinstance(value, dict):
        return {str(key).lower() if isinstance(key, bool) else key: _with_text_keys(v) for key, v in value.items()}
    return [_with_text_keys(item) for item in value] if isinstance(value, list) else value


def test_the_commands_of_the_quick_start_run() -> None:
    text = (ROOT / "docs/quickstart.md").read_text()
    commands = re.findall(r"^\$ \.venv/bin/hyperfleet (\w+)(.*?)(?:  # .*)?$", text, re.MULTILINE)
    assert [name for name, _ in commands] == ["serve", "db", "serve", "rules", "rules", "rules"]
    for name, rest in commands:
        # A server would go on for ever and a database is not there: then only what is asked of them is checked.
        more = {"serve": " --check", "db": " --help"}.get(name, "")
        program = [str(Path(sys.executable).parent / "hyperfleet"), name, *shlex.split(rest + more)]
        done = subprocess.run(program, cwd=ROOT, capture_output=True, check=False)  # noqa: S603
        assert done.returncode == 0, done.stderr
        assert done.stdout


PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_index_lists_every_page() -> None:
    listed = set(re.findall(r"\]\(([^)#\s]+)\)", (ROOT / "docs/README.md").read_text()))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= listed, pages - listed


def test_the_readme_is_short_and_leads_to_five_pages() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(re.findall(r"^\d\. \[", text, re.MULTILINE)) == len(re.findall(r"\]\(", text)) == 5
    assert len(text.splitlines()) <= 70, "the rest belongs to docs/"


def test_generated_parts_are_current() -> None:
    assert generate.SCHEMA.read_text() == generate.schema_text(), "run `make docs`"
    assert generate.POLICY_GUIDE.read_text() == generate.policy_guide_text(), "run `make docs`"


def test_the_walkthrough_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples/walkthrough.py"), run_name="__main__")
    told = capsys.readouterr().out
    assert "Failed       Ready=False   Available=False" in told
    assert "True with: validation Available=True at generation 1" in told
    assert told.count("Provisioning Ready=False   Available=True") == 1


def test_every_row_of_where_do_i_change_names_something_that_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text[text.index("## Where do I change") : text.index("## Decisions")]
    paths = re.findall(r"`([a-z_]+/[a-z_/]+(?:\.(?:py|yaml)|/))`", table)
    assert len(paths) >= table.count("\n|") - 4, "each row names a file"
    for path in paths:
        assert (ROOT / "src/hyperfleet" / path).exists() or (ROOT / path).exists(), path
