"""Warn of rules that let adapters go stale: legal, and likely not what was meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from hyperfleet.aggregation.policy import Policy
from hyperfleet.documents.durations import short_duration
from hyperfleet.sentinel.rules import SHORTEST_PAUSE, RuleSet
from hyperfleet.sentinel.schedule import resync_age


def find_warnings(rules: RuleSet, policies: Iterable[Policy]) -> tuple[str, ...]:
    """Return a sentence for each policy whose settled resources are looked at too rarely.

    An adapter reports when it is asked to look. To miss one report, and then another, must not make it stale: so a
    settled resource must be looked at every third of `staleThreshold`.
    """
    return tuple(_warnings(rules, policies))


def _warnings(rules: RuleSet, policies: Iterable[Policy]) -> Iterator[str]:
    for policy in policies:
        if policy.stale_after is None or not policy.required:
            continue
        wanted, given = policy.stale_after / 3, _longest_pause(rules, policy)
        if given is None:
            yield f"no rule looks at every settled resource of the policy {policy.name}: its adapters go stale"
        elif given > wanted:
            yield (
                f"settled resources of the policy {policy.name} are looked at every {short_duration(given)}, and its "
                f"staleThreshold of {short_duration(policy.stale_after)} needs every {short_duration(wanted)}"
            )


def _longest_pause(rules: RuleSet, policy: Policy) -> timedelta | None:
    """Return how often every settled resource is looked at; rules with conditions are for some resources only."""
    pauses = [
        resync_age(policy) if rule.after is None else rule.after
        for rule in (*rules.of("ready"), *rules.of("any"))
        if not rule.where and not rule.when
    ]
    return max(min(pauses), SHORTEST_PAUSE) if pauses else None
