"""Step 2: check the preconditions of a file for one event, in their order, up to the first that is not met.

Pure over the API. The result is a value: met (with the variables that captures added), not met, failed, or the resource
is gone. A precondition without conditions and expression is met.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from hyperfleet.adapter.api_calls import ApiAnswer, ApiCaller, prepare, read_object
from hyperfleet.adapter.config import AdapterConfig, Capture, Comparison, LogLevel, LogLine, Precondition
from hyperfleet.adapter.expressions import Expression, evaluate_alone, is_matched
from hyperfleet.adapter.operators import apply_operator
from hyperfleet.adapter.params import Resolved
from hyperfleet.services.secret_keys import REDACTED

_SHOWN = 200  # characters of a value in a message


class RenderedLine(NamedTuple):
    """A line for the log, without secrets."""

    level: LogLevel
    message: str


class PreconditionsMet(Struct, frozen=True):
    """All are met. `resolved` has the variables of captures too."""

    resolved: Resolved
    lines: tuple[RenderedLine, ...] = ()


class PreconditionNotMet(Struct, frozen=True, kw_only=True):
    """One is not met: objects are skipped, and the report says so."""

    name: str
    reason: str  # as the Go adapter writes it: precondition 'N' not met: field op expected (actual: v)
    resolved: Resolved
    cause: Literal["condition", "expression"] = "condition"  # `expression`: it could not be evaluated
    lines: tuple[RenderedLine, ...] = ()


class PreconditionFailed(Struct, frozen=True, kw_only=True):
    """One could not be checked: the event fails. `answer` is that of its API call, if that is what failed."""

    name: str
    message: str
    resolved: Resolved
    answer: ApiAnswer | None = None
    lines: tuple[RenderedLine, ...] = ()


class ResourceGone(Struct, frozen=True, kw_only=True):
    """The API says that the resource does not exist: nothing is done, and nothing is reported."""

    name: str
    resolved: Resolved
    lines: tuple[RenderedLine, ...] = ()


PreconditionResult: TypeAlias = PreconditionsMet | PreconditionNotMet | PreconditionFailed | ResourceGone


class _Ended(Exception):  # noqa: N818 - internal: `check_preconditions` returns the result
    def __init__(self, result: PreconditionResult) -> None:
        self.result = result
        super().__init__()


async def check_preconditions(
    config: AdapterConfig, resolved: Resolved, api: ApiCaller, now: datetime
) -> PreconditionResult:
    """Check preconditions, up to the first that is not met."""
    step = _PreconditionStep(config, resolved, api, now)
    try:
        for precondition in config.preconditions:
            await step.check(precondition)
    except _Ended as ended:
        return ended.result
    return PreconditionsMet(step.resolved, tuple(step.lines))


class _PreconditionStep:
    """Holds the variables while they grow."""

    def __init__(self, config: AdapterConfig, resolved: Resolved, api: ApiCaller, now: datetime) -> None:
        self.lines: list[RenderedLine] = []
        self._config = config
        self._variables = dict(resolved.variables)
        self._secrets = resolved.secrets
        self._api = api
        self._now = now

    @property
    def resolved(self) -> Resolved:
        """Return the variables so far."""
        return Resolved(self._variables, self._secrets)

    async def check(self, precondition: Precondition) -> None:
        """Check one; raise `_Ended` if it is not met."""
        if precondition.log is not None:
            self._log(precondition.log)
        if precondition.call is not None:
            answer = await self._call(precondition)
            self._variables.update(self._capture(precondition, answer))
        if precondition.conditions:
            self._compare(precondition)
        elif precondition.expression is not None:
            self._evaluate(precondition.name, precondition.expression)

    def _log(self, line: LogLine) -> None:
        text, fault = line.message.render(self._variables, self._now)
        shown = f"the message of this line has no value: {fault.message}" if fault else text
        self.lines.append(RenderedLine(line.level, self._secrets.redact(shown)))

    async def _call(self, precondition: Precondition) -> dict[str, Any]:
        assert precondition.call is not None  # noqa: S101 - `check` calls this only then
        request, fault = prepare(precondition.call, self._variables, self._now)
        if request is None:
            raise self._fail(precondition, fault.message if fault else "")
        answer = await self._api.call(request)
        if answer.is_gone:
            raise _Ended(ResourceGone(name=precondition.name, resolved=self.resolved, lines=tuple(self.lines)))
        if not answer.is_success:
            raise self._fail(precondition, answer.describe(), answer)
        value, problem = read_object(answer)
        if problem:
            raise self._fail(precondition, problem, answer)
        return value

    def _capture(self, precondition: Precondition, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the captured variables and the answer itself; captures see the answer, not the params."""
        seen = {**answer, precondition.name: answer}
        captured: dict[str, Any] = {precondition.name: answer}
        for capture in precondition.captures:
            captured[capture.name] = _read(capture, seen, self._now)
        return captured

    def _compare(self, precondition: Precondition) -> None:
        """Evaluate all conditions, so that the reason names all that are not met."""
        missed = []
        for condition in precondition.conditions:
            found = condition.path.find(self._variables)
            outcome = apply_operator(condition.operator, found.value, condition.value)
            if outcome.failure:
                raise self._fail(precondition, f"{condition.path.source} {condition.operator}: {outcome.failure}")
            if not outcome.is_met:
                missed.append(self._explain(condition, found.value))
        if missed:
            raise self._miss(precondition.name, "; ".join(missed))

    def _explain(self, condition: Comparison, actual: Any) -> str:
        is_secret = condition.path.first_name in self._secrets.names
        expected = "" if condition.operator in ("exists", "notExists") else f" {_write(condition.value)}"
        shown = REDACTED if is_secret else _write(actual)
        return f"{condition.path.source} {condition.operator}{expected} (actual: {shown})"

    def _evaluate(self, name: str, expression: Expression) -> None:
        outcome = evaluate_alone(expression, self._config.environment, self._variables, self._now)
        if outcome.failure:
            raise self._miss(name, f"CEL error: {outcome.failure}", "expression")
        if not is_matched(outcome.value):
            raise self._miss(name, f"{expression.source.strip()} (actual: {_write(outcome.value)})")

    def _miss(self, name: str, details: str, cause: Literal["condition", "expression"] = "condition") -> _Ended:
        reason = self._secrets.redact(f"precondition '{name}' not met: {details}")
        return _Ended(
            PreconditionNotMet(name=name, reason=reason, resolved=self.resolved, cause=cause, lines=tuple(self.lines))
        )

    def _fail(self, precondition: Precondition, message: str, answer: ApiAnswer | None = None) -> _Ended:
        return _Ended(
            PreconditionFailed(
                name=precondition.name,
                message=self._secrets.redact(message),
                resolved=self.resolved,
                answer=answer,
                lines=tuple(self.lines),
            )
        )


def _read(capture: Capture, seen: Mapping[str, Any], now: datetime) -> Any:
    """Return a captured value; null if there is none and no default."""
    outcome = evaluate_alone(capture.expression, capture.environment, seen, now)
    if outcome.failure:
        return None if capture.default is UNSET else capture.default
    return outcome.value


def _write(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
