"""The tokens by which lists are filtered: computed from a record here, queried by `filters`, opaque elsewhere.

    p:<phase>            the phase
    c:<type>=<status>    each condition …
    r:<type>=<reason>    … and its reason
    a:<adapter>=<state>  each adapter that reported, and each required one that did not (Unreported)
    s:<adapter>          each of them that is stale
    f:<subject>          each condition type, and `phase`, that is flapping
    b:<adapter>          each required adapter that the resource waits for
    l:<key>=<value>      each label
    w:<word>             a word for text search, in lower case

Tokens depend on the record alone (the status's memory has the adapters that were required), so the stored tokens can be
computed from the loaded record, whatever the policy is by now. Therefore a change of the tokens needs a migration that
rewrites those of every resource, unless no stored record can have the new token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import Final
from unicodedata import normalize

from hyperfleet.aggregation.acceptance import finalizes
from hyperfleet.aggregation.availability import READY
from hyperfleet.model.condition import TRUE, Condition
from hyperfleet.model.report import AVAILABLE
from hyperfleet.model.status import AdapterState, AdapterSummary, Status
from hyperfleet.ports import Record

MAX_WORD: Final = 64  # characters, as long as a label value; longer words are found by their beginning
MAX_WORDS: Final = 256  # of one resource, each an index entry; its labels alone could have thousands

_TROUBLED: Final[frozenset[AdapterState]] = frozenset({"Failed", "Unhealthy"})

# The characters of names, label values and reasons; anything else separates words.
_WHOLE: Final = re.compile(r"[^\W_](?:[\w.:-]*[^\W_])?")
_PART: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

Tokens = tuple[str, ...]


def facets_of(record: Record) -> frozenset[str]:
    """Return all tokens of a record."""
    status, required = record.status, record.status.memory.required_since
    ready = status.condition(READY)
    blockers = _blockers(record, ready)
    states = {summary.name: summary.state for summary in status.adapters}
    tokens = [f"p:{status.phase}"]
    tokens += [f"c:{condition.type}={condition.status}" for condition in status.conditions]
    tokens += [f"r:{condition.type}={condition.reason}" for condition in status.conditions]
    tokens += [f"a:{name}={state}" for name, state in states.items()]
    tokens += [f"a:{name}=Unreported" for name in required if name not in states]
    tokens += [f"s:{summary.name}" for summary in status.adapters if summary.stale]
    tokens += [f"f:{subject}" for subject in status.flapping]
    tokens += [f"b:{name}" for name in blockers]
    tokens += [f"l:{key}={value}" for key, value in record.resource.labels.items()]
    tokens += _word_tokens(record, ready, blockers)
    return frozenset(tokens)


def phase_in(tokens: Iterable[str]) -> str | None:
    """Return the phase among the tokens of a record; None: there are no tokens."""
    return next((token[2:] for token in tokens if token.startswith("p:")), None)


def adapters_in(tokens: Iterable[str], state: AdapterState) -> frozenset[str]:
    """Return the adapters that have a state, by the tokens of a record."""
    ending = f"={state}"
    return frozenset(token[2 : -len(ending)] for token in tokens if token.startswith("a:") and token.endswith(ending))


# ── the shortcut ─────────────────────────────────────────────────────────────────────────────────────────────────


def has_same_facets(before: Record, after: Record) -> bool:
    """Tell cheaply whether nothing changed that a token is made of, which is the usual case."""
    if before.resource is not after.resource or after.resource.is_deleting:
        return False  # rare: compare the tokens themselves
    old, new = before.status, after.status
    return (
        old.phase == new.phase
        and old.flapping.keys() == new.flapping.keys()
        and old.memory.required_since == new.memory.required_since
        and _have_same_conditions(old, new)
        and len(old.adapters) == len(new.adapters)
        and all(map(_is_same_adapter, old.adapters, new.adapters))
        and _troubles(before) == _troubles(after)
    )


def _have_same_conditions(old: Status, new: Status) -> bool:
    if old.conditions == new.conditions:
        return True
    return [(c.type, c.status, c.reason) for c in old.conditions] == [
        (c.type, c.status, c.reason) for c in new.conditions
    ]


def _is_same_adapter(old: AdapterSummary, new: AdapterSummary) -> bool:
    return (
        old.state == new.state
        and old.name == new.name
        and old.stale == new.stale
        and old.available == new.available
        and old.observed_generation == new.observed_generation
    )


# ── blockers ────────────────────────────────────────────────────────────────────────────────────────────


def _blockers(record: Record, ready: Condition | None) -> list[str]:
    """Return the required adapters that a resource waits for to be Ready or, when it is deleted, to be removed."""
    resource, status = record.resource, record.status
    required = status.memory.required_since
    if resource.is_deleting:
        return [
            name
            for name in required
            if name not in record.reports or not finalizes(record.reports[name].report, resource)
        ]
    if ready is not None and ready.status == TRUE:
        return []
    done = {summary.name for summary in status.adapters if _is_done(summary, resource.generation)}
    return [name for name in required if name not in done]


def _is_done(summary: AdapterSummary, generation: int) -> bool:
    """Apply the test of the Ready condition to one adapter."""
    return summary.available == TRUE and summary.observed_generation == generation and not summary.stale


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────


def whole_words(text: str) -> list[str]:
    """Return the words of a text as people type them, such as `eu-west-1`, in the form of tokens."""
    return [word[:MAX_WORD] for word in _WHOLE.findall(_fold(text))]


def _word_tokens(record: Record, ready: Condition | None, blockers: list[str]) -> Iterable[str]:
    """Return the words of a record; of too many, those of its labels are dropped first."""
    resource = record.resource
    tokens = [*_tokens_of(resource.id), *_tokens_of(resource.name)]
    if ready is not None and ready.status != TRUE:
        tokens += _tokens_of_reason(ready.reason)
    for name in blockers:
        tokens += _tokens_of(name)
    for reason in _troubles(record):
        tokens += _tokens_of_reason(reason)
    for value in resource.labels.values():
        tokens += _tokens_of(value)
    return tokens if len(tokens) <= MAX_WORDS else islice(dict.fromkeys(tokens), MAX_WORDS)


def _troubles(record: Record) -> list[str]:
    """Return the reasons of adapters that failed or are unhealthy."""
    reports = record.reports
    stored = [reports.get(summary.name) for summary in record.status.adapters if summary.state in _TROUBLED]
    conditions = [report.report.condition(AVAILABLE) for report in stored if report is not None]
    return [condition.reason for condition in conditions if condition is not None]


@lru_cache(maxsize=4096)  # a fleet has few different label values, adapters and reasons; about 2 MB
def _tokens_of(text: str) -> Tokens:
    """Return the tokens of the whole words of a text and of their parts."""
    words = (*whole_words(text), *_PART.findall(_fold(text)))
    return tuple(dict.fromkeys([f"w:{word[:MAX_WORD]}" for word in words]))


@lru_cache(maxsize=512)
def _tokens_of_reason(reason: str) -> Tokens:
    """Return the tokens of a whole reason and of the words in it: quotaexceeded, quota, exceeded."""
    return _tokens_of(f"{reason} {_HUMP.sub(' ', reason)}")


def _fold(text: str) -> str:
    """Normalise case and Unicode, so that texts that look the same are equal."""
    return text.lower() if text.isascii() else normalize("NFC", normalize("NFC", text).lower())
