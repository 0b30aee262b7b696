"""How much of the expr language's recorded answers we give: `python -m tests.conformance.expr [--failures]`.

Each case has the answer of the original. Our own are in `expr_cases`; a larger set of others' may be in a file beside
the repository (`../shared/conformance/expr.jsonl.gz`). `expr_excused` lists the cases that differ, with the reason.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hyperfleet.errors import ExprError, ExprRuntimeError
from hyperfleet.expr import ExprOptions, Program
from hyperfleet.expr import compile as compile_expr
from hyperfleet.expr.checking.checker import check
from hyperfleet.expr.compiling.folding import fold
from hyperfleet.expr.runtime.budget import open_budget
from hyperfleet.expr.runtime.text import show
from hyperfleet.expr.runtime.values import type_name
from hyperfleet.expr.syntax.parser import parse
from hyperfleet.expr.temporal.layouts import RFC3339_NANO, format_time
from hyperfleet.expr.temporal.times import Time
from hyperfleet.expr.types import ANY, ANY_ARRAY, ANY_MAP, BOOL, FLOAT, INT, NIL, STRING, Struct, Type
from tests.conformance.expr_answers import describe, same
from tests.conformance.expr_cases import record
from tests.conformance.expr_cases.worlds import WORLDS
from tests.conformance.expr_excused import EXCUSED
from tests.conformance.expr_mock import environment_of, expectation_of, grammar_of, schema_of
from tests.conformance.expr_worlds import DOMAIN, FUZZ, GEN, decode

DATA = Path(__file__).parents[3] / "shared" / "conformance" / "expr.jsonl.gz"
MISSING = "the larger set is not there: put expr.jsonl.gz into ../shared/conformance beside the repository"
OWN_SETS = tuple(WORLDS)
SHARED_SETS = ("tests", "check", "compile_err", "parse", "jdx", "domain", "gen", "fuzz")
SETS = (*OWN_SETS, *SHARED_SETS)

# The original has no limit on work, so the cases are judged without ours.
UNLIMITED = ExprOptions(work=10**12, clock=lambda: datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC))

Case = dict[str, Any]


@dataclass
class Tally:
    """The outcome of one set; a failure is a case and what we answered instead."""

    total: int = 0
    passed: int = 0
    excused: int = 0
    failures: list[tuple[Case, str]] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Return the share of cases that pass, among those that are not excused."""
        judged = self.total - self.excused
        return self.passed / judged if judged else 1.0


def load_cases() -> Iterator[Case]:
    """Yield every recorded case: our own, and those beside the repository if they are there."""
    yield from record.read()[1]
    if DATA.exists():
        yield from _load_shared()


def _load_shared() -> Iterator[Case]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


_ARTEFACTS = {case: artefact for artefact, cases in EXCUSED.items() for case in cases}


def excuse(case: Case) -> str | None:
    """Return the reason why a case need not pass, if there is one."""
    return _ARTEFACTS.get((case["set"], case["src"], wanted(case)))


def wanted(case: Case) -> str:
    """Return the recorded answer in a short line."""
    if isinstance(case.get("err"), str):
        return str(case["err"]).splitlines()[0]
    return json.dumps(case.get("out"), ensure_ascii=False)[:40]


def run(sets: tuple[str, ...] = SETS) -> dict[str, Tally]:
    """Judge every case of some sets."""
    tallies = {name: Tally() for name in sets}
    for case in load_cases():
        if case["set"] not in tallies:
            continue
        tally = tallies[case["set"]]
        tally.total += 1
        if excuse(case):
            tally.excused += 1
            continue
        answer = judge(case)
        if answer is None:
            tally.passed += 1
        else:
            tally.failures.append((case, answer))
    return tallies


def judge(case: Case) -> str | None:
    """Return None if we answer as the original does, else our answer."""
    try:
        return _JUDGES[case["set"]](case)
    except ExprError as error:
        return _judge_error(case, error)


def _judge_error(case: Case, error: ExprError) -> str | None:
    recorded = case.get("err")
    return None if recorded is True or recorded == str(error) else str(error)


def _judge_value(case: Case, program: Program, values: Any) -> str | None:
    """Compare the value of an expression, computed both ways."""
    found = program.evaluate(values)
    if case.get("err"):
        return describe(found)
    if not same(case["out"], found):
        return describe(found)
    interpreted = program.interpret(values)
    return None if same(case["out"], interpreted) else f"interpreted: {describe(interpreted)}"


def _judge_own(case: Case) -> str | None:
    """Compare value or error, computed both ways, and whether compiling or running failed."""
    schema, values = WORLDS[case["set"]]
    expect = _KINDS.get(case.get("expect", ""))
    try:
        program = compile_expr(case["src"], schema, expect=expect, options=UNLIMITED)
    except ExprError as error:
        return _judge_failure(case, error)
    for evaluate in (program.evaluate, program.interpret):
        try:
            found = evaluate(values)
            differs = None if "out" in case and same(case["out"], found) else describe(found)
        except ExprError as error:
            differs = _judge_failure(case, error)
        if differs is not None:
            return differs if evaluate == program.evaluate else f"interpreted: {differs}"
    return None


def _judge_failure(case: Case, error: ExprError) -> str | None:
    """Compare an error without the lines that show the source; the record has none."""
    stage = "run" if isinstance(error, ExprRuntimeError) else "compile"
    text = f"{error.message} ({error.line}:{error.column})" if error.line else error.message
    return None if (text, stage) == (case.get("err"), case.get("stage")) else f"{stage}: {text}"


_KINDS: dict[str, Type] = {
    "bool": BOOL,
    "int": INT,
    "float64": FLOAT,
    "string": STRING,
    "slice": ANY_ARRAY,
    "map": ANY_MAP,
}


def _judge_generated(case: Case) -> str | None:
    schema, values = GEN if case["env"] == "@gen" else FUZZ
    return _judge_value(case, compile_expr(case["src"], schema, options=UNLIMITED), values)


def _judge_test(case: Case) -> str | None:
    """Judge a table test: with `expect` it was compiled for its environment, otherwise without a declared one."""
    schema = None
    if "expect" in case and case["src"] not in _UNDECLARED:
        schema = {name: _opened(of) for name, of in (schema_of(case["env"]) or {}).items()}
    expect = _UNRECORDED.get(case["src"]) or _EXPECTED.get(case.get("expect", ""))
    program = compile_expr(case["src"], schema, expect=expect, options=_options(case))
    return _judge_value(case, program, decode(case["env"]) or {})


def _opened(recorded: Type) -> Type:
    """Return a recorded type with nil as anything: the pointers behind it were not recorded."""
    if isinstance(recorded, Struct):
        return replace(recorded, fields={name: _opened(of) for name, of in recorded.fields.items()})
    return ANY if recorded == NIL else recorded


_EXPECTED: dict[str, Type] = {"bool": BOOL, "int64": INT}

# What the records do not say: the result type asked for, that undeclared names were allowed, a memory budget.
_UNRECORDED: dict[str, Type] = {"1": FLOAT}
_UNDECLARED = frozenset({"varNotExist", "foo?.[1]?.[2]?.[3]", 'name == "" ? foo + bar : foo + name'})


def _options(case: Case) -> ExprOptions:
    return replace(UNLIMITED, memory=100) if case["src"] == "1..100" else UNLIMITED


def _judge_checked(case: Case) -> str | None:
    """Judge what parser, checker and folding say."""
    environment = environment_of(case)
    tree = parse(case["src"], grammar_of(case, environment))
    found = check(tree, case["src"], environment, expect=expectation_of(case))
    fold(tree)
    if case["err"] is not None:
        return f"accepted as {found.name}"
    name = ANY.name if found.kind == "nil" else found.name
    return None if name == case["type"] else f"type {name}"


def _judge_parsed(case: Case) -> str | None:
    parse(case["src"], grammar_of(case))
    return None if case["err"] is None else "accepted"


def _judge_json(case: Case) -> str | None:
    found = compile_expr(case["src"], options=UNLIMITED).evaluate({})
    if case.get("err"):
        return describe(found)
    return None if as_json(found) == case["json"] else describe(found)


def _judge_domain(case: Case) -> str | None:
    schema, values = DOMAIN
    found = compile_expr(case["src"], schema, options=UNLIMITED).evaluate(values)
    shown = show(found, open_budget())
    recorded = (case.get("val"), case.get("type"))
    return None if recorded == (shown, type_name(found)) else f"{shown} ({type_name(found)})"


_JUDGES: dict[str, Callable[[Case], str | None]] = {
    **dict.fromkeys(OWN_SETS, _judge_own),
    "gen": _judge_generated,
    "fuzz": _judge_generated,
    "tests": _judge_test,
    "check": _judge_checked,
    "compile_err": _judge_checked,
    "parse": _judge_parsed,
    "jdx": _judge_json,
    "domain": _judge_domain,
}


def as_json(value: Any) -> Any:
    """Return a value as the recorded JSON has it."""
    if isinstance(value, Time):
        return format_time(value, RFC3339_NANO)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {show(key, open_budget()): as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def report(tallies: dict[str, Tally], *, failures: bool = False) -> str:
    """Return the table, and the failing cases if asked."""
    lines = [f"{'set':12} {'total':>6} {'passed':>6} {'failed':>6} {'excused':>7} {'%':>7}"]
    for name, tally in tallies.items():
        counts = f"{tally.total:6} {tally.passed:6} {len(tally.failures):6} {tally.excused:7}"
        lines.append(f"{name:12} {counts} {100 * tally.share:7.2f}")
    if failures:
        for name, tally in tallies.items():
            for case, answer in tally.failures:
                recorded = case.get("err") or case.get("out", case.get("json", case.get("val", case.get("type"))))
                lines.append(f"\n[{name}] {case['src']}\n  wanted: {recorded}\n  got:    {answer}")
    return "\n".join(lines)


def main() -> int:
    """Print how many cases of each set pass."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--failures", action="store_true", help="print the failing cases")
    asked = arguments.parse_args()
    tallies = run(SETS if DATA.exists() else OWN_SETS)
    sys.stdout.write(report(tallies, failures=asked.failures) + "\n")
    if not DATA.exists():
        sys.stdout.write(f"skipped: {', '.join(SHARED_SETS)} ({MISSING})\n")
    return 1 if any(tally.failures for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
