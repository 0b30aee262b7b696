"""`hyperfleet token`: make a token for a caller, and the entry of the token file that lets it in."""

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
from hyperfleet.cli.command import HELP, Command
from hyperfleet.documents import has_errors
from hyperfleet.errors import SettingsError

PREFIX: Final = "hft_"  # so that tools that look for lost secrets know what they found
_BYTES: Final = 32
_PRIVATE: Final = 0o600


@click.group(name="token", context_settings=dict(HELP))
def token() -> None:
    """Make tokens for callers.

    A server that is given a file of tokens (`auth.tokens`) lets in whoever sends one of them: docs/security.md.
    """


@token.command(
    cls=Command,
    examples=[
        ("for an adapter", "hyperfleet token create --name dns --role reporter --adapter dns --file tokens.yaml"),
        (
            "for a person, who sees what is one tenant's",
            "hyperfleet token create --name alice --role editor --tenant payments --expires 2027-01-31",
        ),
    ],
    codes={exits.USAGE: "this would be no good entry, or the file is none; nothing was written"},
)
@click.option("--name", required=True, help="Whose token it is; logs and the audit log name the caller so.")
@click.option("--role", "roles", required=True, multiple=True, type=click.Choice(ROLES), help="May be repeated.")
@click.option("--adapter", "adapters", multiple=True, help="As which a reporter may report; '*' for any. Repeatable.")
@click.option(
    "--tenant", "tenants", multiple=True, help="Whose resources it sees; without it, everybody's. Repeatable."
)
@click.option("--expires", metavar="DAY", help="When it ends: 2027-01-31, or a time with its offset.")
@click.option("--file", "file", metavar="FILE", type=click.Path(dir_okay=False), help="Add the entry to this file.")
def create(
    name: str,
    roles: tuple[str, ...],
    adapters: tuple[str, ...],
    tenants: tuple[str, ...],
    expires: str | None,
    file: str | None,
) -> None:
    """Make a token, and print it: it is shown this once, for only its SHA-256 is kept.

    The entry for the token file is added to --file, or else shown below the token, to be pasted. A server sees within
    seconds that the file has changed.
    """
    made = PREFIX + secrets.token_urlsafe(_BYTES)
    entry = _write_entry(made, name, roles, adapters, tenants or ("*",), expires)
    if problems := read_tokens(entry, "the entry", time.time()).problems:  # of what is new also a warning is too much
        raise SettingsError(problems)
    if file is None:
        click.echo(f"To be added to the token file:\n{entry}", err=True)
    else:
        _append(file, entry)
        click.echo(f"Added to {file}", err=True)
    click.echo(made)


def _write_entry(
    made: str,
    name: str,
    roles: tuple[str, ...],
    adapters: tuple[str, ...],
    tenants: tuple[str, ...],
    expires: str | None,
) -> str:
    """Write the entry as YAML; JSON's quotes are YAML's, too."""
    lines = [
        f"name: {_quote(name)}",
        f"tokenSha256: {_quote(sha256(made.encode()).hexdigest())}",
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
    """Add an entry to a file, unless the file would be no good afterwards; a new file is for its owner only.

    What is there is never written again: nobody who adds at the same time, or reads, sees a part of it missing.
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
