"""The YAML of a sentinel's rules: read it, check it, and report every problem with its place.

    ages: {new: 30s, notReady: 1m, ready: 10m}   # shorthand: the ages of the built-in rules
    builtIn: true                                # false: only the rules below
    rules:                                       # a rule with the name of a built-in one replaces it
      - name: gold
        state: any
        where: {labelSelector: "tier=gold", phase: "Failed,Degraded"}     # parameters of a list, for the server
        when: resource.spec.?size.orValue(0) > 3 && age > duration("5m")  # CEL, for the sentinel
        after: 5m
        backoff: {factor: 2, max: 10m, jitter: 0.1}

A resource is a candidate of a rule whenever its time has come, also if `where` and `when` are false: a rule for `any`
with `after: 5m` looks at each resource of the fleet every five minutes. Rules for one state are cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from hyperfleet.cel import place_faults
from hyperfleet.documents import DocumentProblem, Places, good_items, load, salvage
from hyperfleet.documents.durations import Duration, parse_duration
from hyperfleet.documents.schema import describe_schema
from hyperfleet.sentinel.decision import compile_condition
from hyperfleet.sentinel.rules import BUILT_IN_RULES, SHORTEST_PAUSE, STATES, Backoff, Rule, RuleSet

SCHEMA_ID: Final = "urn:hyperfleet:schema:sentinel"
MAX_RULES: Final = 50  # every write compares the times of all that are for its state
AS_POLICY: Final = "policy"
_POLICY_STATES: Final = ("failed", "ready")

# Returns what is wrong with parameters of a list: the parameter, and the message.
CheckWhere = Callable[[Mapping[str, str]], Iterable[tuple[str, str]]]


class _Document(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the document."""


class BackoffDocument(_Document, frozen=True, kw_only=True):
    """How the pause between looks grows while a resource stays as it is."""

    factor: Annotated[float, Meta(ge=1, le=10, description="Each pause is this many times the one before")] = 2.0
    max: Annotated[Duration, Meta(description="The longest pause")] = timedelta(minutes=10)
    jitter: Annotated[float, Meta(ge=0, le=0.9, description="The part of a pause that may be cut off")] = 0.1


class RuleDocument(_Document, frozen=True, kw_only=True):
    """A rule: when adapters are asked to look at a resource again."""

    name: Annotated[
        str,
        Meta(
            pattern="^[a-z][-a-z0-9]*$",
            max_length=63,
            description="The reason that events carry",
            extra={"expected": "a name of small letters, digits and - such as not-ready"},
        ),
    ]
    state: Annotated[
        Literal["deleting", "failed", "new", "outdated", "notReady", "ready", "stale", "any"],
        Meta(description="The state of the resources that the rule is for"),
    ]
    after: Annotated[
        Annotated[str, Meta(examples=["30s", "policy"], extra={"expected": "a duration such as 30s, or policy"})]
        | None,
        Meta(
            description="How long after the begin of the state, or the last look. `policy`: maxRetries and "
            "retryInterval of the policy for failed, a third of its staleThreshold for ready. By default as the "
            "built-in rule for the state"
        ),
    ] = None
    backoff: BackoffDocument = BackoffDocument()
    where: Annotated[
        dict[str, str], Meta(description="Parameters of a list, such as labelSelector; evaluated by the server")
    ] = field(default_factory=dict)
    when: Annotated[str | None, Meta(description="A CEL condition on the resource")] = None


class AgesDocument(_Document, frozen=True, kw_only=True):
    """The ages of the built-in rules, by state."""

    deleting: Duration | None = None
    failed: Duration | None = None
    new: Duration | None = None
    outdated: Duration | None = None
    not_ready: Duration | None = None
    ready: Duration | None = None
    stale: Duration | None = None


class SentinelDocument(_Document, frozen=True, kw_only=True):
    """The rules of a HyperFleet sentinel."""

    ages: Annotated[AgesDocument, Meta(description="Other ages for the built-in rules")] = AgesDocument()
    built_in: Annotated[bool, Meta(description="Use the built-in rules besides those of this file")] = True
    rules: Annotated[
        tuple[RuleDocument, ...], Meta(description="Rules of your own; a built-in one is replaced by its name")
    ] = ()


class LoadedRules(Struct, frozen=True):
    """The rules of a file (None on any error) and every problem of it."""

    rules: RuleSet | None
    problems: tuple[DocumentProblem, ...]


def load_rules(text: str, file: str = "sentinel.yaml", check_where: CheckWhere = lambda _: ()) -> LoadedRules:
    """Read the rules of a YAML text. `check_where` checks the parameters of `where`, which the server knows."""
    loaded = load(text, SentinelDocument, file=file)
    content = loaded.value or salvage(loaded.places.document, SentinelDocument)
    problems = list(loaded.problems)
    if content is not None:
        problems += _find_problems(content, loaded.places, check_where)
    if problems or content is None:
        return LoadedRules(None, tuple(sorted(problems)))
    return LoadedRules(RuleSet(_merge(content)), ())


def sentinel_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file with rules."""
    return describe_schema(SentinelDocument, id_=SCHEMA_ID, title="HyperFleet sentinel rules")


def _merge(content: SentinelDocument) -> Iterator[Rule]:
    """Yield the rules of the file, then the built-in ones that it does not replace, with the ages it gives."""
    yield from [_rule(each) for each in content.rules]
    named = {each.name for each in content.rules}
    ages = {_STATE_OF_AGE.get(key, key): age for key, age in asdict(content.ages).items() if age is not None}
    for rule in BUILT_IN_RULES if content.built_in else ():
        if rule.name not in named:
            yield replace(rule, after=ages.get(rule.state, rule.after))


_STATE_OF_AGE: Final = {"not_ready": "notReady"}
_DEFAULT_AGES: Final = {rule.state: rule.after for rule in BUILT_IN_RULES}


def _rule(document: RuleDocument) -> Rule:
    after = _DEFAULT_AGES.get(document.state)
    if document.after is not None:
        after = None if document.after == AS_POLICY else parse_duration(document.after)
    backoff = Backoff(document.backoff.factor, document.backoff.max, document.backoff.jitter)
    return Rule(document.name, document.state, after, backoff, document.where, document.when or "")


def _find_problems(content: SentinelDocument, places: Places, check_where: CheckWhere) -> Iterator[DocumentProblem]:
    if len(content.rules) > MAX_RULES:
        message = f"{len(content.rules)} rules; at most {MAX_RULES} are allowed"
        yield DocumentProblem(places.value("/rules"), message, "TooMany")
    seen: set[str] = set()
    for index, rule in good_items(content.rules):
        pointer = f"/rules/{index}"
        if rule.name in seen:
            yield DocumentProblem(
                places.value(f"{pointer}/name"), f"there is already a rule {rule.name}", "DuplicateRule"
            )
        seen.update([rule.name] if rule.name else [])
        yield from _age_problems(rule, places, pointer)
        for key, message in check_where(rule.where) if rule.where else ():
            yield DocumentProblem(places.value(f"{pointer}/where/{key}"), message, "Filter")
        if rule.when is not None:
            yield from place_faults(compile_condition(rule.when).faults, places, f"{pointer}/when")


def _age_problems(rule: RuleDocument, places: Places, pointer: str) -> Iterator[DocumentProblem]:
    place = places.value(f"{pointer}/after")
    if rule.state not in STATES:
        return  # missing or invalid: already reported
    if rule.after is None:
        if rule.state == "any" and not places.is_given(f"{pointer}/after"):
            yield DocumentProblem(places.value(pointer), "a rule for any state needs after", "MissingKey")
        return
    if rule.after == AS_POLICY:
        if rule.state not in _POLICY_STATES:
            message = f"a policy has no age for the state {rule.state}, only for {' and '.join(_POLICY_STATES)}"
            yield DocumentProblem(place, message, "NotAllowed")
        return
    try:
        after = parse_duration(rule.after)
    except ValueError as error:
        yield DocumentProblem(place, str(error), "NotAllowed")
        return
    if rule.state in ("any", "ready") and after < SHORTEST_PAUSE:
        yield DocumentProblem(place, "must be at least 10s: every resource is looked at so often", "OutOfRange")
    if places.is_given(f"{pointer}/backoff/max") and rule.backoff.max < after:
        yield DocumentProblem(places.value(f"{pointer}/backoff/max"), "must not be shorter than after", "OutOfRange")
