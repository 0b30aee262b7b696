"""Write docs/cli: a page per command, generated from the program; `generate` calls this, tests compare.

The pages come from the same declarations as `--help`, so the two always agree.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from hyperfleet.cli import command as program
from hyperfleet.cli import connection, contexts, exits
from hyperfleet.cli.command import CliCommand, GlobalOption
from hyperfleet.cli.options import FormatType
from hyperfleet.cli.table import COMMANDS

FOLDER = Path(__file__).parent / "cli"
_NOTE = "<!-- written by `make docs` from the program; do not edit -->\n"
_HEAD = f"""{_NOTE}# The command line

Data goes to stdout, messages for people to stderr; [exit codes](exit-codes.md) are the same everywhere.
"""
_FOUR = """## The guide's four recipes

| question | command | exit code |
|---|---|---|
| Is the adapter done? | `hyperfleet wait cluster NAME --adapter dns --timeout 10m` | 0 done, 3 it failed, 124 not yet |
| Is it ready? | `hyperfleet is-ready cluster NAME` | 0 yes, 1 no |
| Which adapters failed, and why? | `hyperfleet failed cluster NAME` | 0 none, 1 some |
| How far is it? | `hyperfleet progress cluster NAME [--watch]` | |
"""
_FORMATS = """## Formats

`-o` chooses the output format; commands that are not in this table have none. Two formats take an argument:
`-o jsonpath='{.name}'` and `-o custom-columns=NAME:.name`.

| formats | commands |
|---|---|
"""


def cli_pages() -> dict[Path, str]:
    """Return every page with its text."""
    context = click.Context(program, info_name="hyperfleet")
    commands = {name: found for name in COMMANDS if (found := program.get_command(context, name)) is not None}
    pages = {FOLDER / f"{name}.md": _write_page(name, found) for name, found in commands.items()}
    return {FOLDER / "README.md": _write_index(), FOLDER / "exit-codes.md": _write_codes(), **pages}


def write_cli_pages() -> None:
    """Write all pages, and remove those of commands that no longer exist."""
    pages = cli_pages()
    FOLDER.mkdir(exist_ok=True)
    for page in FOLDER.glob("*.md"):
        if page not in pages:
            page.unlink()
    for page, text in pages.items():
        page.write_text(text)


def _write_index() -> str:
    sections: dict[str, list[str]] = {}
    for name, entry in COMMANDS.items():
        sections.setdefault(entry.section, []).append(f"| [`{name}`]({name}.md) | {entry.help} |\n")
    tables = [f"## {section}\n\n| command | |\n|---|---|\n{''.join(rows)}" for section, rows in sections.items()]
    options = "".join(_write_options(_options_of(program, is_global=True)))
    parts = [
        _HEAD,
        *tables,
        _FOUR,
        _write_formats(),
        f"## Options of every command\n\nThey may come before or after the command.\n\n{options}",
        f"## Which server\n\n{_prose(connection.__doc__ or '')}",
        f"## The config file\n\n{_prose(contexts.__doc__ or '')}",
    ]
    return "\n".join(parts)


def _write_formats() -> str:
    """Return the table of formats and the commands that support them."""
    by_formats: dict[tuple[str, ...], list[str]] = {}
    for path, command in walk_commands():
        for names in [each.type.names for each in command.params if isinstance(each.type, FormatType)]:
            by_formats.setdefault(names, []).append(f"`{path}`")
    rows = "".join(
        f"| {', '.join(f'`{name}`' for name in names)} | {', '.join(commands)} |\n"
        for names, commands in sorted(by_formats.items(), key=lambda each: -len(each[0]))
    )
    return _FORMATS + rows


def walk_commands(path: str = "", command: click.Command = program) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its full name; commands of groups, not the groups."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        if below is not None and not below.hidden:
            yield from walk_commands(f"{path} {name}".strip(), below)


def _write_codes() -> str:
    rows = "".join(f"| {code} | {meaning} |\n" for code, meaning in sorted(exits.MEANINGS.items()))
    head = "# Exit codes\n\nThe page of a command may be more specific.\n"
    return f"{_NOTE}{head}\n| code | meaning |\n|---|---|\n{rows}"


def _write_page(name: str, command: click.Command) -> str:
    return _NOTE + "\n".join(_write_command(f"hyperfleet {name}", command, "#"))


def _write_command(path: str, command: click.Command, level: str) -> Iterator[str]:
    context = click.Context(command, info_name=path)
    yield f"{level} {path}\n"
    yield f"```text\n{' '.join([path, *command.collect_usage_pieces(context)])}\n```\n"
    yield from _paragraphs(command.help or "")
    own = list(_options_of(command, is_global=False))
    if own:
        yield "".join(_write_options(own))
    if isinstance(command, CliCommand):
        yield from _write_declared(command)
    if command.epilog:
        yield from _paragraphs(command.epilog)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from _write_command(f"{path} {name}", below, level + "#")


def _write_declared(command: CliCommand) -> Iterator[str]:
    if any(isinstance(each, GlobalOption) for each in command.params):
        yield "And the [options of every command](README.md#options-of-every-command).\n"
    if command.examples:
        lines = "".join(f"# {purpose}\n{line}\n" for purpose, line in command.examples)
        yield f"Examples:\n\n```bash\n{lines}```\n"
    rows = "".join(f"| {code} | {meaning} |\n" for code, meaning in command.every_code().items())
    yield f"| exit code | meaning |\n|---|---|\n{rows}"


def _options_of(command: click.Command, *, is_global: bool) -> Iterator[click.Option]:
    for each in command.params:
        if isinstance(each, click.Option) and isinstance(each, GlobalOption) == is_global and not each.hidden:
            yield each


def _write_options(options: Iterator[click.Option] | list[click.Option]) -> Iterator[str]:
    yield "| option | meaning |\n|---|---|\n"
    for option in options:
        names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
        metavar = "" if option.is_flag else f" {option.metavar or option.type.name.upper()}"
        default = f" [default: {option.default}]" if option.show_default else ""
        yield f"| {names}{metavar} | {_escape((option.help or '') + default)} |\n"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; preformatted ones are kept."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b"):
            kept = paragraph.removeprefix("\b").strip("\n")
            yield f"```text\n{kept}\n```\n"
        else:
            yield f"{_escape_prose(' '.join(paragraph.split()))}\n"


def _prose(text: str) -> str:
    """Return a docstring, which is Markdown."""
    return inspect.cleandoc(text).strip() + "\n"


def _escape(text: str) -> str:
    return _escape_prose(text).replace("|", "\\|")


def _escape_prose(text: str) -> str:
    return text.replace("<", "&lt;")
