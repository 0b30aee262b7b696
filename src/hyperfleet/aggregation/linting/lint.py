"""Rules that are legal but almost surely wrong.

Not what a rule looks like is judged, but what it does. That a rule goes wrong is shown by an example (`enumeration`,
complete or not); that something never happens is said only when nothing else is possible (`possibilities`). The
guards of `phase` keep such rules from doing harm; a finding says what they hide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from msgspec import Struct

from hyperfleet.aggregation.linting.enumeration import Enumeration, Result, enumerate_states
from hyperfleet.aggregation.linting.footprint import add_guards, footprint_of
from hyperfleet.aggregation.linting.possibilities import Possibilities
from hyperfleet.aggregation.policy import ExprRule, PhaseRule, Policy
from hyperfleet.expr.nodes import String, walk
from hyperfleet.model.condition import ConditionStatus
from hyperfleet.model.phase import PHASES, Phase
from hyperfleet.model.status import AdapterState, Status


class LintFinding(Struct, frozen=True):
    """One warning about a policy; `pointer` says where in its document."""

    code: str
    pointer: str
    message: str


def lint(policy: Policy, enumeration: Enumeration | None = None) -> tuple[LintFinding, ...]:
    """Return what is likely wrong with a policy that loads."""
    results = (enumeration or enumerate_states(policy)).results.values()
    possibilities = Possibilities(policy)
    return (
        *_unconfigured_adapters(policy),
        *_eager_phases(policy, results),
        *_outdated_ready(policy, results),
        *_unreachable_ready(policy, results, possibilities),
        *_unmatched_phases(policy, results, possibilities),
        *_constant_conditions(policy, possibilities),
        *_readers_of_times(policy),
        *_idle_templates(policy),
        *_idle_settings(policy),
    )


def _unconfigured_adapters(policy: Policy) -> Iterator[LintFinding]:
    """Find adapters that a rule names and nobody is expected to run."""
    for index, rule in enumerate(policy.rules):
        for name in rule.named_adapters:
            if name not in policy.required and name not in policy.optional:
                yield LintFinding(
                    "UnconfiguredAdapter",
                    f"/clusterConditions/{index}/evaluate/expr",
                    f"{rule.type} names the adapter {name}, which is neither required nor optional; it reads as "
                    "Unknown until something reports under that name",
                )


# The adapter state that justifies a phase.
_EVIDENCE: Final[dict[Phase, AdapterState]] = {"Failed": "Failed", "Provisioning": "Running"}


def _eager_phases(policy: Policy, results: Iterable[Result]) -> Iterator[LintFinding]:
    """Find required conditions of a phase that match although no adapter is in the state that justifies it."""
    results = list(results)
    for phase, state in _EVIDENCE.items():
        wrong = [r for r in results if _matches(policy, phase, r) and state not in r.states.values()]
        # Prefer the example that people meet first: an adapter is Running.
        example = _first(r for r in wrong if "Running" in r.states.values()) or _first(iter(wrong))
        if example:
            types = ", ".join(type_ for type_, _ in policy.phases[phase].required_conditions)
            yield LintFinding(
                f"{phase}Without{state}Adapter",
                f"/phases/{phase.lower()}/requiredConditions",
                f'{types} also matches when no adapter is {state} ({_describe(example)}); test .state == "{state}"',
            )


def _outdated_ready(policy: Policy, results: Iterable[Result]) -> Iterator[LintFinding]:
    """Find required conditions of Ready that match although an adapter is behind the current generation."""
    example = _first(
        result
        for result in results
        if _matches(policy, "Ready", result) and any(result.states.get(name) == "Outdated" for name in policy.required)
    )
    if example:
        types = ", ".join(type_ for type_, _ in policy.phases["Ready"].required_conditions)
        yield LintFinding(
            "ReadyIgnoresGeneration",
            "/phases/ready/requiredConditions",
            f"{types} also matches when an adapter has not reported for the current generation "
            f'({_describe(example)}); test .observedGeneration == currentGeneration or .state == "Completed"',
        )


def _unreachable_ready(
    policy: Policy, results: Iterable[Result], possibilities: Possibilities
) -> Iterator[LintFinding]:
    """Find a Ready that is unreachable: the policy never matches, or a phase of higher priority always hides it."""
    if not policy.required or any(result.phase == "Ready" for result in results):
        return
    deciding = [
        wanted
        for phase in PHASES[: PHASES.index("Ready") + 1]  # by priority: those that can hide Ready, and Ready itself
        for wanted in policy.phases.get(phase, PhaseRule()).required_conditions
    ]
    footprint = add_guards(footprint_of(policy, deciding))
    never_wanted = not policy.phases.get("Ready", PhaseRule()).required_conditions
    if never_wanted or possibilities.is_impossible(footprint, lambda status: status.phase == "Ready"):
        yield LintFinding("UnreachablePhase", "/phases/ready", "no combination of adapter states leads to Ready")


def _unmatched_phases(policy: Policy, results: Iterable[Result], possibilities: Possibilities) -> Iterator[LintFinding]:
    """Find phases whose required conditions can never match."""
    results = list(results)
    for phase, rule in policy.phases.items():
        required = rule.required_conditions
        if not required or any(_matches(policy, phase, result) for result in results):
            continue
        if possibilities.is_impossible(footprint_of(policy, required), partial(_meets, required)):
            types = ", ".join(f"{type_}={status}" for type_, status in required)
            yield LintFinding(
                "PhaseNeverWanted",
                f"/phases/{phase.lower()}/requiredConditions",
                f"no combination of adapter states gives {types}",
            )


def _constant_conditions(policy: Policy, possibilities: Possibilities) -> Iterator[LintFinding]:
    """Find rules with the same result whatever the adapters report."""
    if not policy.required and not policy.optional:
        return
    for index, rule in enumerate(policy.rules):
        seen: set[ConditionStatus] = set()
        footprint = footprint_of(policy, [(rule.type, None)])
        if possibilities.is_impossible(footprint, partial(_differs, rule.type, seen)):
            yield LintFinding(
                "ConstantCondition",
                f"/clusterConditions/{index}",
                f"{rule.type} is {seen.pop()} whatever the adapters report",
            )


def _meets(required: Iterable[tuple[str, ConditionStatus]], status: Status) -> bool:
    conditions = {condition.type: condition.status for condition in status.conditions}
    return all(conditions[type_] == wanted for type_, wanted in required)


def _differs(type_: str, seen: set[ConditionStatus], status: Status) -> bool:
    """Record the status of a condition, and tell whether it has had another one."""
    seen.update(condition.status for condition in status.conditions if condition.type == type_)
    return len(seen) > 1


def _readers_of_times(policy: Policy) -> Iterator[LintFinding]:
    """Find rules that read `lastUpdated`, which every heartbeat moves."""
    for index, rule in enumerate(policy.rules):
        if isinstance(rule.by, ExprRule) and any(
            isinstance(node, String) and node.value == "lastUpdated" for node in walk(rule.by.program.tree)
        ):
            yield LintFinding(
                "ReadsLastUpdated",
                f"/clusterConditions/{index}/evaluate/expr",
                f"{rule.type} reads lastUpdated, so every heartbeat computes the status again, which is several times "
                'slower; to ask for silence, use olderThan(adapters["name"], "7m")',
            )


def _idle_templates(policy: Policy) -> Iterator[LintFinding]:
    """Find `inProgress` templates of rules that are bad when True: their False is a result, not work to be done."""
    for index, rule in enumerate(policy.rules):
        if rule.polarity == "Negative" and rule.templates.in_progress:
            yield LintFinding(
                "InProgressOfNegative",
                f"/clusterConditions/{index}/templates/inProgress",
                f"{rule.type} is bad when True, so its inProgress template is never used; if it is good when True, "
                "set polarity: positive",
            )


def _idle_settings(policy: Policy) -> Iterator[LintFinding]:
    if policy.stale_action == "degraded" and policy.stale_after is None:
        yield LintFinding(
            "StaleActionWithoutThreshold",
            "/policies/staleAction",
            "staleAction has no effect without staleThreshold: no adapter is ever stale",
        )


def _matches(policy: Policy, phase: str, result: Result) -> bool:
    rule = policy.phases.get(phase)
    if rule is None or not rule.required_conditions:
        return False
    return all(result.conditions[type_] == status for type_, status in rule.required_conditions)


def _first(results: Iterator[Result]) -> Result | None:
    return next(results, None)


def _describe(result: Result) -> str:
    states = [f"{name} {state}" for name, state in result.states.items() if state != "Unreported"]
    return "for example " + ", ".join(states) if states else "for example before any adapter has reported"
