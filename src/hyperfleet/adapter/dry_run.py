"""The trace of a dry run: what an event would do, as a document and as a text. Pure.

The command runs `reconcile` with recorded answers of the API and a cluster in memory, and shows the result with this.
Every value goes through the secrets of the event: none is in a trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from hyperfleet.adapter.api_calls import ApiAnswer, ApiRequest
from hyperfleet.adapter.config import AdapterConfig
from hyperfleet.adapter.discovery import is_secret_object
from hyperfleet.adapter.preconditions import PreconditionFailed, PreconditionNotMet, PreconditionsMet, ResourceGone
from hyperfleet.adapter.reconcile import EventResult
from hyperfleet.adapter.secrets import Secrets
from hyperfleet.services.secret_keys import REDACTED

_BUILT_IN: Final = frozenset(("adapter", "config", "env", "event"))
_SHOWN: Final = 100  # characters of a value in the text
_HIDDEN_HEADERS: Final = frozenset(("authorization", "cookie", "proxy-authorization", "x-api-key"))


class ClusterOperation(Struct, frozen=True, kw_only=True):
    """One call of the cluster in memory."""

    verb: str
    object: str
    outcome: str
    error: str = ""


class DryRunInput(Struct, frozen=True, kw_only=True):
    """Everything that a trace is made of."""

    config: AdapterConfig
    event: Mapping[str, Any]
    result: EventResult
    requests: Sequence[tuple[ApiRequest, ApiAnswer]] = ()
    operations: Sequence[ClusterOperation] = ()


def make_trace(run: DryRunInput) -> dict[str, Any]:
    """Return the whole trace, with the keys of the Go adapter's."""
    result = run.result
    trace = {
        "adapter": run.config.name,
        "event": dict(run.event),
        "status": result.status,
        "params": _params(run),
        "preconditions": list(_preconditions(run)),
        "resources": [_outcome(each) for each in result.run.objects.outcomes],
        "discoveredResources": {name: _hide(each) for name, each in sorted(result.run.objects.resources.items())},
        "payloads": _payloads(result),
        "postActions": [_action(each) for each in result.actions],
        "errors": list(_errors(result)),
        "log": [{"level": each.level, "message": each.message} for each in result.lines],
        "apiRequests": [_request(request, answer) for request, answer in run.requests],
        "transportOperations": [msgspec.to_builtins(each) for each in run.operations],
    }
    redacted: dict[str, Any] = result.run.secrets.redact_value(trace)
    return redacted


def _params(run: DryRunInput) -> dict[str, Any]:
    variables = run.result.run.variables
    shown = {each.name: variables[each.name] for each in run.config.params if each.name in variables}
    captured = {name: value for name, value in variables.items() if name not in _BUILT_IN and name not in shown}
    return _shown(run.result.run.secrets, {**shown, **captured})


def _shown(secrets: Secrets, variables: Mapping[str, Any]) -> dict[str, Any]:
    return secrets.redact_variables(variables)


def _preconditions(run: DryRunInput) -> Iterator[dict[str, str]]:
    checked = run.result.preconditions
    if checked is None:
        return
    stopped = "" if isinstance(checked, PreconditionsMet) else checked.name
    for each in run.config.preconditions:
        if each.name != stopped:
            yield {"name": each.name, "result": "PASS"}
            continue
        match checked:
            case PreconditionNotMet():
                yield {"name": each.name, "result": "NOT MET", "detail": checked.reason}
            case PreconditionFailed():
                yield {"name": each.name, "result": "FAIL", "detail": checked.message}
            case ResourceGone():
                yield {"name": each.name, "result": "NOT MET", "detail": "ResourceNotFound"}
        return


def _outcome(outcome: Any) -> dict[str, Any]:
    shown = {"name": outcome.name, "operation": outcome.operation, "reason": outcome.reason}
    shown["objects"] = [str(ref) for ref in outcome.refs]
    return {**shown, "manifest": _hide(outcome.manifest)} if outcome.manifest is not None else shown


def _hide(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Hide what a Secret holds, whether it is known as a secret or not."""
    if not is_secret_object(found):
        return found
    hidden = {
        key: dict.fromkeys(found[key], REDACTED) for key in ("data", "stringData") if isinstance(found.get(key), dict)
    }
    return {**found, **hidden}


def _payloads(result: EventResult) -> dict[str, Any]:
    built = result.built
    return {each.name: each.document for each in built.payloads if each.text is not None} if built else {}


def _action(action: Any) -> dict[str, Any]:
    shown = {"name": action.name, "result": action.state.upper()}
    if action.detail:
        shown["detail"] = action.detail
    return {**shown, "status": action.answer.status} if action.answer is not None else shown


def _errors(result: EventResult) -> Iterator[dict[str, str]]:
    failure = result.run.failure
    if failure is not None:
        yield {"phase": failure.phase, "step": failure.step, "reason": failure.reason, "message": failure.message}
    for each in result.run.objects.failures[1:]:
        yield {"phase": "resources", "step": each.object, "reason": each.reason, "message": each.message}
    for action in result.actions:
        if action.state == "failed" and (failure is None or failure.step != action.name):
            yield {"phase": "post_actions", "step": action.name, "reason": "AdapterError", "message": action.detail}


def _request(request: ApiRequest, answer: ApiAnswer) -> dict[str, Any]:
    headers = {name: REDACTED if name.lower() in _HIDDEN_HEADERS else value for name, value in request.headers}
    body = _read_body(request.body)
    shown = {"method": request.method, "url": answer.url, "status": answer.status, "headers": headers}
    return shown if body is None else {**shown, "body": body}


def _read_body(body: str | None) -> Any:
    if not body:
        return None
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body


# ── as a text ────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_trace(trace: Mapping[str, Any]) -> Iterator[str]:
    """Write a trace for people, in the sections of the Go adapter's."""
    event = trace["event"]
    yield f"Dry run of {trace['adapter']}: {event.get('kind', '')} {event.get('id', '')}".rstrip()
    yield from _section("Phase 1: params", [f"{name} = {_short(value)}" for name, value in trace["params"].items()])
    checks = [_line(each["name"], each["result"], each.get("detail", "")) for each in trace["preconditions"]]
    yield from _section("Phase 2: preconditions", checks)
    objects = [_line(each["name"], each["operation"].upper(), _place(each)) for each in trace["resources"]]
    yield from _section("Phase 3: resources", objects)
    found = [f"{name}: {_describe(each)}" for name, each in trace["discoveredResources"].items()]
    yield from _section("Phase 3.5: discovery results", found)
    yield from _section("Phase 4: post actions", _post_lines(trace))
    yield from _section(
        "API requests", [f"{each['method']} {each['url']} → {each['status']}" for each in trace["apiRequests"]]
    )
    if trace["log"]:
        yield from _section("Log", [f"{each['level']}: {each['message']}" for each in trace["log"]])
    yield ""
    for error in trace["errors"]:
        yield f"Error: {error['reason']} in {error['phase']}/{error['step']}: {error['message']}"
    yield f"Result: {'FAILED' if is_failed(trace) else 'SUCCESS'}" + _note(trace["status"])


def is_failed(trace: Mapping[str, Any]) -> bool:
    """Tell whether a trace shows a failure."""
    return trace["status"] == "failed" or bool(trace["errors"])


def _note(status: str) -> str:
    notes = {"skipped": " (preconditions are not met)", "gone": " (the resource does not exist)"}
    return notes.get(status, "")


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield ""
    yield title
    yield from ([f"  {line}" for line in lines] or ["  none"])


def _line(name: str, result: str, detail: str) -> str:
    return f"{name}: {result}" + (f" ({detail})" if detail else "")


def _place(outcome: Mapping[str, Any]) -> str:
    return "; ".join(part for part in (", ".join(outcome["objects"]), outcome["reason"]) if part)


def _describe(found: Mapping[str, Any]) -> str:
    metadata = found.get("metadata") or {}
    place = "/".join(str(part) for part in (metadata.get("namespace"), metadata.get("name")) if part)
    return f"{found.get('kind', '')} {place}".strip()


def _post_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    for name, document in trace["payloads"].items():
        yield f"payload {name}"
        conditions = document.get("conditions") if isinstance(document, Mapping) else None
        for each in conditions if isinstance(conditions, list) else ():
            if isinstance(each, Mapping):
                texts = (each.get(key, "") for key in ("type", "status", "reason", "message"))
                yield "  {}={} {}: {}".format(*texts)
    for action in trace["postActions"]:
        status = f"status {action['status']}" if "status" in action else ""
        yield _line(action["name"], action["result"], action.get("detail") or status)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
