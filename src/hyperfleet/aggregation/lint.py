"""Rules that are legal but almost surely wrong.

Most findings come from trying every combination of adapter states (`enumeration`): not what a rule looks like is
judged, but what it does. The guards of `phase` keep such rules from doing harm; a finding says what they hide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from hyperfleet.aggregation.enumeration import Enumeration, Result, enumerate_states
from hyperfleet.aggregation.policy import Policy
from hyperfleet.model.status import AdapterState, Phase


class Finding(Struct, frozen=True):
    """One warning about a policy; `pointer` says where in its document."""

    code: str
    pointer: str
    message: str


def lint(policy: Policy, enumeration: Enumeration | None = None) -> tuple[Finding, ...]:
    """Return what is likely wrong with a policy that loads."""
    tried = enumeration or enumerate_states(policy)
    return (
        *_unconfigured_adapters(policy),
        *_eager_phases(policy, tried.results.values()),
        *_forgetful_ready(policy, tried.results.values()),
        *_unreachable_phases(policy, tried.results.values()),
        *_constant_conditions(policy, tried.results.values()),
        *_idle_settings(policy),
    )


def _unconfigured_adapters(policy: Policy) -> Iterator[Finding]:
    """Find adapters that a rule names and nobody is expected to run."""
    for index, rule in enumerate(policy.rules):
        for name in rule.named_adapters:
            if name not in policy.required and name not in policy.optional:
                yield Finding(
                    "UnconfiguredAdapter",
                    f"/clusterConditions/{index}/evaluate/expr",
                    f"{rule.type} names the adapter {name}, which is neither required nor optional; it reads as "
                    "Unknown until something reports under that name",
                )


# What must be going on for the policy to want a phase with good reason.
_EVIDENCE: Final[dict[Phase, AdapterState]] = {"Failed": "Failed", "Provisioning": "Running"}


def _eager_phases(policy: Policy, results: Iterable[Result]) -> Iterator[Finding]:
    """Find conditions behind a phase that match although no adapter is in the state they are about."""
    results = list(results)
    for phase, state in _EVIDENCE.items():
        wrong = [r for r in results if _wants(policy, phase, r) and state not in r.states.values()]
        # The example that people meet first: somebody is at work.
        example = _first(r for r in wrong if "Running" in r.states.values()) or _first(iter(wrong))
        if example:
            types = ", ".join(type_ for type_, _ in policy.phases[phase].required_conditions)
            yield Finding(
                f"{phase}Without{state}Adapter",
                f"/phases/{phase.lower()}/requiredConditions",
                f'{types} also matches when no adapter is {state} ({_tell(example)}); test .state == "{state}"',
            )


def _forgetful_ready(policy: Policy, results: Iterable[Result]) -> Iterator[Finding]:
    """Find conditions behind ready that hold although an adapter is behind the current generation."""
    example = _first(
        result
        for result in results
        if _wants(policy, "Ready", result) and any(result.states.get(name) == "Outdated" for name in policy.required)
    )
    if example:
        types = ", ".join(type_ for type_, _ in policy.phases["Ready"].required_conditions)
        yield Finding(
            "ReadyIgnoresGeneration",
            "/phases/ready/requiredConditions",
            f"{types} also matches when an adapter has not reported for the current generation "
            f'({_tell(example)}); test .observedGeneration == currentGeneration or .state == "Completed"',
        )


def _unreachable_phases(policy: Policy, results: Iterable[Result]) -> Iterator[Finding]:
    """Find phases that no combination leads to, and wishes of the policy that never come true."""
    results = list(results)
    reached = {result.phase for result in results}
    if policy.required and "Ready" not in reached:
        yield Finding("UnreachablePhase", "/phases/ready", "no combination of adapter states leads to Ready")
    for phase, rule in policy.phases.items():
        if rule.required_conditions and not any(_wants(policy, phase, result) for result in results):
            types = ", ".join(f"{type_}={status}" for type_, status in rule.required_conditions)
            yield Finding(
                "PhaseNeverWanted",
                f"/phases/{phase.lower()}/requiredConditions",
                f"no combination of adapter states gives {types}",
            )


def _constant_conditions(policy: Policy, results: Iterable[Result]) -> Iterator[Finding]:
    """Find rules that say the same whatever the adapters do."""
    results = list(results)
    for index, rule in enumerate(policy.rules):
        seen = {result.conditions[rule.type] for result in results}
        if len(seen) == 1 and len(results) > 1:
            yield Finding(
                "ConstantCondition",
                f"/clusterConditions/{index}",
                f"{rule.type} is {seen.pop()} whatever the adapters report",
            )


def _idle_settings(policy: Policy) -> Iterator[Finding]:
    if policy.stale_action == "degraded" and policy.stale_after is None:
        yield Finding(
            "StaleActionWithoutThreshold",
            "/policies/staleAction",
            "staleAction has no effect without staleThreshold: no adapter is ever stale",
        )


def _wants(policy: Policy, phase: str, result: Result) -> bool:
    rule = policy.phases.get(phase)
    if rule is None or not rule.required_conditions:
        return False
    return all(result.conditions[type_] == status for type_, status in rule.required_conditions)


def _first(results: Iterator[Result]) -> Result | None:
    return next(results, None)


def _tell(result: Result) -> str:
    told = [f"{name} {state}" for name, state in result.states.items() if state != "Unreported"]
    return "for example " + ", ".join(told) if told else "for example before anybody has reported"
