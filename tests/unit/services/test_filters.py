"""The law of filters: asking the tokens of a record gives what looking at the record itself gives.

Each filter is drawn twice: as the text of a parameter, and as the plain question that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation.deletion import awaited_finalizers
from hyperfleet.aggregation.observation import observe
from hyperfleet.model.phase import PHASES
from hyperfleet.model.status import ADAPTER_STATES
from hyperfleet.ports import EVERYTHING, Record, TokenTerm
from hyperfleet.services.facets import facets_of
from hyperfleet.services.search import read_query
from tests.property.worlds import GUIDE, adapters, kinds, send, worlds
from tests.world import START, World


class Case(Struct, frozen=True):
    """A record, and the world it was taken from: that knows the policy, which tokens must do without."""

    world: World
    record: Record


class Filter(Struct, frozen=True):
    """The text of a parameter and what it asks."""

    parameter: str
    text: str
    holds: Callable[[Case], bool]


# ── records ──────────────────────────────────────────────────────────────────────────────────────────────────────

KEYS = ("env", "tier", "example.com/tier", "en")
VALUES = ("prod", "web", "eu-west-1", "prod_2", "pro", "")
TYPES = ("Ready", "Available", "Slow", "Dns", "AllAdaptersReady", "Nonesuch")
REASONS = ("AdaptersFailed", "AdaptersMissing", "AdaptersInProgress", "AllAdaptersReady", "Nonesuch")

labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
names = st.sampled_from(("my-cluster", "prod-eu", "web1", "x"))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    world = draw(worlds())
    if draw(st.integers(0, 4)) == 0:
        world.delete()
        for adapter in draw(st.lists(adapters, max_size=4)):
            send(world, adapter, draw(kinds), extra={"Finalized": draw(st.sampled_from(("True", "False")))})
    resource = replace(world.resource, labels=draw(labels), name=draw(names))
    return Case(world, Record(resource, world.status, dict(world.reports)))


# ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────

spaces = st.sampled_from(("", " "))


@st.composite
def label_filters(draw: st.DrawFn) -> Filter:
    key, values = draw(st.sampled_from(KEYS)), draw(st.lists(st.sampled_from(VALUES[:-1]), min_size=1, max_size=3))
    value = draw(st.sampled_from(VALUES))
    space = draw(spaces)
    listed = f"({space}{f'{space},'.join(values)})"
    choices: list[tuple[str, Callable[[str | None], bool]]] = [
        (f"{key}{space}={space}{value}", lambda found: found == value),
        (f"{key}=={value}", lambda found: found == value),
        (f"{key}{space}!={value}", lambda found: found != value),
        (f"{key} in {listed}", lambda found: found in values),
        (f"{key} notin{space}{listed}", lambda found: found not in values),
        (key, lambda found: found is not None),
        (f"!{space}{key}", lambda found: found is None),
    ]
    text, test = draw(st.sampled_from(choices))
    return Filter("labelSelector", text, lambda case: test(case.record.resource.labels.get(key)))


@st.composite
def condition_filters(draw: st.DrawFn) -> Filter:
    type_ = draw(st.sampled_from(TYPES))
    status = draw(st.sampled_from(("True", "False", "Unknown")))
    choices: list[tuple[str, Callable[[str | None], bool]]] = [
        (type_, lambda found: found == "True"),
        (f"!{type_}", lambda found: found != "True"),
        (f"{type_}={status}", lambda found: found == status),
        (f"{type_}!={status}", lambda found: found != status),
        (f"{type_} in ({status},True)", lambda found: found in (status, "True")),
        (f"{type_} notin ({status},True)", lambda found: found not in (status, "True")),
    ]
    text, test = draw(st.sampled_from(choices))

    def holds(case: Case) -> bool:
        condition = case.record.status.condition(type_)
        return test(condition.status if condition else None)

    return Filter("conditions", text, holds)


@st.composite
def phase_filters(draw: st.DrawFn) -> Filter:
    phases = draw(st.lists(st.sampled_from(PHASES), min_size=1, max_size=3))
    if draw(st.booleans()):
        return Filter("phase", ",".join(phases), lambda case: case.record.status.phase in phases)
    text = ",".join(f"!{phase}" for phase in phases)
    return Filter("phase", text, lambda case: case.record.status.phase not in phases)


@st.composite
def flapping_filters(draw: st.DrawFn) -> Filter:
    subjects = draw(st.lists(st.sampled_from((*TYPES, "SlowTrouble", "phase", "any")), min_size=1, max_size=3))
    is_negated = draw(st.booleans())

    def holds(case: Case) -> bool:
        flapping = case.record.status.flapping.keys()
        return (bool(flapping) if "any" in subjects else not flapping.isdisjoint(subjects)) != is_negated

    return Filter("flapping", ",".join(f"!{each}" if is_negated else each for each in subjects), holds)


@st.composite
def state_filters(draw: st.DrawFn) -> Filter:
    adapter = draw(adapters)
    choices = draw(st.sampled_from((ADAPTER_STATES, ("Stale", *ADAPTER_STATES[1:]))))  # not Stale beside Unreported
    states = draw(st.lists(st.sampled_from(choices), min_size=1, max_size=3))

    def holds(case: Case) -> bool:
        views = observe(case.record.resource, case.record.reports, case.world.policy, time_of(case)).by_name
        view = views.get(adapter)
        if view is None:
            return "Unreported" in states
        return view.state in states or (view.is_stale and "Stale" in states)

    return Filter("adapterState", f"{adapter}:{'|'.join(states)}", holds)


@st.composite
def blocker_filters(draw: st.DrawFn) -> Filter:
    adapter = draw(adapters)

    def holds(case: Case) -> bool:
        resource, reports, policy = case.record.resource, case.record.reports, case.world.policy
        if resource.is_deleting:
            return adapter in awaited_finalizers(resource, reports, policy)
        required = {view.adapter: view for view in observe(resource, reports, policy, time_of(case)).required}
        view = required.get(adapter)
        return view is not None and (view.available != "True" or not view.is_current or view.is_stale)

    return Filter("blockedBy", adapter, holds)


@st.composite
def reason_filters(draw: st.DrawFn) -> Filter:
    type_, reason = draw(st.sampled_from(("", *TYPES))), draw(st.sampled_from(REASONS))

    def holds(case: Case) -> bool:
        condition = case.record.status.condition(type_ or "Ready")
        return condition is not None and condition.reason == reason

    return Filter("reason", f"{type_}:{reason}" if type_ else reason, holds)


@st.composite
def word_filters(draw: st.DrawFn) -> Filter:
    """Search for the beginning of a name, an id or a label value; reasons are tried in the tests of facets."""
    word = draw(st.sampled_from(("my-c", "CLS", "cls-12", "eu-w", "west", "pro", "prod_", "web", "cluster", "zzz-qq")))
    wanted = word.lower().rstrip("_-")

    def holds(case: Case) -> bool:
        resource = case.record.resource
        texts = [text.lower() for text in (resource.id, resource.name, *resource.labels.values())]
        words = [part for text in texts for part in (text, *re.split("[^a-z0-9]", text))]
        return any(found.startswith(wanted) for found in words)

    return Filter("q", word, holds)


filters = st.one_of(
    label_filters(),
    condition_filters(),
    phase_filters(),
    flapping_filters(),
    state_filters(),
    blocker_filters(),
    reason_filters(),
    word_filters(),
)


# ── the law ──────────────────────────────────────────────────────────────────────────────────────────────────────


def time_of(case: Case) -> datetime:
    return case.record.status.memory.written_time


def has(tokens: frozenset[str], term: TokenTerm) -> bool:
    """Evaluate a term as the port defines it."""
    if term.is_prefix:
        found = any(token.startswith(prefix) for token in tokens for prefix in term.tokens)
    else:
        found = any(token in tokens for token in term.tokens)
    return found != term.is_negated


def matches(case: Case, parameters: dict[str, list[str]]) -> bool:
    """Tell whether a list with these parameters has the record."""
    result = read_query(parameters, "Cluster", EVERYTHING, None, START)
    assert result.query is not None, result.errors
    tokens = facets_of(case.record)
    return all(has(tokens, term) for term in result.query.terms)


@given(cases(), st.lists(filters, min_size=1, max_size=4))
def test_one_filter_finds_what_it_says(case: Case, drawn: list[Filter]) -> None:
    for each in drawn:
        assert matches(case, {each.parameter: [each.text]}) == each.holds(case), each.text


ANDED = st.lists(label_filters() | condition_filters() | state_filters() | word_filters(), min_size=1, max_size=5)


@given(cases(), ANDED, st.booleans())
def test_filters_of_lists_must_all_hold(case: Case, drawn: list[Filter], is_repeated: bool) -> None:
    parameters: dict[str, list[str]] = {}
    for each in drawn:
        parameters.setdefault(each.parameter, []).append(each.text)
    if not is_repeated:
        parameters = {name: [",".join(texts)] for name, texts in parameters.items()}
    assert matches(case, parameters) == all(each.holds(case) for each in drawn)


def test_a_policy_that_requires_nobody_leaves_nobody_to_wait_for() -> None:
    world = World(replace(GUIDE, required=()))
    case = Case(world, Record(world.resource, world.status))
    assert not any(token.startswith("b:") for token in facets_of(case.record))
