"""`hyperfleet rules`, as a person runs it: a real process, its output, its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMMAND = Path(sys.executable).parent / "hyperfleet"


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [str(COMMAND), *arguments], input=text, capture_output=True, text=True, check=False, cwd=ROOT
    )


def test_a_result_is_json_on_stdout() -> None:
    done = run("rules", "eval", '{"sum": 1 + 2, "list": [true, nil]}')
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"sum": 3, "list": [true, null]}\n', "")


def test_false_is_exit_code_1() -> None:
    assert run("rules", "eval", "1 > 2").returncode == 1
    assert run("rules", "eval", "1 < 2").returncode == 0


def test_data_comes_from_a_file_or_stdin(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text('{"nodes": [{"ready": true}, {"ready": false}]}')
    expression = "len(filter(nodes, {.ready})) >= 1"
    assert run("rules", "eval", expression, "--data", str(file)).stdout == "true\n"
    assert run("rules", "eval", expression, "--data", "-", text=file.read_text()).stdout == "true\n"


def test_explain_shows_every_part_and_what_was_not_needed() -> None:
    done = run("rules", "eval", "x > 1 && (x == 2 || x == 3)", "--data", "-", "--explain", text='{"x": 1}')
    assert done.stdout == (
        "x > 1 && (x == 2 || x == 3) → false\n  x > 1 → false\n    x → 1\n  x == 2 || x == 3 → not needed\nfalse\n"
    )


def test_the_names_of_a_policy_need_no_data() -> None:
    done = run("rules", "eval", 'adapters["dns"].available', "--policy-names")
    assert (done.returncode, done.stdout) == (0, "string\n")
    done = run("rules", "eval", "adaptors", "--policy-names")
    assert done.returncode == 2
    assert "unknown name adaptors (1:1)\n | adaptors\n | ^" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rules", "eval", "1 +"), "unexpected token EOF"),
        (("rules", "eval", "1 % x", "--data", "-"), "integer divide by zero"),
        (("rules", "eval", "x", "--data", "missing.json"), "missing.json"),
        (("rules", "check", "missing.yaml"), "missing.yaml"),
        (("rules", "eval", "1", "--data", "README.md"), "README.md is not JSON"),
        (("rules", "unknown"), "No such command"),
        (("unknown",), "No such command"),
    ],
)
def test_a_mistake_is_a_sentence_and_not_a_traceback(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments, text='{"x": 0}')
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_check_lists_every_problem_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "requiredAdapters: [dns]\n"
        "requiredAdapter: [dns]\n"
        "clusterConditions:\n"
        "  - {type: A, evaluate: {expr: 'adapters[\"dns\"].avail == 1'}}\n"
        "policies: {staleThreshold: 10}\n"
    )
    done = run("rules", "check", str(file))
    assert done.returncode == 1
    places = [line.split(": ")[0].removeprefix(f"{file}:") for line in done.stdout.splitlines() if str(file) in line]
    assert places == ["2:1", "4:49", "5:28"]
    assert "3 errors, 0 warnings" in done.stderr


def test_warnings_fail_only_when_strict() -> None:
    assert run("rules", "check", "examples/policies/guide.yaml").returncode == 0
    assert run("rules", "check", "--strict", "examples/policies/guide.yaml").returncode == 1
    assert run("rules", "check", "--strict", "src/hyperfleet/policies/default.yaml").returncode == 0


def test_diagram_is_mermaid() -> None:
    done = run("rules", "diagram", "src/hyperfleet/policies/default.yaml")
    assert done.stdout.startswith(
        "%% policy default: reaches Deleting, Degraded, Failed, Ready, Provisioning, Pending\n"
    )
    assert "    Provisioning --> Ready: completes\n" in done.stdout


def test_schema_is_the_one_that_ships() -> None:
    shipped = (ROOT / "src/hyperfleet/policies/policy.schema.json").read_text()
    assert run("rules", "schema").stdout == shipped, "run `make docs`"


def test_help_teaches_with_examples() -> None:
    done = run("rules", "eval", "--help")
    assert "Examples:" in done.stdout
    assert "hyperfleet rules eval 'all(nodes, {.ready})' --data nodes.json" in done.stdout


def test_a_reader_that_stops_is_no_error() -> None:
    pipeline = f"'{COMMAND}' rules diagram examples/policies/guide.yaml | head -1"
    done = subprocess.run(["/bin/sh", "-c", pipeline], capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603
    assert done.stdout.startswith("%% policy")
    assert done.stderr == ""
