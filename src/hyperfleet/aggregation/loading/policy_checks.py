"""Check a policy document beyond its types: names must exist, be unique and fit together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hyperfleet.aggregation.availability import READY
from hyperfleet.aggregation.loading.policy_document import PolicyDocument, SummaryDocument
from hyperfleet.aggregation.policy import IN_PROGRESS_REASONS, WAITING_REASONS, change_reasons
from hyperfleet.documents import DocumentProblem, Places, good_items
from hyperfleet.model.event import PHASE_SUBJECT
from hyperfleet.model.report import AVAILABLE

BUILT_IN: Final = (AVAILABLE, READY)
MAX_RULES: Final = 200  # every write judges all of them; compiling one takes some milliseconds
MAX_ADAPTERS: Final = 100  # as many as may report on one resource


def check_document(content: PolicyDocument, places: Places) -> Iterator[DocumentProblem]:
    """Yield every problem of names and references."""
    yield from _sizes(content, places)
    yield from _adapter_lists(content, places)
    yield from _condition_types(content, places)
    yield from _rule_kinds(content, places)
    yield from _referenced_adapters(content, places)
    yield from _phase_conditions(content, places)
    yield from _reason_lists(content, places)
    yield from _time_limits(content, places)
    yield from _flapping_limits(content, places)


def _sizes(content: PolicyDocument, places: Places) -> Iterator[DocumentProblem]:
    for key, number, most in (
        ("clusterConditions", len(content.cluster_conditions), MAX_RULES),
        ("requiredAdapters", len(content.required_adapters), MAX_ADAPTERS),
        ("optionalAdapters", len(content.optional_adapters), MAX_ADAPTERS),
    ):
        if number > most:
            yield DocumentProblem(places.value(f"/{key}"), f"{number} entries; at most {most} are allowed", "TooMany")


def _adapter_lists(content: PolicyDocument, places: Places) -> Iterator[DocumentProblem]:
    seen: dict[str, str] = {}
    lists = {"requiredAdapters": content.required_adapters, "optionalAdapters": content.optional_adapters}
    for key, names in lists.items():
        for index, name in good_items(names):
            if name in seen:
                message = f"the adapter {name} is already in {seen[name]}"
                yield DocumentProblem(places.value(f"/{key}/{index}"), message, "DuplicateAdapter")
            seen.setdefault(name, key)


def _condition_types(content: PolicyDocument, places: Places) -> Iterator[DocumentProblem]:
    seen: set[str] = set()
    for index, condition in good_items(content.cluster_conditions):
        place = places.value(f"/clusterConditions/{index}/type")
        if not condition.type:
            continue  # missing: already reported
        if condition.type in BUILT_IN:
            message = f"{condition.type} is computed by HyperFleet itself and cannot be a rule; choose another type"
            yield DocumentProblem(place, message, "ReservedType")
        elif condition.type == PHASE_SUBJECT:
            yield DocumentProblem(
                place, f"{PHASE_SUBJECT} means the phase in a history; choose another type", "ReservedType"
            )
        elif condition.type in seen:
            yield DocumentProblem(place, f"there is already a rule for {condition.type}", "DuplicateType")
        seen.add(condition.type)


def _rule_kinds(content: PolicyDocument, places: Places) -> Iterator[DocumentProblem]:
    earlier = list(BUILT_IN)
    for index, condition in good_items(content.cluster_conditions):
        pointer = f"/clusterConditions/{index}"
        kinds = [key for key in ("evaluate", "summary", "mirror") if places.is_given(f"{pointer}/{key}")]
        if len(kinds) != 1:
            given = f"{' and '.join(kinds)} are given" if kinds else "none is given"
            message = f"a rule needs one of evaluate, summary or mirror; {given}"
            yield DocumentProblem(places.value(pointer), message, "RuleKind")
        if condition.summary is not None:
            yield from _summary_shape(condition.summary, earlier, f"{pointer}/summary", places)
        if condition.type:
            earlier.append(condition.type)


def _summary_shape(
    summary: SummaryDocument, earlier: list[str], pointer: str, places: Places
) -> Iterator[DocumentProblem]:
    """Check that a summary is of one of its three shapes: over many, of one adapter, of the resource."""
    if places.is_given(f"{pointer}/over") and summary.over is None:
        return  # invalid: already reported
    if summary.over is not None:
        if summary.type is None or summary.types or summary.adapter is not None:
            message = "with over, give the one condition type to merge as type, and neither types nor adapter"
            yield DocumentProblem(places.value(pointer), message, "SummaryShape")
        elif set(summary.negative) - {summary.type}:
            yield DocumentProblem(
                places.value(f"{pointer}/negative"), f"only {summary.type} is merged here", "SummaryShape"
            )
        return
    if summary.type is not None or not summary.types:
        message = "without over, give the condition types to merge as types"
        yield DocumentProblem(places.value(pointer), message, "SummaryShape")
    if summary.adapter is None:
        for index, type_ in good_items(summary.types):
            if type_ not in earlier:
                message = f"{type_} is not a condition that comes before this one; those are {', '.join(earlier)}"
                yield DocumentProblem(places.value(f"{pointer}/types/{index}"), message, "UnknownType")
    for key, listed in (("negative", summary.negative), ("ignoreIfMissing", summary.ignore_if_missing)):
        for index, type_ in good_items(listed):
            if summary.types and type_ not in summary.types:
                yield DocumentProblem(
                    places.value(f"{pointer}/{key}/{index}"), f"{type_} is not in types", "UnknownType"
                )


def _referenced_adapters(content: PolicyDocument, places: Places) -> Iterator[DocumentProblem]:
    known = [name for _, name in good_items((*content.required_adapters, *content.optional_adapters))]
    for index, condition in good_items(content.cluster_conditions):
        for key in ("summary", "mirror"):
            adapter = getattr(getattr(condition, key), "adapter", None)
            if adapter is not None and adapter not in known:
                pointer = f"/clusterConditions/{index}/{key}/adapter"
                message = f"unknown adapter {adapter}; required or optional are {_listed(known)}"
                yield DocumentProblem(places.value(pointer), message, "UnknownAdapter")


def _phase_conditions(content: PolicyDocument, places: Places) -> Iterator[DocumentProblem]:
    types = (rule.type for _, rule in good_items(content.cluster_conditions) if rule.type)
    known = list(dict.fromkeys((*BUILT_IN, *types)))  # a rule for Ready is reported elsewhere
    for name in content.phases.__struct_fields__:
        phase = getattr(content.phases, name)
        for index, required in good_items(phase.required_conditions if phase else ()):
            if required.type and required.type not in known:
                pointer = f"/phases/{name}/requiredConditions/{index}/type"
                message = f"unknown condition type {required.type}; known are {_listed(known)}"
                yield DocumentProblem(places.value(pointer), message, "UnknownType")
    if content.phases.deleting and content.phases.deleting.required_conditions:
        message = "Deleting is decided by the deletion of the resource alone; only its description can be given"
        yield DocumentProblem(places.value("/phases/deleting/requiredConditions"), message, "NotAllowed")


def _reason_lists(content: PolicyDocument, places: Places) -> Iterator[DocumentProblem]:
    """Check that every removed reason is a default, and that no reason is in both lists."""
    waiting, working = content.policies.waiting_reasons, content.policies.in_progress_reasons
    yield from _reason_list("waitingReasons", waiting, WAITING_REASONS, places)
    yield from _reason_list("inProgressReasons", working, IN_PROGRESS_REASONS, places)
    both = change_reasons(WAITING_REASONS, waiting) & change_reasons(IN_PROGRESS_REASONS, working)
    for key, given, other in (
        ("waitingReasons", waiting, "inProgressReasons"),
        ("inProgressReasons", working, "waitingReasons"),
    ):
        for index, reason in good_items(given):
            if reason in both:
                both -= {reason}
                message = f"{reason} cannot mean both waiting and in progress; !{reason} removes a default of {other}"
                yield DocumentProblem(places.value(f"/policies/{key}/{index}"), message, "DuplicateReason")


def _reason_list(key: str, given: Iterable[str], defaults: frozenset[str], places: Places) -> Iterator[DocumentProblem]:
    for index, reason in good_items(given):
        if reason.startswith("!") and reason[1:] not in defaults:
            message = f"{reason[1:]} is not among the defaults: {_listed(sorted(defaults))}"
            yield DocumentProblem(places.value(f"/policies/{key}/{index}"), message, "UnknownReason")


def _time_limits(content: PolicyDocument, places: Places) -> Iterator[DocumentProblem]:
    limits = {
        "/policies/staleThreshold": content.policies.stale_threshold,
        "/defaultBehavior/timeout": content.default_behavior.timeout,
    }
    for pointer, limit in limits.items():
        if limit is not None and not limit:
            message = "must be longer than 0s; leave it out for no limit"
            yield DocumentProblem(places.value(pointer), message, "OutOfRange")


def _flapping_limits(content: PolicyDocument, places: Places) -> Iterator[DocumentProblem]:
    own = {f"/clusterConditions/{index}": rule.flapping for index, rule in good_items(content.cluster_conditions)}
    for pointer, limit in {"": content.flapping, **own}.items():
        if limit is not None and limit.window is not None and not limit.window:
            message = "must be longer than 0s; transitions: 0 means no limit"
            yield DocumentProblem(places.value(f"{pointer}/flapping/window"), message, "OutOfRange")
        if limit is not None and limit.transitions == 1:
            message = "must be at least 2; 0 means no limit"
            yield DocumentProblem(places.value(f"{pointer}/flapping/transitions"), message, "OutOfRange")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
