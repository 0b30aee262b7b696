"""API calls over HTTP: retries with back-off, a token for our own origin only, answers of bounded size.

The only module of the framework that uses httpx. Redirects are not followed: they could lead a token elsewhere.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple, Self

import httpx
from msgspec.structs import replace

from hyperfleet import __version__
from hyperfleet.adapter.api_calls import MAX_ANSWER, ApiAnswer, ApiRequest
from hyperfleet.adapter.api_tokens import ReadToken, TokenFile
from hyperfleet.adapter.api_urls import ResolvedUrl, resolve_url, shown_url
from hyperfleet.adapter.config import ApiSection, Backoff
from hyperfleet.errors import shorten_message
from hyperfleet.services.secret_keys import SecretKeys

USER_AGENT: Final = f"hyperfleet-adapter/{__version__}"
_UNAUTHORIZED: Final = 401
_JITTER: Final = 0.1  # the part of a delay that chance adds or takes away, as in the Go adapter
_AUTHORIZATION: Final = "authorization"
_MAX_ATTEMPTS: Final = 100


class _Exchange(NamedTuple):
    """One attempt."""

    answer: ApiAnswer
    is_worth_retrying: bool


class HttpApi:
    """Calls APIs over HTTP. Use it as a context manager, or call `close`."""

    def __init__(
        self,
        section: ApiSection,
        *,
        user_agent: str = USER_AGENT,
        tls: ssl.SSLContext | None = None,
        trace_headers: Callable[[], Mapping[str, str]] = dict,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Keep connections open; `trace_headers` are sent with every attempt.

        Without `tls` the authorities of the system are trusted (and those of SSL_CERT_FILE). No other variable of the
        environment is read: a .netrc file or a proxy would get what is meant for the API.
        """
        self._section = section
        self._client = httpx.AsyncClient(
            headers={"User-Agent": user_agent},
            verify=tls or ssl.create_default_context(),
            follow_redirects=False,
            trust_env=False,
        )
        self._token = TokenFile(section.token_path, section.token_lifetime) if section.token_path else None
        self._trace_headers = trace_headers
        self._sleep = sleep

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def call(self, request: ApiRequest) -> ApiAnswer:
        """Send a request, with its retries, and return the last answer."""
        started = time.monotonic()
        target = resolve_url(request.url, self._section.base_url, self._section.version)
        if target.fault:
            return ApiAnswer(method=request.method, url=shown_url(request.url), error=target.fault, attempts=0)
        answer, attempt = await self._try_all(request, target)
        return replace(answer, attempts=attempt, seconds=time.monotonic() - started)

    async def _try_all(self, request: ApiRequest, target: ResolvedUrl) -> tuple[ApiAnswer, int]:
        most = min(max(1, request.attempts or self._section.attempts or 1), _MAX_ATTEMPTS)
        attempt, has_new_token = 1, False
        while True:
            answer, is_worth_retrying = await self._attempt(request, target)
            if answer.status == _UNAUTHORIZED and target.is_own and self._token and not has_new_token:
                has_new_token = True  # the file may have been replaced since it was read
                self._token.forget()
                continue
            delay = self._delay(request, attempt, answer)
            if not is_worth_retrying or attempt >= most or delay is None:
                return answer, attempt
            await self._sleep(delay)
            attempt += 1

    def _delay(self, request: ApiRequest, attempt: int, answer: ApiAnswer) -> float | None:
        """Return how long to wait; None if the server asks for longer than a call may wait."""
        longest = self._section.max_delay.total_seconds()
        if answer.retry_after is not None:
            return answer.retry_after if answer.retry_after <= longest else None
        base = self._section.base_delay.total_seconds()
        factor = _FACTORS[request.backoff or self._section.backoff](attempt)
        jitter = 1 + random.uniform(-_JITTER, _JITTER)  # noqa: S311 - spreads callers, protects nothing
        return min(base * factor * jitter, longest)

    async def _attempt(self, request: ApiRequest, target: ResolvedUrl) -> _Exchange:
        token = await self._read_token(target)
        failed = ApiAnswer(method=request.method, url=shown_url(target.url))
        if token.fault:
            return _Exchange(replace(failed, error=token.fault), is_worth_retrying=True)
        seconds = (request.timeout or self._section.timeout).total_seconds()
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(request, target, token.text, failed)
        except TimeoutError:
            return _Exchange(replace(failed, error=f"no answer within {seconds:g}s"), is_worth_retrying=True)
        except httpx.InvalidURL as error:
            return _Exchange(replace(failed, error=f"the URL is not valid: {error}"), is_worth_retrying=False)
        except (httpx.HTTPError, ValueError) as error:  # ValueError: a header that cannot be sent
            is_transport = isinstance(error, httpx.HTTPError)
            text = shorten_message(str(error)) if is_transport else "a header cannot be sent"
            return _Exchange(replace(failed, error=text or type(error).__name__), is_worth_retrying=is_transport)

    async def _exchange(self, request: ApiRequest, target: ResolvedUrl, token: str, failed: ApiAnswer) -> _Exchange:
        headers = self._headers(request, target, token)
        content = None if request.body is None else request.body.encode("utf-8", "replace")
        timeout = httpx.Timeout(None)  # the deadline around this is the only one
        async with self._client.stream(
            request.method, target.url, headers=headers, content=content, timeout=timeout
        ) as reply:
            body = bytearray()
            async for chunk in reply.aiter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER:
                    error = f"the answer has more than {MAX_ANSWER} bytes"
                    return _Exchange(replace(failed, error=error), is_worth_retrying=False)
        retry_after = read_retry_after(reply.headers.get("retry-after", ""), datetime.now(UTC))
        answer = replace(failed, status=reply.status_code, body=bytes(body), retry_after=retry_after)
        return _Exchange(answer, reply.status_code in (408, 429) or reply.status_code >= 500)

    async def _read_token(self, target: ResolvedUrl) -> ReadToken:
        return await self._token.read() if self._token and target.is_own else ReadToken("")

    def _headers(self, request: ApiRequest, target: ResolvedUrl, token: str) -> httpx.Headers:
        """Return defaults, then those of the call, then the token; defaults with secrets are for our own origin."""
        defaults = self._section.headers.items()
        headers = httpx.Headers({name: value for name, value in defaults if target.is_own or not _is_secret(name)})
        for name, value in request.headers:
            headers[name] = value.strip()
        if headers.get(_AUTHORIZATION, "none").strip().lower() in (
            "",
            "bearer",
            "basic",
        ):  # an optional token that is empty
            del headers[_AUTHORIZATION]
        if token:
            headers[_AUTHORIZATION] = f"Bearer {token}"
        if request.body is not None and "content-type" not in headers:
            headers["content-type"] = "application/json"
        headers.update(self._trace_headers())
        return headers


_SECRET_KEYS: Final = SecretKeys()


def _is_secret(header: str) -> bool:
    return _SECRET_KEYS.is_sensitive(header)


_FACTORS: Final[Mapping[Backoff, Callable[[int], float]]] = {
    "exponential": lambda attempt: 2.0 ** min(attempt - 1, 30),
    "linear": float,
    "constant": lambda _: 1.0,
}


def read_retry_after(text: str, now: datetime) -> float | None:
    """Return the seconds that a header asks to wait; None if it does not, or is not valid."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())
