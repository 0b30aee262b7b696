"""Parses the query parameters of a wait into wait conditions, or returns everything that is wrong with them.

    condition=Ready         a condition is True …
    condition=Ready=False   … or has this status; unless `observed=any`, only at the resource's current generation
    phase=Ready             the phase
    adapter=dns             an adapter is Completed …
    adapter=dns=Failed      … or in this state
    generation=3            every adapter that reports has seen this generation or a later one
    deleted                 the resource is gone

Called by the API; `wait_check` decides whether they hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, Literal

from msgspec import Struct

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents.durations import format_duration, parse_duration
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.model.condition import MAX_TYPE, STATUSES, TRUE, TYPE_PATTERN
from hyperfleet.model.phase import PHASES
from hyperfleet.model.report import ADAPTER_PATTERN, MAX_ADAPTER_NAME
from hyperfleet.model.status import ADAPTER_STATES
from hyperfleet.services.parameters import Parameters

FOR: Final = "for"
FAIL_ON: Final = "failOn"
PARAMETERS: Final = (FOR, FAIL_ON, "timeout", "observed")
DEFAULT_TIMEOUT: Final = timedelta(seconds=30)  # shorter than most proxies allow
MAX_TIMEOUT: Final = timedelta(hours=1)  # longer than it takes to provision a cluster
MAX_TERMS: Final = 16  # each is checked for every version of the resource

_MAX_NAME: Final = max(MAX_TYPE, MAX_ADAPTER_NAME)
_READY: Final = "condition=Ready"

WaitSubject = Literal["condition", "phase", "adapter", "generation", "deleted"]


class WaitCondition(Struct, frozen=True):
    """One condition of a wait: `text` as it was written, the `name` of what it is about, and the required value."""

    text: str
    subject: WaitSubject
    name: str = ""
    value: str = ""


class WaitQuery(Struct, frozen=True):
    """A wait, or what is wrong with its parameters."""

    conditions: tuple[WaitCondition, ...] = ()
    failures: tuple[WaitCondition, ...] = ()
    timeout: timedelta = DEFAULT_TIMEOUT
    is_any_generation: bool = False
    errors: tuple[BodyProblem, ...] = ()


def read_wait_query(parameters: Mapping[str, Sequence[str]]) -> WaitQuery:
    """Parse the parameters of a wait; without `for`, it waits for Ready."""
    given = Parameters(parameters)
    given.refuse_unknown(PARAMETERS)
    conditions = _read_conditions(given, FOR, given.all(FOR) or [_READY])
    failures = _read_conditions(given, FAIL_ON, given.all(FAIL_ON))
    if len({condition.subject == "deleted" for condition in conditions}) > 1:
        given.refuse(FOR, "Exclusive", "nothing else can hold once it is deleted; wait for that alone")
    timeout = _read_timeout(given)
    observed = given.one("observed")
    if observed not in (None, "any", "current"):
        message = f"observed is current or any (the generation that a condition may be of), not {quote(observed)}"
        given.refuse("observed", "NotAllowed", message)
    if given.errors:
        return WaitQuery(errors=tuple(given.errors))
    return WaitQuery(conditions, failures, timeout, observed == "any")


def _read_conditions(given: Parameters, name: str, texts: Sequence[str]) -> tuple[WaitCondition, ...]:
    if len(texts) > MAX_TERMS:
        given.refuse(name, "TooMany", f"{name} is given {len(texts)} times; at most {MAX_TERMS} are allowed")
    found = [_read_condition(given, name, text.strip()) for text in texts[:MAX_TERMS]]
    return tuple([condition for condition in found if condition is not None])


def _read_condition(given: Parameters, name: str, text: str) -> WaitCondition | None:
    subject = text.partition("=")[0]
    form = _FORMS.get(subject)
    if form is None:
        guess = suggest(subject[:_MAX_NAME], tuple(_FORMS))
        given.refuse(name, "BadFormat", f"found {quote(text)}, expected one of {', '.join(_FORMS)}{guess}")
        return None
    match = re.fullmatch(form.pattern, text)
    parts = match.groupdict() if match else {}
    if match is None or len(parts.get("name") or "") > _MAX_NAME:
        given.refuse(name, "BadFormat", f"found {quote(text)}, expected {form.rule}")
        return None
    return WaitCondition(text, form.subject, parts.get("name") or "", parts.get("value") or form.default)


class _Form(Struct, frozen=True):
    """How a condition on one subject is written, as a pattern and in words; `default` is the value if none is given."""

    subject: WaitSubject
    pattern: str
    rule: str
    default: str = ""


def _any_of(words: Sequence[str]) -> str:
    return f"(?P<value>{'|'.join(words)})"


_FORMS: Final[Mapping[str, _Form]] = {
    form.subject: form
    for form in (
        _Form(
            "condition",
            f"condition=(?P<name>{TYPE_PATTERN.pattern})(?:={_any_of(STATUSES)})?",
            f"condition= and a type such as Ready; with = behind it one of {', '.join(STATUSES)}",
            TRUE,
        ),
        _Form("phase", f"phase={_any_of(PHASES)}", f"phase= and one of {', '.join(PHASES)}"),
        _Form(
            "adapter",
            f"adapter=(?P<name>{ADAPTER_PATTERN.pattern})(?:={_any_of(ADAPTER_STATES)})?",
            f"adapter= and the name of one; with = behind it one of {', '.join(ADAPTER_STATES)}",
            "Completed",
        ),
        _Form("generation", f"generation={_any_of(['[0-9]{1,18}'])}", "generation= and a whole number"),
        _Form("deleted", "deleted", "deleted alone"),
    )
}
WAIT_CONDITION_PATTERN: Final = "|".join(re.sub(r"\?P<\w+>", "?:", form.pattern) for form in _FORMS.values())


def _read_timeout(given: Parameters) -> timedelta:
    text = given.one("timeout")
    if text is None:
        return DEFAULT_TIMEOUT
    try:
        timeout = parse_duration(text)
    except ValueError as error:
        given.refuse("timeout", "BadFormat", str(error))
        return DEFAULT_TIMEOUT
    if timeout > MAX_TIMEOUT:
        message = f"a wait lasts {format_duration(MAX_TIMEOUT)} at most; wait again, nothing is lost in between"
        given.refuse("timeout", "OutOfRange", message)
    return timeout
