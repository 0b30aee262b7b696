"""What somebody waits for: from query parameters to wishes, or to everything that is wrong with them.

    condition=Ready         a condition is True …
    condition=Ready=False   … or what is said; unless told otherwise, only as of the resource's present generation
    phase=Ready             the phase
    adapter=dns             an adapter is Completed …
    adapter=dns=Failed      … or in the state that is said
    generation=3            every adapter that reports has seen this generation or a later one
    deleted                 the resource is gone

Called by the API; `waiting` tells whether they hold.
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
DEFAULT_TIMEOUT: Final = timedelta(seconds=30)
MAX_TIMEOUT: Final = timedelta(hours=1)
MAX_TERMS: Final = 16

_MAX_NAME: Final = max(MAX_TYPE, MAX_ADAPTER_NAME)
_READY: Final = "condition=Ready"

Subject = Literal["condition", "phase", "adapter", "generation", "deleted"]


class Wish(Struct, frozen=True):
    """One thing that is waited for: `text` as it was written, `name` of what, and the value it must have."""

    text: str
    subject: Subject
    name: str = ""
    value: str = ""


class Waiting(Struct, frozen=True):
    """What is waited for, or what is wrong with the parameters."""

    wishes: tuple[Wish, ...] = ()
    failures: tuple[Wish, ...] = ()
    timeout: timedelta = DEFAULT_TIMEOUT
    is_any_generation: bool = False
    errors: tuple[BodyProblem, ...] = ()


def read_waiting(parameters: Mapping[str, Sequence[str]]) -> Waiting:
    """Read the parameters of a wait; without `for`, it is for Ready."""
    given = Parameters(parameters)
    given.refuse_unknown(PARAMETERS)
    wishes = _read_wishes(given, FOR, given.all(FOR) or [_READY])
    failures = _read_wishes(given, FAIL_ON, given.all(FAIL_ON))
    if len({wish.subject == "deleted" for wish in wishes}) > 1:
        given.refuse(FOR, "Exclusive", "nothing else can hold of what is deleted; wait for that alone")
    timeout = _read_timeout(given)
    observed = given.one("observed")
    if observed not in (None, "any", "current"):
        message = f"observed is current or any: of which generation a condition may be, not {quote(observed)}"
        given.refuse("observed", "NotAllowed", message)
    if given.errors:
        return Waiting(errors=tuple(given.errors))
    return Waiting(wishes, failures, timeout, observed == "any")


def _read_wishes(given: Parameters, name: str, texts: Sequence[str]) -> tuple[Wish, ...]:
    if len(texts) > MAX_TERMS:
        given.refuse(name, "TooMany", f"{name} is given {len(texts)} times; at most {MAX_TERMS} are allowed")
    wishes = [_read_wish(given, name, text.strip()) for text in texts[:MAX_TERMS]]
    return tuple([wish for wish in wishes if wish is not None])


def _read_wish(given: Parameters, name: str, text: str) -> Wish | None:
    subject = text.partition("=")[0]
    form = _FORMS.get(subject)
    if form is None:
        guess = suggest(subject[:_MAX_NAME], tuple(_FORMS))
        given.refuse(name, "BadFormat", f"found {quote(text)}, expected one of {', '.join(_FORMS)}{guess}")
        return None
    match = re.fullmatch(form.pattern, text)
    said = match.groupdict() if match else {}
    if match is None or len(said.get("name") or "") > _MAX_NAME:
        given.refuse(name, "BadFormat", f"found {quote(text)}, expected {form.rule}")
        return None
    return Wish(text, form.subject, said.get("name") or "", said.get("value") or form.default)


class _Form(Struct, frozen=True):
    """How a wish about one subject is written, in a pattern and in words; a value that is not said is the good one."""

    subject: Subject
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
WISH_PATTERN: Final = "|".join(re.sub(r"\?P<\w+>", "?:", form.pattern) for form in _FORMS.values())


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
