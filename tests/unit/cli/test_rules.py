"""`hyperfleet rules` as a process: its output, its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

ROOT = Path(__file__).parents[3]
COMMAND = Path(sys.executable).parent / "hyperfleet"


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [str(COMMAND), *arguments], input=text, capture_output=True, text=True, check=False, cwd=ROOT
    )


def run_into(output: BinaryIO, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [str(COMMAND), *arguments], stdout=output, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT
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


def test_explain_shows_every_part() -> None:
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
def test_errors_are_messages_not_tracebacks(arguments: tuple[str, ...], said: str) -> None:
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


def test_help_has_examples() -> None:
    done = run("rules", "eval", "--help")
    assert "Examples:" in done.stdout
    assert "hyperfleet rules eval 'all(nodes, {.ready})' --data nodes.json" in done.stdout


@pytest.mark.parametrize("arguments", [("schema",), ("check", "--strict", "examples/policies/guide.yaml")])
def test_a_closed_pipe_has_its_own_exit_code(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = run_into(closed, "rules", *arguments)
    assert done.returncode == 141
    assert "Broken" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full, as Linux has")
def test_unwritable_output_is_reported() -> None:
    with Path("/dev/full").open("wb") as full:
        done = run_into(full, "rules", "schema")
    assert (done.returncode, done.stderr) == (2, "Error: No space left on device\n")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that cannot be read, as Linux has")
def test_unreadable_input_is_reported() -> None:
    done = run("rules", "check", "/proc/self/mem")
    assert done.returncode == 2
    assert "/proc/self/mem cannot be read: Input/output error" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("expression", "line"),
    [
        ("1 / 0", '"+Inf"'),
        ("[0 / 0, -1 / 0]", '["NaN", "-Inf"]'),
        ('date("2024-01-01")', '"2024-01-01T00:00:00Z"'),
        ('duration("1h")', "3600000000000"),
        ('"é"[0:1]', '"\\ufffd"'),
        ('"<é>"', '"<é>"'),
        ("groupBy([1, true], #)", '{"1": [1], "true": [true]}'),
        ("{z: 1, a: [], b: {}}", '{"z": 1, "a": [], "b": {}}'),
        ("now() > date('2024-01-01')", "true"),
    ],
)
def test_every_result_has_a_line(expression: str, line: str) -> None:
    done = run("rules", "eval", expression)
    assert (done.stdout, done.stderr) == (line + "\n", "")


def test_an_unbounded_result_is_refused() -> None:
    doubled = "let a0 = [1]; " + "".join(f"let a{n + 1} = [a{n}, a{n}]; " for n in range(40)) + "a40"
    done = run("rules", "eval", doubled)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: the result is too large to be written\n"


def test_all_errors_are_shown() -> None:
    done = run("rules", "eval", "foo + bar")
    assert done.returncode == 2
    assert "unknown name foo (1:1)" in done.stderr
    assert "unknown name bar (1:7)" in done.stderr


def test_names_of_a_policy_without_data_get_a_hint() -> None:
    done = run("rules", "eval", 'adapters["dns"].available == "True"')
    assert done.returncode == 2
    assert "unknown name adapters" in done.stderr
    assert "try --policy-names" in done.stderr
    assert "--policy-names" not in run("rules", "eval", "adaptors").stderr


@pytest.mark.parametrize("other", ["--policy-names", "--check"])
def test_explain_needs_values(other: str) -> None:
    done = run("rules", "eval", "1 > 2", "--explain", other)
    assert done.returncode == 2
    assert "--explain needs values" in done.stderr
