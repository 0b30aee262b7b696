"""API calls answered from a file: the Go adapter's format for dry-runs.

    {"responses": [{"match": {"method": "GET", "urlPattern": "/clusters/.*"},
                    "responses": [{"statusCode": 200, "body": {"id": "c1"}}]}]}

The first match counts. Its answers are used one after the other, and the last one repeats. A call that nothing matches
gets `200 {}`. Nothing is retried.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
import re2
from msgspec import Meta, Struct, field

from hyperfleet.adapter.api_calls import ApiAnswer, ApiRequest
from hyperfleet.adapter.api_urls import resolve_url, shown_url
from hyperfleet.document_problem import DocumentPlace, DocumentProblem
from hyperfleet.documents import load

_ANY_METHOD: Final = "*"


class _RecordedPart(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the file."""


class RecordedMatch(_RecordedPart, frozen=True, kw_only=True):
    """Which calls are answered."""

    method: str = _ANY_METHOD
    url_pattern: Annotated[str, Meta(min_length=1)]


class RecordedAnswer(_RecordedPart, frozen=True, kw_only=True):
    """One answer."""

    status_code: Annotated[int, Meta(ge=0, le=599)] = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None


class RecordedEndpoint(_RecordedPart, frozen=True, kw_only=True):
    """The answers for some calls."""

    match: RecordedMatch
    responses: Annotated[tuple[RecordedAnswer, ...], Meta(min_length=1)]


class RecordedFile(_RecordedPart, frozen=True, kw_only=True):
    """The whole file."""

    responses: tuple[RecordedEndpoint, ...] = ()


class LoadedRecording(Struct, frozen=True):
    """The recording (None on any error) and every problem of its file."""

    recording: RecordedFile | None
    problems: tuple[DocumentProblem, ...] = ()


def load_recording(text: str, file: str) -> LoadedRecording:
    """Read a file with answers; JSON or YAML."""
    loaded = load(text, RecordedFile, file=file)
    if loaded.value is None:
        return LoadedRecording(None, loaded.problems)
    problems = [
        _bad_pattern(loaded.places.value(f"/responses/{index}/match/urlPattern"), fault)
        for index, each in enumerate(loaded.value.responses)
        if (fault := _find_pattern_fault(each.match.url_pattern))
    ]
    return LoadedRecording(None if problems else loaded.value, tuple(problems))


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False  # it would write to stderr
    return re2.compile(pattern, options)


def _find_pattern_fault(pattern: str) -> str:
    try:
        _compile(pattern)
    except re2.error as error:
        return str(error)
    return ""


def _bad_pattern(place: DocumentPlace, fault: str) -> DocumentProblem:
    return DocumentProblem(place, f"this is not a regular expression: {fault}", "Pattern")


class RecordedApi:
    """Answers calls from a recording, and keeps the requests for a trace."""

    def __init__(self, recording: RecordedFile, base_url: str = "http://recorded.invalid", version: str = "v1") -> None:
        """Begin with the first answer of every endpoint."""
        self.requests: list[tuple[ApiRequest, ApiAnswer]] = []
        self._base_url = base_url
        self._version = version
        self._endpoints = [
            (each.match.method.upper(), _compile(each.match.url_pattern), each.responses)
            for each in recording.responses
        ]
        self._used = [0] * len(self._endpoints)

    async def call(self, request: ApiRequest) -> ApiAnswer:
        """Return the next answer for a call."""
        target = resolve_url(request.url, self._base_url, self._version)
        if target.fault:
            answer = ApiAnswer(method=request.method, url=shown_url(request.url), error=target.fault, attempts=0)
        else:
            status, body = self._next(request, (request.url, target.url))
            answer = ApiAnswer(method=request.method, url=shown_url(target.url), status=status, body=body)
        self.requests.append((request, answer))
        return answer

    def _next(self, request: ApiRequest, urls: tuple[str, str]) -> tuple[int, bytes]:
        for index, (method, pattern, answers) in enumerate(self._endpoints):
            if method in (_ANY_METHOD, request.method) and any(pattern.search(url) for url in urls):
                answer = answers[min(self._used[index], len(answers) - 1)]
                self._used[index] += 1
                return answer.status_code or 200, _write_body(answer.body)
        return 200, b"{}"


def _write_body(body: Any) -> bytes:
    if body is None:
        return b""
    return body.encode() if isinstance(body, str) else msgspec.json.encode(body)
