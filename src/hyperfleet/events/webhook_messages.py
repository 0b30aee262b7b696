"""The messages of webhooks in their three forms: CloudEvents, Slack-compatible, Alertmanager. Pure.

A notice is what there is to say; `write_notice` writes it for a receiver.

    io.hyperfleet.problem.opened        an adapter fails on resources, for the same cause
    io.hyperfleet.problem.resolved      … and no longer does on any of them
    io.hyperfleet.<kind>.status.changed one change with all its transitions, as on the broker
    io.hyperfleet.gap                   changes were lost before they could be sent
    io.hyperfleet.webhook.test          an administrator asked for it
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import Struct

from hyperfleet.events.cloud_events import CONTENT_TYPE, encode_event
from hyperfleet.events.making import TYPE_PREFIX, Origin, gap_message, messages_of
from hyperfleet.events.webhook_data import CauseOfProblem, MemberData, ProbeData, ProblemData
from hyperfleet.events.webhook_state import Member, Problem
from hyperfleet.events.webhook_target import Webhook
from hyperfleet.messaging import Message
from hyperfleet.ports import LogGap, LoggedChange

MAX_SHOWN: Final = 20  # members of one message; `count` has the number of all
_MAX_TEXT: Final = 2_900  # characters of a section; Slack takes 3,000
_EXPIRY: Final = timedelta(minutes=10)  # Alertmanager ends what is not repeated; it is repeated every 2 minutes
_JSON: Final = "application/json"
# Characters that have a meaning in Slack's mrkdwn, and control characters.
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ESCAPED: Final = re.compile(r"[&<>\x00-\x1f\x7f]")


class ProblemNotice(Struct, frozen=True):
    """A problem that is new, has grown or is over."""

    id: str
    problem: Problem
    time: datetime


class ChangeNotice(Struct, frozen=True):
    """One change with its transitions."""

    change: LoggedChange


class GapNotice(Struct, frozen=True):
    """Changes that were lost."""

    gap: LogGap
    time: datetime


class ProbeNotice(Struct, frozen=True):
    """A message that says nothing but that messages arrive."""

    id: str
    time: datetime


Notice = ProblemNotice | ChangeNotice | GapNotice | ProbeNotice


class WrittenNotice(Struct, frozen=True):
    """The body of a request to a receiver."""

    body: bytes
    content_type: str


def write_notice(notice: Notice, webhook: Webhook, origin: Origin) -> WrittenNotice:
    """Write a notice in the form that a receiver expects."""
    match webhook.format:
        case "slack":
            return WrittenNotice(msgspec.json.encode(_slack_message(notice)), _JSON)
        case "alertmanager":
            return WrittenNotice(msgspec.json.encode([*_alerts(notice)]), _JSON)
    return WrittenNotice(encode_event(_cloud_event(notice, webhook.name, origin)), CONTENT_TYPE)


# ── CloudEvents ────────────────────────────────────────────────────────────────────────────────────────────────


def _cloud_event(notice: Notice, name: str, origin: Origin) -> Message:
    match notice:
        case ChangeNotice(change):
            return next(each for each in messages_of(change, origin) if each.topic == "statusUpdates")
        case GapNotice(gap, time):
            return msgspec.structs.replace(gap_message(gap, origin), source=origin.webhook(name), time=time)
        case ProbeNotice(id_, time):
            data = msgspec.json.encode(ProbeData(webhook=name))
            return _message(id_, origin.webhook(name), "webhook.test", f"webhook/{name}", time, data)
        case ProblemNotice():
            return _problem_event(notice, origin.webhook(name))


def _problem_event(notice: ProblemNotice, source: str) -> Message:
    problem = notice.problem
    since = int(problem.since.timestamp() * 1000)
    message = _message(
        f"{notice.id}-{since}-{problem.number + 1}",  # the same if it is sent twice, so that receivers can tell
        source,
        "problem.resolved" if problem.is_over else "problem.opened",
        f"problem/{notice.id}",
        notice.time,
        msgspec.json.encode(_problem_data(notice)),
    )
    tenants = {member.tenant for member in (problem.members or problem.left).values()}
    return msgspec.structs.replace(message, tenant=tenants.pop()) if len(tenants) == 1 else message


def _message(id_: str, source: str, verb: str, subject: str, time: datetime, data: bytes) -> Message:
    return Message("statusUpdates", id_, source, f"{TYPE_PREFIX}.{verb}", subject, time, "", subject, data)


def _problem_data(notice: ProblemNotice) -> ProblemData:
    problem = notice.problem
    return ProblemData(
        cause=CauseOfProblem(id=notice.id, adapter=problem.adapter, reason=problem.reason, message=problem.message),
        example=problem.example,
        members=tuple(
            MemberData(id=id_, kind=each.kind, name=each.name, tenant=each.tenant, href=each.href, since=each.since)
            for id_, each in islice(_news(problem).items(), MAX_SHOWN)
        ),
        new=0 if problem.is_over else len(_news(problem)),
        count=problem.recovered if problem.is_over else len(problem.members),
        since=problem.since,
    )


def _news(problem: Problem) -> Mapping[str, Member]:
    """Return the members that a message is about: those not sent yet, or those that have recovered."""
    if problem.is_over:
        return problem.left
    return {id_: each for id_, each in problem.members.items() if not each.is_told} or problem.members


# ── Slack-compatible ───────────────────────────────────────────────────────────────────────────────────────────


def _slack_message(notice: Notice) -> dict[str, Any]:
    title, detail = _slack_texts(notice)
    blocks = [_section(f"*{title}*"), *([_section(detail)] if detail else [])]
    return {"text": title[:_MAX_TEXT], "blocks": blocks}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:_MAX_TEXT]}}


def _slack_texts(notice: Notice) -> tuple[str, str]:
    """Return a title and what is below it, both escaped."""
    match notice:
        case ProblemNotice(_, problem, _):
            cause = _escape(f"{problem.adapter}: {problem.reason or 'failing'}")
            if problem.is_over:
                return f":white_check_mark: Resolved: {cause}", f"{_resources(problem.recovered)} recovered"
            lines = (_escape(problem.message), _names(problem))
            return f":red_circle: {cause} on {_resources(len(problem.members))}", "\n".join(filter(None, lines))
        case ChangeNotice(change):
            return _escape(f"{change.kind} {change.name or change.resource_id}"), "\n".join(_transition_lines(change))
        case GapNotice(gap, _):
            lost = f"Changes {gap.after + 1} to {gap.upto} were lost before they could be sent"
            return f":warning: {lost}", "The open problems are looked up again."
    return ":wave: HyperFleet can send messages here", ""


def _names(problem: Problem) -> str:
    members = _news(problem)
    shown = ", ".join(_escape(each.name or id_) for id_, each in islice(members.items(), MAX_SHOWN))
    rest = len(members) - MAX_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def _transition_lines(change: LoggedChange) -> Iterator[str]:
    for moved in change.transitions:
        each = moved.transition
        why = f" ({each.reason})" if each.reason else ""
        yield _escape(f"{each.subject}: {each.before or 'none'} to {each.after or 'none'}{why}")


def _resources(count: int) -> str:
    return f"{count} resource{'' if count == 1 else 's'}"


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[0], " "), text)


# ── Alertmanager ───────────────────────────────────────────────────────────────────────────────────────────────


def _alerts(notice: Notice) -> Iterator[dict[str, Any]]:
    """Yield alerts as of `POST /api/v2/alerts`: one per resource, as Alertmanager groups them itself."""
    match notice:
        case ProblemNotice(_, problem, time):
            for id_, member in problem.members.items():
                yield _problem_alert(problem, id_, member, time + _EXPIRY)
            for id_, member in problem.left.items():
                yield _problem_alert(problem, id_, member, time)
        case GapNotice(gap, time):
            summary = f"Changes {gap.after + 1} to {gap.upto} were lost before they could be sent"
            yield _alert({"alertname": "HyperFleetChangesLost"}, {"summary": summary}, time, time + _EXPIRY)
        case ProbeNotice(_, time):
            summary = "HyperFleet can send alerts here"
            yield _alert({"alertname": "HyperFleetWebhookTest"}, {"summary": summary}, time, time + _EXPIRY)


def _problem_alert(problem: Problem, id_: str, member: Member, ends: datetime) -> dict[str, Any]:
    labels = {
        "alertname": "HyperFleetProblem",
        "kind": member.kind,
        "name": member.name,
        "resource_id": id_,
        "tenant": member.tenant,
        "adapter": problem.adapter,
        "reason": problem.reason,
    }
    summary = f"{problem.adapter} fails on {member.kind} {member.name or id_}: {problem.reason or 'no reason given'}"
    annotations = {"summary": summary, "description": problem.message, "href": member.href}
    return _alert(labels, annotations, member.since, ends)


def _alert(labels: dict[str, str], annotations: dict[str, str], starts: datetime, ends: datetime) -> dict[str, Any]:
    """Return an alert; Alertmanager refuses labels without a value, and an end before the start."""
    return {
        "labels": {key: value for key, value in labels.items() if value},
        "annotations": {key: value for key, value in annotations.items() if value},
        "startsAt": min(starts, ends),
        "endsAt": ends,
    }
