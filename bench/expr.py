"""How fast expressions are, against hand-written Python on the same data in the same run: `python -m bench.expr`.

Each measurement is the least of several, with the competitors taking turns, so that a busy machine hurts all alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hyperfleet import expr
from hyperfleet.errors import ExprError
from hyperfleet.expr.types import INT, STRING, Array, Map, Schema, Struct

_ADAPTER = Struct(
    "AdapterStatus",
    {
        "name": STRING,
        "available": STRING,
        "applied": STRING,
        "health": STRING,
        "observedGeneration": INT,
        "lastReportTime": STRING,
    },
)
SCHEMA: Schema = {
    "requiredAdapters": Array(_ADAPTER),
    "allAdapters": Array(_ADAPTER),
    "adapters": Map(STRING, _ADAPTER),
    "currentGeneration": INT,
}
_NAMES = ("validation", "dns", "infrastructure", "placement")


def environment() -> dict[str, Any]:
    """Return an environment with four adapters."""
    adapters = [
        {
            "name": name,
            "available": "True",
            "applied": "True",
            "health": "True",
            "observedGeneration": 3,
            "lastReportTime": "2025-10-17T12:00:00Z",
        }
        for name in _NAMES
    ]
    return {
        "requiredAdapters": adapters,
        "allAdapters": adapters,
        "adapters": {adapter["name"]: adapter for adapter in adapters},
        "currentGeneration": 3,
    }


# The same questions as somebody would write them who cares for speed.


def _all_available(env: Mapping[str, Any]) -> bool:
    for adapter in env["requiredAdapters"]:  # noqa: SIM110 - the loop is faster than `all` with a generator
        if adapter["available"] != "True":
            return False
    return True


def _most_available(env: Mapping[str, Any]) -> bool:
    count = 0
    for adapter in env["requiredAdapters"]:
        if adapter["available"] == "True":
            count += 1
    return count >= len(env["requiredAdapters"]) * 0.75


def _dns_is_current(env: Mapping[str, Any]) -> bool:
    adapter = env["adapters"].get("dns")
    return adapter is not None and adapter["observedGeneration"] == env["currentGeneration"]


def _any_broken(env: Mapping[str, Any]) -> bool:
    for adapter in env["allAdapters"]:  # noqa: SIM110 - as above
        if adapter["applied"] == "True" and adapter["available"] == "False":
            return True
    return False


def _is_available(env: Mapping[str, Any], name: str) -> bool:
    adapter = env["adapters"].get(name)
    return adapter is not None and adapter["available"] == "True"


def _validated_and_placed(env: Mapping[str, Any]) -> bool:
    return _is_available(env, "validation") and (_is_available(env, "dns") or _is_available(env, "infrastructure"))


def _all_current(env: Mapping[str, Any]) -> bool:
    generation = env["currentGeneration"]
    for adapter in env["requiredAdapters"]:
        if not (adapter["available"] == "True" and adapter["observedGeneration"] == generation):
            return False
    return True


def _none_unhealthy(env: Mapping[str, Any]) -> bool:
    for adapter in env["allAdapters"]:  # noqa: SIM110 - as above
        if adapter["health"] == "False":
            return False
    return True


class Question(NamedTuple):
    """An expression of the guide and its hand-written twin."""

    source: str
    twin: Callable[[Mapping[str, Any]], bool]


QUESTIONS = (
    Question('all(requiredAdapters, {.available == "True"})', _all_available),
    Question('len(filter(requiredAdapters, {.available == "True"})) >= len(requiredAdapters) * 0.75', _most_available),
    Question('adapters["dns"].observedGeneration == currentGeneration', _dns_is_current),
    Question('any(allAdapters, {.applied == "True" && .available == "False"})', _any_broken),
    Question(
        'adapters["validation"].available == "True" && '
        '(adapters["dns"].available == "True" || adapters["infrastructure"].available == "True")',
        _validated_and_placed,
    ),
    Question('all(requiredAdapters, {.available == "True" && .observedGeneration == currentGeneration})', _all_current),
    Question('none(allAdapters, {.health == "False"})', _none_unhealthy),
)

_TREE = "reduce(1..60, [#acc, #acc], [])"
_BIG = {"big": "a" * 1_000_000 + "b", "other": "".join(["a"] * 1_000_000) + "b", "n": 1}
_BIG_SCHEMA: Schema = {"big": STRING, "other": STRING, "n": INT}
LIMIT = 50.0
"""Milliseconds in which a hostile expression must have ended, on a quiet machine."""


def _nested_membership(levels: int) -> str:
    source = "n"
    for _ in range(levels):
        source = f"(({source} in 1..2) ? 1 : 2)"
    return source


HOSTILE = (
    "map(1..1000, map(1..1000, map(1..1000, #)))",
    "all(1..99999, any(1..99999, # < 0))",
    'reduce(1..99999, #acc + #acc, "a")',
    'let s = repeat("a", 900000); all(1..99999, s contains "b")',
    'let s = repeat("a", 900000); all(1..99999, replace(s, "a", "bb") != "")',
    'repeat("a", 999999) matches "(a*)*b"',
    "let a = [1, 1]; "
    + "".join(f"let {chr(98 + i)} = [{chr(97 + i)}, {chr(97 + i)}]; " for i in range(22))
    + "string(w)",
    "let a = [1, 1]; " + "".join(f"let {chr(98 + i)} = [{chr(97 + i)}, {chr(97 + i)}]; " for i in range(22)) + "w == w",
    "sum(1..999999, # ** 2)",
    "(" * 5000 + "1" + ")" * 5000,
    " && ".join(["true"] * 20_000),
    "sortBy(1..99999, -#)",
    "uniq(map(1..99999, [#]))",
    'map(1..99999, date("2024-01-01"))',
    "toJSON(map(1..99999, {{a: #}}))",
    'fromJSON(repeat("[", 100000))',
    "9" * 100_000,
    '"' + "\\u{10FFFF}" * 9_000 + '"',
    "a" + ".a" * 5_000,
    "-" * 5_000 + "1",
    "1" + "+1" * 4_990,
    "x" + "[0]" * 4_000,
    # Compiling
    "[" + ",".join(["map(a, #)"] * 250) + "]",
    "".join(f"let a{place} = 1;" for place in range(600)) + "1",
    ";".join(["all(x, #)"] * 250),
    "||".join(f'x matches "a{{1,{place % 900 + 1}}}b{place}"' for place in range(500)),
    'x matches "(\\\\pL|\\\\pN){1,100}"',
    "<".join(["x"] * 3_000),
    "a" + "|string()" * 4_000,
    # Texts
    'duration(repeat("1ns", 300000))',
    'date(repeat("x", 400000), repeat("x", 400000))',
    'date(repeat("x", 400000))',
    'date("2024-01-01").Format(repeat("2006", 100000))',
    'trim(repeat("a", 400000), repeat("b", 400000) + "a")',
    'upper(repeat("é", 400000))',
    'let s = repeat("a", 300000); toJSON(map(1..2000, s))',
    'let s = repeat("a", 300000); string(fromPairs(map(1..2000, [string(#), s])))',
    'let s = repeat("a", 400000) + "b"; let t = repeat("a", 400000) + "b"; all(1..20000, s <= t)',
    'let s = [repeat("a", 400000), 1][0]; all(1..20000, s[#] != 1)',
    'all(1..2000, not ("x" matches (string(#) + "\\\\pL{1,300}")))',
    'all(1..9000, not ("x" matches (string(#) + "(a{1,100}){1,10}")))',
    'let s = repeat("a", 1000); all(1..5000, not (s matches "(a|b|ab)*c"))',
    # Shared parts
    f"toJSON({_TREE})",
    f"flatten({_TREE})",
    f"max({_TREE})",
    f"mean({_TREE})",
    f"{_TREE} == {_TREE}",
    "len(1..999999)",
)

HOSTILE_ON_DATA = (
    _nested_membership(25),
    'all(1..200, all(1..200, not (big contains "zz")))',
    'all(1..80, all(1..80, not (big matches "[xyz]+q$")))',
    "all(1..200, all(1..200, big == other))",
    "all(1..200, all(1..200, big <= other))",
)

HOSTILE_TO_EXPLAIN = (
    "all(1..90000, # > 0)",
    "all(1..300, all(1..300, # > 0))",
    f"let a = {_TREE}; " + ";".join(["a"] * 200),
)


def least(functions: list[Callable[[], object]], *, rounds: int = 25, calls: int = 2_000) -> list[float]:
    """Return the least time of each function in microseconds; they take turns."""
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for place, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(calls):
                function()
            best[place] = min(best[place], (time.perf_counter() - start) / calls * 1e6)
    return best


def measure_guide() -> None:
    """Print what an evaluation costs beside its hand-written twin, and what compiling costs."""
    env = environment()
    print(f"{'ours µs':>8} {'hand µs':>8} {'ratio':>6} {'compile µs':>11}  expression")
    for question in QUESTIONS:
        program = expr.compile(question.source, SCHEMA, expect=bool)
        if program.evaluate(env) is not question.twin(env):
            raise AssertionError(question.source)
        evaluate, twin = program.evaluate, question.twin
        ours, hand = least([lambda run=evaluate: run(env), lambda run=twin: run(env)])  # type: ignore[misc]
        source = question.source
        (compiling,) = least([lambda text=source: expr.compile(text, SCHEMA, expect=bool)], rounds=5, calls=50)  # type: ignore[misc]
        print(f"{ours:8.3f} {hand:8.3f} {ours / hand:6.2f} {compiling:11.0f}  {question.source}")


def measure_hostile() -> None:
    """Print how long it takes until a hostile expression has ended, and how many took too long."""
    print(f"\n{'ms':>8}  outcome of a hostile expression")
    env = environment()
    slow = [
        *[source for source in HOSTILE if _is_slow(source, lambda text: expr.compile(text).evaluate(env))],
        *[source for source in HOSTILE_ON_DATA if _is_slow(source, _evaluate_on_data)],
        *[source for source in HOSTILE_TO_EXPLAIN if _is_slow(source, _explain)],
    ]
    print(f"\n{len(slow)} took longer than {LIMIT:.0f} ms")
    for source in slow:
        print(f"  {source[:100]}")


def _explain(source: str) -> object:
    return expr.compile(source).explain({}).render()


def _evaluate_on_data(source: str) -> object:
    return expr.compile(source, _BIG_SCHEMA).evaluate(_BIG)


def _is_slow(source: str, run: Callable[[str], object]) -> bool:
    start = time.perf_counter()
    try:
        outcome = f"value of {type(run(source)).__name__}"
    except ExprError as error:
        outcome = error.message
    elapsed = (time.perf_counter() - start) * 1e3
    print(f"{elapsed:8.1f}{'!' if elapsed > LIMIT else ' '} {outcome[:60]:60}  {source[:60]}")
    return elapsed > LIMIT


def main() -> None:
    """Print both tables."""
    measure_guide()
    measure_hostile()


if __name__ == "__main__":
    main()
