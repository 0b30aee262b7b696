"""Checks the settings of webhooks beyond their types: URLs, names, filters, and the files that they name.

`settings` calls `check_webhooks` and places the problems in the settings file; the composition root calls
`check_files` before it builds what sends. A message never shows more of a URL than its address.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from hyperfleet.documents.wording import suggest
from hyperfleet.events.addresses import is_public
from hyperfleet.events.webhook_target import Webhook
from hyperfleet.model.condition import MAX_TYPE, TYPE_PATTERN
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import TokenTerm
from hyperfleet.services.filters import read_terms
from hyperfleet.services.parameters import Parameters

MIN_SECRET: Final = 16  # bytes; shorter keys can be guessed
_MAX_SECRET: Final = 4096  # bytes; more is not a key but a wrong file

_KNOWN_KINDS: Final = tuple(kind.name for kind in Kinds())


class WebhookProblem(Struct, frozen=True):
    """A problem of a list of webhooks, and the keys that lead to its place."""

    path: tuple[str | int, ...]
    message: str


def check_webhooks(webhooks: Sequence[Webhook]) -> Iterator[WebhookProblem]:
    """Yield every problem that can be seen in the settings alone."""
    names = [webhook.name for webhook in webhooks]
    for index, webhook in enumerate(webhooks):
        if webhook.name in names[:index]:
            yield WebhookProblem((index, "name"), f"there are two webhooks {webhook.name}; names must differ")
        if message := _check_url(webhook):
            yield WebhookProblem((index, "url"), message)
        if webhook.format == "cloudevents" and webhook.secret_file is None:
            message = f"{webhook.name}: CloudEvents are signed; name the file with the key in secretFile"
            yield WebhookProblem((index,), message)
        if webhook.format == "alertmanager" and "changes" in webhook.send:
            message = "Alertmanager takes problems only: a change neither starts nor ends"
            yield WebhookProblem((index, "send"), message)
        yield from _check_filter(webhook, index)


def label_terms(selector: str) -> tuple[TokenTerm, ...]:
    """Return the terms of a label selector, which must be valid."""
    return read_terms(Parameters({"labelSelector": [selector]} if selector else {}))


def _check_url(webhook: Webhook) -> str:
    """Return what is wrong with the URL of a webhook."""
    try:
        parts = urlsplit(webhook.url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "this is not a URL with a host and a port"
    if not host or any(character <= " " or character == "\x7f" for character in webhook.url):
        return "this is not a URL with a host; expected https://…"
    if parts.scheme != "https" and not (parts.scheme == "http" and webhook.allow_private):
        return f"the URL must begin with https://, found {parts.scheme}:// (http needs allowPrivate)"
    if not webhook.allow_private and (host == "localhost" or (_is_literal(host) and not is_public(host))):
        return f"{host} is not a public address; to send there all the same, set allowPrivate: true"
    return ""


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _check_filter(webhook: Webhook, index: int) -> Iterator[WebhookProblem]:
    wanted = webhook.filter
    for place, kind in enumerate(wanted.kinds):
        if kind not in _KNOWN_KINDS:
            hint = suggest(kind, _KNOWN_KINDS) or "."
            message = f'unknown kind "{kind}"{hint} Known are {", ".join(_KNOWN_KINDS)}'
            yield WebhookProblem((index, "filter", "kinds", place), message)
    for place, type_ in enumerate(wanted.conditions):
        if not TYPE_PATTERN.fullmatch(type_) or len(type_) > MAX_TYPE:
            message = f'"{type_}" is not a condition type such as Ready'
            yield WebhookProblem((index, "filter", "conditions", place), message)
    given = Parameters({"labelSelector": [wanted.label_selector]})
    read_terms(given)
    for error in given.errors:
        yield WebhookProblem((index, "filter", "labelSelector"), error.message)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_files(webhooks: Sequence[Webhook]) -> Iterator[tuple[str, str]]:
    """Yield the files of webhooks that cannot be used, and why."""
    for webhook in webhooks:
        if webhook.secret_file is not None:
            try:
                read_secret(webhook.secret_file)
            except (OSError, ValueError) as error:
                yield webhook.secret_file, f"webhooks: {webhook.name}: {_reason(error)}"
        if webhook.ca_file is not None:
            try:
                ssl.create_default_context(cafile=webhook.ca_file)
            except OSError as error:  # that of TLS is one, too
                yield webhook.ca_file, f"webhooks: {webhook.name}: {_reason(error)}"


def read_secret(file: str) -> bytes:
    """Read the key of a signature; blanks around it do not belong to it."""
    with Path(file).open("rb") as opened:
        text = opened.read(_MAX_SECRET + 1).strip()
    if not MIN_SECRET <= len(text) <= _MAX_SECRET:
        raise ValueError(f"the key of a signature needs {MIN_SECRET} to {_MAX_SECRET} bytes, this has {len(text)}")
    return text


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
