"""`hyperfleet config`: servers and tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.cli.command import HELP, CliCommand, bundle
from hyperfleet.cli.contexts import Config, ServerContext, locate, read_config
from hyperfleet.cli.exits import NOT_FOUND, USAGE
from hyperfleet.cli.failures import CommandFailure, Misuse
from hyperfleet.cli.manifests import STDIN, read_text
from hyperfleet.cli.options import document_options, output_options
from hyperfleet.cli.output.documents import to_plain, write_yaml
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_document, print_items
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column
from hyperfleet.cli.session import CliSession, pass_session

_HIDDEN: Final = "***"
_ABSENT: Final = {NOT_FOUND: "there is no such context"}


@click.group(name="config", context_settings=dict(HELP))
def config() -> None:
    """Configure servers and tokens.

    A context is a server with its token and certificates. The file is config.yaml in $HYPERFLEET_CONFIG_HOME, else in
    ~/.config/hyperfleet; only you can read it. --context NAME overrides the current context for one command.
    """


def _command(name: str, codes: Mapping[int, str] | None = None, **attributes: Any) -> Callable[[Any], click.Command]:
    all_codes = {USAGE: "wrong arguments, or a file that is wrong or cannot be read or written", **(codes or {})}
    return config.command(name, cls=CliCommand, codes=all_codes, **attributes)


# ── showing ──────────────────────────────────────────────────────────────────────────────────────────────────────


class _Row(Struct, frozen=True):
    name: str
    context: ServerContext
    is_current: bool


@_command("get-contexts", examples=[("all contexts", "hyperfleet config get-contexts")])
@output_options(("table", "name", "json", "yaml"))
@pass_session
def get_contexts(session: CliSession, output: Output) -> None:
    """Show all contexts; * marks the current one."""
    known = read_config(locate(session.environment))
    rows = [_Row(name, context, name == known.current_context) for name, context in sorted(known.contexts.items())]
    if not rows and output.format.is_table:
        session.message("There are no contexts yet: create one with config set-context.")
        return
    print_items(session, output, _SHEET, rows)


@_command("current-context", examples=[("its name", "hyperfleet config current-context")], codes=_ABSENT)
@pass_session
def current_context(session: CliSession) -> None:
    """Print the name of the current context."""
    name = read_config(locate(session.environment)).current_context
    if name is None:
        raise CommandFailure("there is no current context: choose one with config use-context", NOT_FOUND)
    session.write(name)


@_command("view", examples=[("the whole file, tokens hidden", "hyperfleet config view")])
@document_options()
@pass_session
def view(session: CliSession, output: Output) -> None:
    """Show the file; tokens are hidden."""
    document = _conceal(read_config(locate(session.environment)))
    if output.format.is_table:
        session.write(write_yaml(document))
    else:
        print_document(session, output, document)


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────


@_command(
    "use-context",
    examples=[("use another server from now on", "hyperfleet config use-context prod")],
    codes=_ABSENT,
)
@click.argument("name")
@pass_session
def use_context(session: CliSession, name: str) -> None:
    """Make a context the current one."""
    file = locate(session.environment)
    known = read_config(file)
    _find(known, name, file)
    write_config(file, replace(known, current_context=name))
    session.message(f'The current context is now "{name}".')


class ContextChanges(Struct, frozen=True):
    """The options of `config set-context`; None: unchanged."""

    server: str | None = None
    token_file: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool | None = None

    def as_keywords(self) -> dict[str, Any]:
        """Return the changes; an empty text removes a field."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: None if value == "" else value for name, value in given.items() if value is not None}


@_command(
    "set-context",
    examples=[
        ("a new server", "hyperfleet config set-context prod --server https://fleet.example.com"),
        (
            "… with a token file that another program refreshes",
            "hyperfleet config set-context prod --token-file /run/token",
        ),
        ("… with certificates", "hyperfleet config set-context prod --ca ca.pem --cert me.pem --key me.key"),
        ("remove a field", "hyperfleet config set-context prod --ca ''"),
    ],
)
@click.argument("name")
@bundle(
    "changes",
    ContextChanges,
    click.option("--server", metavar="URL", help="The address of the server."),
    click.option("--token-file", metavar="FILE", help="A file with the token, read for each command."),
    click.option("--ca", metavar="FILE", help="A file with the CA certificates to trust."),
    click.option("--cert", metavar="FILE", help="The client certificate."),
    click.option("--key", metavar="FILE", help="Its key, if it is in another file."),
    click.option("--insecure/--secure", default=None, help="Whether to accept any certificate; only for tests."),
)
@click.option("--use", is_flag=True, help="Make it the current context; the first context always is.")
@pass_session
def set_context(session: CliSession, name: str, changes: ContextChanges, use: bool) -> None:
    """Create a context, or change one."""
    file = locate(session.environment)
    known = read_config(file)
    before = known.contexts.get(name)
    if before is None and not changes.server:
        raise Misuse(f'"{name}" is a new context: give its server with --server')
    keywords = changes.as_keywords()
    if keywords.get("server", "") is None:
        raise Misuse("a context needs a server")
    after = replace(before or ServerContext(server=""), **keywords)
    if changes.token_file:
        after = replace(after, token=None)
    _check_server(after)
    current = name if use or known.current_context is None else known.current_context
    write_config(file, Config(current, {**known.contexts, name: after}))
    session.message(f'Context "{name}" {"changed" if before else "created"}{" and used" if current == name else ""}.')


@_command(
    "set-token",
    examples=[
        ("typed without echo", "hyperfleet config set-token prod"),
        ("from another program", "vault read -field=token fleet | hyperfleet config set-token prod"),
        ("remove it", "hyperfleet config set-token prod --remove"),
    ],
    codes=_ABSENT,
)
@click.argument("name", required=False)
@click.option("--remove", is_flag=True, help="Remove the token.")
@pass_session
def set_token(session: CliSession, name: str | None, remove: bool) -> None:
    """Set the token of a context (default: the current one): from standard input, or typed without echo."""
    file = locate(session.environment)
    known = read_config(file)
    chosen = name or known.current_context
    if chosen is None:
        raise Misuse("there is no current context: name one")
    context = _find(known, chosen, file)
    token = None if remove else _read_token(session, chosen)
    changed = replace(context, token=token, token_file=None)
    write_config(file, replace(known, contexts={**known.contexts, chosen: changed}))
    session.message(f'Token of "{chosen}" {"removed" if remove else "set"}.')


@_command("delete-context", examples=[("delete one", "hyperfleet config delete-context old")], codes=_ABSENT)
@click.argument("name")
@pass_session
def delete_context(session: CliSession, name: str) -> None:
    """Delete a context and its token."""
    file = locate(session.environment)
    known = read_config(file)
    _find(known, name, file)
    contexts = {each: context for each, context in known.contexts.items() if each != name}
    is_current = known.current_context == name
    write_config(file, Config(None if is_current else known.current_context, contexts))
    session.message(f'Context "{name}" deleted.{" There is no current one now." if is_current else ""}')


def write_config(file: Path, known: Config) -> None:
    """Write the file atomically, readable only by its owner."""
    from hyperfleet.cli.files import write_private

    write_private(file, write_yaml(known) + "\n")


def _read_token(session: CliSession, name: str) -> str:
    if session.can_ask:
        token: str = click.prompt(f"Token of {name}", hide_input=True, err=True)
    else:
        token = read_text(STDIN)
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise Misuse("not a token: expected one word on standard input")
    return token


def _check_server(context: ServerContext) -> None:
    from hyperfleet.client.endpoint import find_endpoint

    find_endpoint(context.server, {"token": ""})


def _find(known: Config, name: str, file: Path) -> ServerContext:
    context = known.contexts.get(name)
    if context is None:
        from hyperfleet.documents.wording import suggest

        there_are = f"; there are {', '.join(sorted(known.contexts))}" if known.contexts else "; there are none yet"
        raise CommandFailure(
            f'{file} has no context "{name}"{suggest(name, tuple(known.contexts)) or there_are}', NOT_FOUND
        )
    return context


def _conceal(known: Config) -> dict[str, Any]:
    contexts = {
        name: replace(context, token=_HIDDEN) if context.token else context for name, context in known.contexts.items()
    }
    document: dict[str, Any] = to_plain(replace(known, contexts=contexts))
    return document


def _cells(row: _Row) -> tuple[str, ...]:
    context = row.context
    token = f"in {context.token_file}" if context.token_file else "set" if context.token else NONE
    return ("*" if row.is_current else " ", row.name, context.server, token)


def _document(row: _Row) -> Mapping[str, Any]:
    token = {"token": _HIDDEN} if row.context.token else {}
    return {"name": row.name, "current": row.is_current, **to_plain(row.context), **token}


_SHEET: Final[Sheet[_Row]] = Sheet(
    "Context",
    (Column("CURRENT"), Column("NAME"), Column("SERVER"), Column("TOKEN")),
    _cells,
    _document,
    lambda row: row.name,
)
