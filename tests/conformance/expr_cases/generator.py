"""Write the expr cases: the same ones each time, for the same seed.

Every template of the grammar is the root of some cases in every set: with leaves below it, with other templates
below it, and with one place filled by an expression of a wrong kind, so that errors are covered like values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from tests.conformance.expr_cases.chosen import CHOSEN
from tests.conformance.expr_cases.grammar import ROOTS, TEMPLATES
from tests.conformance.expr_cases.leaves import ELEMENTS, LITERALS, NAMES

SEED = 20240506
SETS = tuple(NAMES)

_PLACE = re.compile(r"<([a-z]+)(?:/([a-z]+))?>")
_NESTED = 0.35  # of the places below a root; more makes cases that all fail in the same few ways


class Request(NamedTuple):
    """A case to be answered: an expression of a set, and the kind of result that is asked for."""

    set: str
    src: str
    expect: str = ""


def generate(seed: int = SEED) -> list[Request]:
    """Return all cases, each once, in a fixed order."""
    chosen = [Request(*case) for cases in CHOSEN.values() for case in cases]
    return list(dict.fromkeys([*chosen, *_generated(seed)]))


def _generated(seed: int) -> Iterator[Request]:
    for name in SETS:
        writer = _Writer(name, Random(f"{seed} {name}"))
        for kind, templates in TEMPLATES.items():
            for template in templates:
                for source in writer.write_all(template):
                    yield Request(name, source, writer.expectation(kind))
        for template in ROOTS:
            yield from (Request(name, source) for source in writer.write_all(template))


# The share of cases that ask for a result, and what they ask for: mostly what they will get.
_ASKING = 0.15
_EXPECTED = {"int": "int", "float": "float64", "bool": "bool"}
_EXPECTATIONS = tuple(_EXPECTED.values())

# A zone is a pointer in Go, which the original follows in some places and not in others.
_MISFITS = tuple(kind for kind in TEMPLATES if kind != "zone")


class _Writer:
    """Fills templates for one set."""

    def __init__(self, name: str, random: Random) -> None:
        self._set = name
        self._random = random

    def write_all(self, template: str) -> Iterator[str]:
        """Yield the cases of one template: two with leaves, one nested, one that may not fit."""
        places = len(_PLACE.findall(template))
        if not places:
            yield template
            return
        yield self._fill(template, nested=0.0)
        yield self._fill(template, nested=0.0)
        yield self._fill(template, nested=_NESTED)
        yield self._fill(template, nested=_NESTED / 2, misfit=self._random.randrange(places))

    def expectation(self, kind: str) -> str:
        """Return what kind of result a case asks for: mostly none."""
        if self._random.random() >= _ASKING:
            return ""
        if kind in _EXPECTED and self._random.random() < 0.7:
            return _EXPECTED[kind]
        return self._random.choice(_EXPECTATIONS)

    def _fill(self, template: str, *, nested: float, misfit: int = -1, element: str = "") -> str:
        """Replace the places of a template; the one with the number `misfit` gets another kind."""
        written, end = [], 0
        for number, place in enumerate(_PLACE.finditer(template)):
            kind, inner = place[1], place[2] or element
            if number == misfit:
                kind = self._random.choice([other for other in _MISFITS if other != kind])
            written += [template[end : place.start()], self._expression(kind, nested, inner)]
            end = place.end()
        return "".join([*written, template[end:]])

    def _expression(self, kind: str, nested: float, element: str) -> str:
        if kind in TEMPLATES and self._random.random() < nested:
            inner = self._fill(self._random.choice(TEMPLATES[kind]), nested=nested / 2, element=element)
            return inner if self._random.random() < 0.4 else f"({inner})"
        return self._random.choice(self._leaves(kind, element))

    def _leaves(self, kind: str, element: str) -> tuple[str, ...]:
        """Return what may stand for a kind; within a predicate it mostly speaks of the element."""
        if element and self._random.random() < 0.75:
            said = ELEMENTS[self._set if element == "record" else element].get(kind)
            if said:
                return said
        named = NAMES[self._set].get(kind, ())
        literal = LITERALS.get(kind, ())
        return named if named and (not literal or self._random.random() < 0.6) else literal
