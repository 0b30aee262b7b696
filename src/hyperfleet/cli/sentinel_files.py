"""Rules of a file for `hyperfleet sentinel -f`: evaluated in this process, on every resource of the fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hyperfleet.aggregation import load_policies
from hyperfleet.api.answer_decoding import answer_decoder
from hyperfleet.cli.sentinel_findings import Finding
from hyperfleet.model.kind import Kind, Kinds
from hyperfleet.ports import LoggedEvent, Record
from hyperfleet.sentinel.decision import decide, triggers_of
from hyperfleet.sentinel.go_decision import GoSentinel
from hyperfleet.sentinel.rules import RuleSet
from hyperfleet.sentinel.schedule import NO_LOOKS, DueRule, LookedAt, after_look, due_rules
from hyperfleet.services.workspace import Rules

if TYPE_CHECKING:
    from hyperfleet.client import Fleet

GO_RULE: Final = "message-decision"  # the reason of events that a file of the Go sentinel asks for
_PAGE: Final = 100  # the most that the compat API gives
_KEYWORDS: Final = {"labelSelector": "labels", "adapterState": "adapter_state", "blockedBy": "blocked_by"}
_MINUTE: Final = timedelta(minutes=1)


class GoRules:
    """The decision of a Go sentinel, on the form that it reads: one event per pass and resource, as there."""

    def __init__(self, fleet: Fleet, sentinel: GoSentinel) -> None:
        """Read through the compat API."""
        self._fleet = fleet
        self._sentinel = sentinel
        self.interval = sentinel.poll_interval
        self._kind = next((kind for kind in Kinds() if kind.plural == sentinel.resource_type), None)

    def findings(self) -> Iterator[Finding]:
        """Yield a decision for each resource that the selector matches."""
        now = datetime.now(UTC)
        for resource in self._resources():
            decision = self._sentinel.decide(resource, now)
            kind = self._kind or Kind(str(resource.get("kind", "")), self._sentinel.resource_type, "")
            rule = GO_RULE if decision.is_wanted else None
            data = self._sentinel.data(resource, decision.reason).data if decision.is_wanted else {}
            yield Finding(kind, str(resource["id"]), str(resource.get("name", "")), rule, decision.reason, data)

    def note(self, finding: Finding) -> None:
        """Remember nothing: the Go sentinel does not."""

    def _resources(self) -> Iterator[Mapping[str, Any]]:
        search = " and ".join(f"labels.{key}='{_escape(value)}'" for key, value in sorted(self._sentinel.labels))
        page = seen = 0
        while True:
            page += 1
            answer = self._fleet.compat_page(self._sentinel.resource_type, page=page, size=_PAGE, search=search)
            for item in answer.items:
                yield msgspec.json.decode(item)
            seen += len(answer.items)
            if not answer.items or seen >= answer.total:
                return


class OwnRules:
    """Rules of ours in a file, with the policy in force. What was asked for is remembered in this process only."""

    def __init__(self, fleet: Fleet, rules: RuleSet, clock: Callable[[], datetime]) -> None:
        """Read through the API."""
        self._fleet = fleet
        self._rules = rules
        self._clock = clock
        self._looked: dict[str, LookedAt] = {}  # what was asked for, by id
        self.interval = _MINUTE

    def findings(self) -> Iterator[Finding]:
        """Yield a decision for each resource for which a rule is due."""
        policy = self._fleet.policy()
        rules = Rules(load_policies(policy.text, policy.file, Kinds()), policy.version, Kinds(), _render_nothing)
        decode, now = answer_decoder(rules), self._clock()
        for kind in Kinds():
            matching = self._matching(kind)
            for document in self._list(kind):
                restored = decode(_as_event(document, kind, now))
                resource, status = restored.resource, restored.status
                known = self._looked.get(resource.id)
                history = NO_LOOKS if known is None else known.history
                looked_at = LookedAt(resource, status, rules.policies.select(resource), history=history)
                due = [
                    each
                    for each in due_rules(looked_at, self._rules, now)
                    if each.rule.name not in matching or resource.id in matching[each.rule.name]
                ]
                if due:
                    yield self._judge(kind, document, looked_at, due, now)

    def note(self, finding: Finding) -> None:
        """Remember that adapters were asked to look at a resource."""
        rule = self._rules.get(finding.rule or "")
        if rule is not None:
            self._looked[finding.id] = after_look(self._looked[finding.id], rule, self._clock())

    def _judge(
        self, kind: Kind, document: Mapping[str, Any], looked_at: LookedAt, due: Sequence[DueRule], now: datetime
    ) -> Finding:
        self._looked[looked_at.resource.id] = looked_at
        decision = decide(document, triggers_of(looked_at, due, now), now)
        resource = looked_at.resource
        return Finding(kind, resource.id, resource.name, decision.rule, decision.why)

    def _matching(self, kind: Kind) -> dict[str, frozenset[str]]:
        """Return the ids of the resources that the `where` of each rule admits."""
        return {
            rule.name: frozenset(str(each["id"]) for each in self._list(kind, fields="id", **_keywords(rule.where)))
            for rule in self._rules.rules
            if rule.where
        }

    def _list(self, kind: Kind, **filters: Any) -> Iterator[Mapping[str, Any]]:
        resources: Any = self._fleet.clusters if kind.name == "Cluster" else self._fleet.node_pools
        for each in resources.list(**filters):
            yield each.raw


def _keywords(where: Mapping[str, str]) -> dict[str, str]:
    """Return parameters of a list under the names that the client gives them."""
    return {_KEYWORDS.get(key, key): value for key, value in where.items()}


def _render_nothing(_: Record) -> bytes:
    return b""


def _as_event(document: Mapping[str, Any], kind: Kind, now: datetime) -> LoggedEvent:
    """Return an event with an answer, from which the resource and its status are decoded."""
    answer = msgspec.json.encode(document)
    return LoggedEvent(0, "StatusChanged", kind.name, str(document["id"]), None, "", 0, now, answer, None)


def _escape(value: str) -> str:
    return value.replace("'", "''")
