"""`hyperfleet config`: which servers there are to speak to, and with which tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.cli.command import HELP, Command, bundle
from hyperfleet.cli.contexts import Config, Context, locate, read_config
from hyperfleet.cli.exits import NOT_FOUND, USAGE
from hyperfleet.cli.failures import Failure, Misuse
from hyperfleet.cli.manifests import STDIN, read_text
from hyperfleet.cli.options import document_options, output_options
from hyperfleet.cli.output.documents import to_plain, write_yaml
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_document, print_items
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column
from hyperfleet.cli.session import Session, pass_session

_HIDDEN: Final = "***"
_ABSENT: Final = {NOT_FOUND: "there is no such context"}


@click.group(name="config", context_settings=dict(HELP))
def config() -> None:
    """Set up servers to speak to, and tokens.

    A context is a server with what is needed to speak to it. The file is config.yaml in $HYPERFLEET_CONFIG_HOME, else
    in ~/.config/hyperfleet; only you can read it. --context NAME uses another one than the current one for once.
    """


def _command(name: str, codes: Mapping[int, str] | None = None, **attributes: Any) -> Callable[[Any], click.Command]:
    told = {USAGE: "wrong arguments, or a file that is wrong or cannot be read or written", **(codes or {})}
    return config.command(name, cls=Command, codes=told, **attributes)


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────


class _Row(Struct, frozen=True):
    name: str
    context: Context
    is_current: bool


@_command("get-contexts", examples=[("all contexts", "hyperfleet config get-contexts")])
@output_options(("table", "name", "json", "yaml"))
@pass_session
def get_contexts(session: Session, output: Output) -> None:
    """Show all contexts; * marks the current one."""
    known = read_config(locate(session.environment))
    rows = [_Row(name, context, name == known.current_context) for name, context in sorted(known.contexts.items())]
    if not rows and output.format.is_table:
        session.say("There are none yet: make one with config set-context.")
        return
    print_items(session, output, _SHEET, rows)


@_command("current-context", examples=[("its name", "hyperfleet config current-context")], codes=_ABSENT)
@pass_session
def current_context(session: Session) -> None:
    """Print the name of the current context."""
    name = read_config(locate(session.environment)).current_context
    if name is None:
        raise Failure("there is no current context: choose one with config use-context", NOT_FOUND)
    session.write(name)


@_command("view", examples=[("the whole file, tokens hidden", "hyperfleet config view")])
@document_options()
@pass_session
def view(session: Session, output: Output) -> None:
    """Show the file; tokens are hidden."""
    document = _conceal(read_config(locate(session.environment)))
    if output.format.is_table:
        session.write(write_yaml(document))
    else:
        print_document(session, output, document)


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────


@_command(
    "use-context",
    examples=[("speak to another server from now on", "hyperfleet config use-context prod")],
    codes=_ABSENT,
)
@click.argument("name")
@pass_session
def use_context(session: Session, name: str) -> None:
    """Make a context the current one."""
    file = locate(session.environment)
    known = read_config(file)
    _find(known, name, file)
    write_config(file, replace(known, current_context=name))
    session.say(f'Using "{name}" from now on.')


class Changes(Struct, frozen=True):
    """What shall be different about a context; what was not said stays."""

    server: str | None = None
    token_file: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool | None = None

    def as_keywords(self) -> dict[str, Any]:
        """Return what was said; an empty text takes something away."""
        said = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: None if value == "" else value for name, value in said.items() if value is not None}


@_command(
    "set-context",
    examples=[
        ("a new server", "hyperfleet config set-context prod --server https://fleet.example.com"),
        (
            "… with a token that something else keeps fresh",
            "hyperfleet config set-context prod --token-file /run/token",
        ),
        ("… that others have signed", "hyperfleet config set-context prod --ca ca.pem --cert me.pem --key me.key"),
        ("take something away", "hyperfleet config set-context prod --ca ''"),
    ],
)
@click.argument("name")
@bundle(
    "changes",
    Changes,
    click.option("--server", metavar="URL", help="The address of the server."),
    click.option("--token-file", metavar="FILE", help="A file with the token, read each time."),
    click.option("--ca", metavar="FILE", help="The certificates of authorities to trust."),
    click.option("--cert", metavar="FILE", help="Our own certificate."),
    click.option("--key", metavar="FILE", help="Its key, if that is in another file."),
    click.option("--insecure/--secure", default=None, help="Whether to take any certificate; only for trying out."),
)
@click.option("--use", is_flag=True, help="Make it the current one; the first one is, anyway.")
@pass_session
def set_context(session: Session, name: str, changes: Changes, use: bool) -> None:
    """Make a context, or change one."""
    file = locate(session.environment)
    known = read_config(file)
    before = known.contexts.get(name)
    if before is None and not changes.server:
        raise Misuse(f'"{name}" is new: say where its server is with --server')
    keywords = changes.as_keywords()
    if keywords.get("server", "") is None:
        raise Misuse("a context cannot be without a server")
    after = replace(before or Context(server=""), **keywords)
    if changes.token_file:
        after = replace(after, token=None)
    _check_server(after)
    current = name if use or known.current_context is None else known.current_context
    write_config(file, Config(current, {**known.contexts, name: after}))
    session.say(f'Context "{name}" {"changed" if before else "created"}{" and used" if current == name else ""}.')


@_command(
    "set-token",
    examples=[
        ("typed unseen", "hyperfleet config set-token prod"),
        ("from another program", "vault read -field=token fleet | hyperfleet config set-token prod"),
        ("take it away", "hyperfleet config set-token prod --remove"),
    ],
    codes=_ABSENT,
)
@click.argument("name", required=False)
@click.option("--remove", is_flag=True, help="Take the token away.")
@pass_session
def set_token(session: Session, name: str | None, remove: bool) -> None:
    """Set the token of a context, of the current one unless told: from standard input, or typed unseen."""
    file = locate(session.environment)
    known = read_config(file)
    chosen = name or known.current_context
    if chosen is None:
        raise Misuse("there is no current context: say whose token it is")
    context = _find(known, chosen, file)
    token = None if remove else _read_token(session, chosen)
    changed = replace(context, token=token, token_file=None)
    write_config(file, replace(known, contexts={**known.contexts, chosen: changed}))
    session.say(f'Token of "{chosen}" {"removed" if remove else "set"}.')


@_command("delete-context", examples=[("forget one", "hyperfleet config delete-context old")], codes=_ABSENT)
@click.argument("name")
@pass_session
def delete_context(session: Session, name: str) -> None:
    """Forget a context, and its token."""
    file = locate(session.environment)
    known = read_config(file)
    _find(known, name, file)
    contexts = {each: context for each, context in known.contexts.items() if each != name}
    is_current = known.current_context == name
    write_config(file, Config(None if is_current else known.current_context, contexts))
    session.say(f'Context "{name}" deleted.{" There is no current one now." if is_current else ""}')


def write_config(file: Path, known: Config) -> None:
    """Write the file: all of it or nothing, and for nobody else to read."""
    from hyperfleet.cli.files import write_private

    write_private(file, write_yaml(known) + "\n")


def _read_token(session: Session, name: str) -> str:
    if session.can_ask:
        token: str = click.prompt(f"Token of {name}", hide_input=True, err=True)
    else:
        token = read_text(STDIN)
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise Misuse("that is no token: expected one word on standard input")
    return token


def _check_server(context: Context) -> None:
    from hyperfleet.client.endpoint import find_endpoint

    find_endpoint(context.server, {"token": ""})


def _find(known: Config, name: str, file: Path) -> Context:
    context = known.contexts.get(name)
    if context is None:
        from hyperfleet.documents.wording import suggest

        there_are = f"; there are {', '.join(sorted(known.contexts))}" if known.contexts else "; there are none yet"
        raise Failure(f'{file} has no context "{name}"{suggest(name, tuple(known.contexts)) or there_are}', NOT_FOUND)
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
