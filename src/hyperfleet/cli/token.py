"""`hyperfleet token`: create a token and its entry in the token file."""

from __future__ import annotations

import os
import secrets
import time
from hashlib import sha256
from typing import Final

import click
import msgspec

from hyperfleet.access.claims import ROLES
from hyperfleet.access.token_file import read_tokens
from hyperfleet.access.tokens import read_text, refuse
from hyperfleet.cli import exits
from hyperfleet.cli.command import HELP, CliCommand
from hyperfleet.documents import has_errors
from hyperfleet.errors import SettingsError

PREFIX: Final = "hft_"  # so that secret scanners recognise it
_BYTES: Final = 32
_PRIVATE: Final = 0o600


@click.group(name="token", context_settings=dict(HELP))
def token() -> None:
    """Create tokens for callers.

    A server with a token file (`auth.tokens`) accepts callers that send one of its tokens: docs/security.md.
    """


@token.command(
    cls=CliCommand,
    examples=[
        ("for an adapter", "hyperfleet token create --name dns --role reporter --adapter dns --file tokens.yaml"),
        (
            "for a person, limited to one tenant",
            "hyperfleet token create --name alice --role editor --tenant payments --expires 2027-01-31",
        ),
    ],
    codes={exits.USAGE: "the entry would be invalid, or the file is; nothing was written"},
)
@click.option("--name", required=True, help="The caller's name, used in logs and in the audit log.")
@click.option("--role", "roles", required=True, multiple=True, type=click.Choice(ROLES), help="May be repeated.")
@click.option(
    "--adapter", "adapters", multiple=True, help="An adapter that a reporter may report as; '*' for any. Repeatable."
)
@click.option(
    "--tenant", "tenants", multiple=True, help="A tenant whose resources it may see; default: all. Repeatable."
)
@click.option("--expires", metavar="DAY", help="When it expires: 2027-01-31, or a time with its offset.")
@click.option("--file", "file", metavar="FILE", type=click.Path(dir_okay=False), help="Add the entry to this file.")
def create(
    name: str,
    roles: tuple[str, ...],
    adapters: tuple[str, ...],
    tenants: tuple[str, ...],
    expires: str | None,
    file: str | None,
) -> None:
    """Create a token and print it. It is shown only once, because only its SHA-256 is kept.

    The entry for the token file is added to --file, or else printed below the token, to be pasted. A running server
    reloads the file within seconds.
    """
    secret = PREFIX + secrets.token_urlsafe(_BYTES)
    entry = _write_entry(secret, name, roles, adapters, tenants or ("*",), expires)
    if problems := read_tokens(entry, "the entry", time.time()).problems:  # a new entry must not even cause a warning
        raise SettingsError(problems)
    if file is None:
        click.echo(f"Add this to the token file:\n{entry}", err=True)
    else:
        _append(file, entry)
        click.echo(f"Added to {file}", err=True)
    click.echo(secret)


def _write_entry(
    secret: str,
    name: str,
    roles: tuple[str, ...],
    adapters: tuple[str, ...],
    tenants: tuple[str, ...],
    expires: str | None,
) -> str:
    """Format the entry as YAML; JSON strings are valid YAML."""
    lines = [
        f"name: {_quote(name)}",
        f"tokenSha256: {_quote(sha256(secret.encode()).hexdigest())}",
        f"roles: [{', '.join(roles)}]",
    ]
    if adapters:
        lines.append(f"adapters: [{', '.join(map(_quote, adapters))}]")
    lines.append(f"tenants: [{', '.join(map(_quote, tenants))}]")
    if expires is not None:
        lines.append(f"expires: {_quote(expires)}")
    return "- " + "\n  ".join(lines) + "\n"


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _append(file: str, entry: str) -> None:
    """Append an entry to a file, unless the file would be invalid afterwards; a new file is private.

    The present content is not rewritten, so concurrent readers and writers never see a part of it missing.
    """
    before = read_text(file) if os.path.exists(file) else ""
    added = entry if before.endswith("\n") or not before else f"\n{entry}"
    problems = read_tokens(before + added, file, time.time()).problems
    if has_errors(problems):
        raise SettingsError(problems)
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _PRIVATE), "wb", buffering=0) as out:
            out.write(added.encode())
    except OSError as error:
        raise refuse(file, f"cannot be written: {error.strerror}") from error
