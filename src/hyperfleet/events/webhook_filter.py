"""Decides which changes and which failures a webhook is about. Pure; `webhook_sender` calls it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from hyperfleet.events.webhook_checks import label_terms
from hyperfleet.events.webhook_target import Webhook, WebhookFilter
from hyperfleet.model.condition import TRUE
from hyperfleet.model.event import PHASE_SUBJECT
from hyperfleet.model.phase import TROUBLED_PHASES
from hyperfleet.ports import EVERYTHING, LoggedChange, Record, RecordedTransition, Scope, TokenTerm
from hyperfleet.services.failures import Failure
from hyperfleet.services.watch_filter import term_holds

_TROUBLED: Final = frozenset(f"p:{phase}" for phase in TROUBLED_PHASES)


class ChangeFilter(Struct, frozen=True):
    """What a webhook is about."""

    wanted: WebhookFilter
    scope: Scope
    labels: tuple[TokenTerm, ...]

    @classmethod
    def of(cls, webhook: Webhook) -> ChangeFilter:
        """Return the filter of a webhook."""
        scope = EVERYTHING if webhook.tenants is None else Scope(frozenset(webhook.tenants))
        return cls(webhook.filter, scope, label_terms(webhook.filter.label_selector))

    def concerns(self, kind: str, tenant: str) -> bool:
        """Tell whether resources of a kind and tenant are sent at all."""
        return self.scope.admits(tenant) and (not self.wanted.kinds or kind in self.wanted.kinds)

    def admits_failure(self, failure: Failure, record: Record) -> bool:
        """Tell whether a failure of a resource is sent."""
        wanted, status = self.wanted, record.status
        labels = {f"l:{key}={value}" for key, value in record.resource.labels.items()}
        return (
            self.concerns(record.resource.kind, record.resource.tenant)
            and self._has_labels(labels)
            and (not wanted.phases or status.phase in wanted.phases)
            and (not wanted.conditions or not all(_is_true(record, each) for each in wanted.conditions))
            and (not wanted.causes or failure.adapter in wanted.causes or failure.reason in wanted.causes)
        )

    def admits_change(self, change: LoggedChange) -> bool:
        """Tell whether a change is sent: it has transitions, and for every key of the filter one that matches."""
        if not change.transitions or not self.concerns(change.kind, change.tenant):
            return False
        wanted = self.wanted
        return (
            self._has_labels(_tokens_of(change))
            and (not wanted.phases or any(self._is_phase(each) for each in change.transitions))
            and (
                not wanted.conditions
                or any(each.transition.subject in wanted.conditions for each in change.transitions)
            )
            and (not wanted.causes or any(each.transition.reason in wanted.causes for each in change.transitions))
        )

    def _is_phase(self, moved: RecordedTransition) -> bool:
        phases, transition = self.wanted.phases, moved.transition
        return transition.subject == PHASE_SUBJECT and (transition.before in phases or transition.after in phases)

    def _has_labels(self, tokens: Collection[str]) -> bool:
        return all(term_holds(term, tokens) for term in self.labels)


def may_fail(change: LoggedChange) -> bool:
    """Tell whether the resource of a change may have a failing adapter now; cheap, from its tokens."""
    if change.facets is None:  # they did not change: perhaps the message of a failure did
        return change.type != "Removed"
    return any(
        token in _TROUBLED
        or token.startswith("s:")
        or (token[:2] == "a:" and token.endswith(("=Failed", "=Unhealthy")))
        for token in (*change.facets.kept, *change.facets.gained)
    )


def _is_true(record: Record, type_: str) -> bool:
    condition = record.status.condition(type_)
    return condition is not None and condition.status == TRUE


def _tokens_of(change: LoggedChange) -> frozenset[str]:
    """Return the tokens after a change; of a removed resource, its last ones."""
    facets = change.facets
    if facets is None:
        return frozenset()
    return frozenset((*facets.kept, *(facets.lost if change.type == "Removed" else facets.gained)))
