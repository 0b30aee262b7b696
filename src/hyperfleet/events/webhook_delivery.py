"""Sends one message to the receiver of a webhook over HTTP, and refuses to be led anywhere else.

Private addresses are refused when connecting, not by name: the name is resolved here, every address is checked, and
the connection goes to a checked address. No redirects are followed and no proxies used. Neither the URL (it may contain
a token) nor the answer of the receiver is ever shown.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx

from hyperfleet.errors import DeliveryFailed
from hyperfleet.events.addresses import is_public
from hyperfleet.events.webhook_checks import read_secret
from hyperfleet.events.webhook_messages import WrittenNotice
from hyperfleet.events.webhook_target import Webhook

SIGNATURE: Final = "X-HyperFleet-Signature"
TIMEOUT: Final = 10.0  # seconds for everything, from the name to the end of the answer

_MAX_ANSWER: Final = 64 * 1024  # bytes of an answer that are read and thrown away, so that the receiver can end well
_MAX_ADDRESSES: Final = 3  # that are tried; a name may have dozens
_MAX_RETRY_AFTER: Final = 3600.0  # seconds; a receiver that asks for more is tried all the same

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # name, port → addresses


async def resolve_name(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, as the system knows them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class WebhookDelivery:
    """Sends messages to one receiver."""

    def __init__(self, webhook: Webhook, resolve: Resolve = resolve_name) -> None:
        """Prepare to send; files are read when they are needed, so that they may be replaced."""
        self._webhook = webhook
        self._resolve = resolve
        self._url = httpx.URL(webhook.url)
        self._trust: ssl.SSLContext | None = None

    async def send(self, written: WrittenNotice, now: datetime) -> int:
        """Send a message and return the status; raise `DeliveryFailed` if it is not 2xx, or there was no answer."""
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await self._send(written, now)
        except TimeoutError as error:
            raise self._failed(f"no answer within {TIMEOUT:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise self._failed(_describe(error)) from error
        if not answer.is_success:
            after = _retry_after(answer.headers.get("Retry-After", ""), now)
            message = f"{self._webhook.address} answered {answer.status_code}"
            raise DeliveryFailed(message, status=answer.status_code, retry_after=after)
        return answer.status_code

    async def _send(self, written: WrittenNotice, now: datetime) -> httpx.Response:
        headers = await self._headers(written, now)
        addresses = await self._find_addresses()
        trust = await self._load_trust()
        async with httpx.AsyncClient(timeout=TIMEOUT, verify=trust, trust_env=False) as client:
            for address in addresses[:-1]:
                try:
                    return await self._post(client, address, written.body, headers)
                except httpx.ConnectError:
                    continue  # the next address may work
            return await self._post(client, addresses[-1], written.body, headers)

    async def _post(
        self, client: httpx.AsyncClient, address: str, body: bytes, headers: dict[str, str]
    ) -> httpx.Response:
        """Send to an address that was checked; certificates are checked against the name."""
        request = client.build_request(
            "POST",
            self._url.copy_with(host=address),
            content=body,
            headers={**headers, "Host": self._url.netloc.decode("ascii")},
            extensions={"sni_hostname": self._url.raw_host.decode("ascii").strip("[]")},
        )
        answer = await client.send(request, stream=True, follow_redirects=False)
        try:
            size = 0
            async for piece in answer.aiter_raw():
                size += len(piece)
                if size > _MAX_ANSWER:
                    break
        finally:
            await answer.aclose()
        return answer

    async def _headers(self, written: WrittenNotice, now: datetime) -> dict[str, str]:
        headers = {
            "Content-Type": written.content_type,
            "User-Agent": "HyperFleet",
            "Accept-Encoding": "identity",  # so that a small answer stays small
        }
        if self._webhook.secret_file is not None:
            secret = await asyncio.to_thread(read_secret, self._webhook.secret_file)
            headers[SIGNATURE] = sign(secret, written.body, now)
        return headers

    async def _find_addresses(self) -> Sequence[str]:
        """Resolve the name; all of its addresses must be allowed, so that none is reached by chance."""
        host = self._url.host
        port = self._url.port or (443 if self._url.scheme == "https" else 80)
        addresses = await self._resolve(host, port)
        if not addresses:
            raise self._failed("the name has no address")
        are_public = [is_public(address) for address in addresses]
        if not self._webhook.allow_private and not all(are_public):
            raise self._failed("the name has a private address, and allowPrivate is not set")
        if self._url.scheme == "http" and any(are_public):
            raise self._failed("plain http goes to private addresses only")
        return addresses[:_MAX_ADDRESSES]

    async def _load_trust(self) -> ssl.SSLContext:
        """Load the CAs once; that takes 50 ms."""
        if self._trust is None:
            file = self._webhook.ca_file
            self._trust = await (
                asyncio.to_thread(httpx.create_ssl_context, trust_env=False)
                if file is None
                else asyncio.to_thread(ssl.create_default_context, cafile=file)
            )
        return self._trust

    def _failed(self, message: str) -> DeliveryFailed:
        # A port with a colon behind it looks like the beginning of a password, which the log hides.
        return DeliveryFailed(f"{self._webhook.address} did not take the message: {message}")


def sign(secret: bytes, body: bytes, now: datetime) -> str:
    """Return the signature of a body: the time is signed too, so that an old message cannot be sent again."""
    time = str(int(now.timestamp()))
    digest = hmac.new(secret, f"{time}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={time},v1={digest}"


def _describe(error: Exception) -> str:
    """Describe a failure without the URL; texts of libraries may contain it."""
    match error:
        case httpx.ConnectError() if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return "its certificate is not trusted"
        case httpx.ConnectError():
            return "the connection failed"
        case httpx.HTTPError():
            return f"the exchange failed ({type(error).__name__})"
        case socket.gaierror():
            return "the name cannot be resolved"
        case OSError():
            return f"a file cannot be read ({error.strerror or type(error).__name__})"
    return "the request cannot be made" if isinstance(error, httpx.InvalidURL) else str(error)


def _retry_after(text: str, now: datetime) -> float:
    """Return the seconds of a header Retry-After, which has a number or a date; 0: it has neither."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return min(float(text), _MAX_RETRY_AFTER)
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return min(max((then - now).total_seconds(), 0.0), _MAX_RETRY_AFTER)
