"""Deliveries: private addresses are refused when connecting, nothing leads elsewhere, and no secret is shown."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hyperfleet.errors import DeliveryFailed
from hyperfleet.events.webhook_delivery import WebhookDelivery, sign
from hyperfleet.events.webhook_messages import WrittenNotice
from hyperfleet.events.webhook_target import Webhook
from hyperfleet.logs import clean
from tests.certificates import Authority
from tests.receiving import Receiver, receiving

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOTICE = WrittenNotice(b'{"a":1}', "application/json")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def send(webhook: Webhook, *addresses: str, asked: list[str] | None = None) -> int:
    """Send a message to a receiver whose name has these addresses."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        if asked is not None:
            asked.append(f"{host}:{port}")
        return addresses

    return asyncio.run(WebhookDelivery(webhook, resolve).send(NOTICE, NOW))


def refusal(webhook: Webhook, *addresses: str) -> DeliveryFailed:
    with pytest.raises(DeliveryFailed) as caught:
        send(webhook, *addresses)
    assert "s3cr3t" not in str(caught.value)
    return caught.value


def hook(receiver: Receiver, **more: Any) -> Webhook:
    return Webhook(name="ops", url=receiver.url, format="slack", allow_private=True, **more)


@pytest.mark.parametrize("addresses", [("127.0.0.1",), ("8.8.8.8", "127.0.0.1"), ("::ffff:127.0.0.1",), ("::1",)])
def test_a_name_with_a_private_address_is_refused_when_connecting(
    receiver: Receiver, addresses: tuple[str, ...]
) -> None:
    url = f"https://hooks.example.org:{receiver.port}/s3cr3t"
    error = refusal(Webhook(name="ops", url=url, format="slack"), *addresses)
    assert str(error) == (
        f"https://hooks.example.org:{receiver.port} did not take the message: "
        "the name has a private address, and allowPrivate is not set"
    )
    assert receiver.requests == []


def test_a_name_that_moves_between_two_messages_is_checked_each_time(receiver: Receiver) -> None:
    answers = [["127.0.0.1"], ["8.8.8.8"]]

    async def resolve(host: str, port: int) -> Sequence[str]:
        return answers.pop()

    delivery = WebhookDelivery(replace(hook(receiver), allow_private=True), resolve)
    with pytest.raises(DeliveryFailed, match="plain http goes to private addresses only"):
        asyncio.run(delivery.send(NOTICE, NOW))
    assert asyncio.run(delivery.send(NOTICE, NOW)) == 200
    assert len(receiver.requests) == 1


def test_an_allowed_private_address(receiver: Receiver) -> None:
    asked: list[str] = []
    url = receiver.url.replace("localhost", "hooks.internal")
    assert send(replace(hook(receiver), url=url), "127.0.0.1", asked=asked) == 200
    assert asked == [f"hooks.internal:{receiver.port}"]
    assert receiver.requests[0].headers["Host"] == f"hooks.internal:{receiver.port}"


def test_the_next_address_is_tried(receiver: Receiver) -> None:
    assert send(hook(receiver), "127.0.0.2", "127.0.0.1") == 200, "nothing listens on the first one"


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.answers = [(307, {"Location": f"http://localhost:{receiver.port}/elsewhere"})]
    assert refusal(hook(receiver), "127.0.0.1").status == 307
    assert len(receiver.requests) == 1


def test_no_proxy_of_the_environment_is_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert send(hook(receiver), "127.0.0.1") == 200


def test_a_large_answer_is_cut_off(receiver: Receiver) -> None:
    receiver.body = b"x" * 1_000_000
    assert send(hook(receiver), "127.0.0.1") == 200


def test_the_name_is_that_of_the_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with receiving(authority.issue("receiver")) as receiver:
        trusted = hook(receiver, ca_file=str(authority.file))
        assert send(trusted, "127.0.0.1") == 200
        elsewhere = replace(trusted, url=receiver.url.replace("localhost", "hooks.internal"))
        assert "its certificate is not trusted" in str(refusal(elsewhere, "127.0.0.1"))
        assert "its certificate is not trusted" in str(refusal(hook(receiver), "127.0.0.1")), "not a public CA"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30.0),
        ("0", 0.0),
        ("99999999", 3600.0),
        ("Fri, 02 Jan 2026 03:05:05 GMT", 60.0),
        ("Fri, 02 Jan 2026 03:00:00 GMT", 0.0),
        ("soon", 0.0),
        ("-5", 0.0),
    ],
)
def test_retry_after(receiver: Receiver, value: str, seconds: float) -> None:
    receiver.answers = [(429, {"Retry-After": value})]
    error = refusal(hook(receiver), "127.0.0.1")
    assert (error.status, error.retry_after) == (429, seconds)


def test_what_cannot_be_reached(receiver: Receiver, tmp_path: Path) -> None:
    failure = str(refusal(replace(hook(receiver), url="http://localhost:1/"), "127.0.0.1"))
    assert "the connection failed" in failure
    assert clean(failure) == failure, "the log shows it as it is"
    assert "the name has no address" in str(refusal(hook(receiver)))
    missing = hook(receiver, secret_file=str(tmp_path / "missing"))
    assert "a file cannot be read (No such file or directory)" in str(refusal(missing, "127.0.0.1"))
    short = tmp_path / "short"
    short.write_text("too short")
    assert "needs 16 to 4096 bytes, this has 9" in str(refusal(hook(receiver, secret_file=str(short)), "127.0.0.1"))


def test_the_system_resolves_names(receiver: Receiver) -> None:
    assert asyncio.run(WebhookDelivery(hook(receiver)).send(NOTICE, NOW)) == 200

    async def resolve(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(
        DeliveryFailed, match=r"^http://localhost:\d+ did not take the message: the name cannot be resolved$"
    ):
        asyncio.run(WebhookDelivery(hook(receiver), resolve).send(NOTICE, NOW))


def test_credentials_of_the_url_are_sent_and_not_shown(receiver: Receiver) -> None:
    webhook = replace(hook(receiver), url=receiver.url.replace("http://", "http://user:s3cr3t-word@"))
    assert send(webhook, "127.0.0.1") == 200
    assert receiver.requests[0].headers["Authorization"].startswith("Basic ")
    receiver.status = 500
    refusal(webhook, "127.0.0.1")
    assert "s3cr3t" not in repr(webhook)


def test_the_signature() -> None:
    signature = sign(b"0123456789abcdef", b"{}", NOW)
    # printf '1767323045.{}' | openssl dgst -sha256 -hmac 0123456789abcdef
    assert signature == "t=1767323045,v1=f4bb6f1d5f8ad3f42ae78cdbcb16bf001ae326eac1178a5d6e615ebd14495445"
