"""Every example of every `--help` is a command line that would run: the program's own parser reads it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from docs.cli_pages import walk_commands
from hyperfleet.cli import command as program
from hyperfleet.cli.command import CliCommand
from hyperfleet.cli.session import CliSession

_OPERATORS: Final = frozenset("();<>|&")
COMMANDS: Final = dict(walk_commands())
EXAMPLES: Final = [
    (path, line)
    for path, command in COMMANDS.items()
    if isinstance(command, CliCommand)
    for _, line in command.examples
]


def test_every_command_has_examples() -> None:
    assert {path for path, _ in EXAMPLES} == set(COMMANDS)


@pytest.mark.parametrize(("path", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_an_example_is_understood(path: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    calls = [[provide(word) for word in words] for words in calls_in(line)]
    assert path in map(parse, calls), "it is an example of the command that shows it"


@pytest.mark.parametrize("line", ["hyperfleet gett cl", "hyperfleet get cl --nothing", "hyperfleet get cl -o no"])
def test_an_invalid_example_would_be_noticed(line: str) -> None:
    with pytest.raises(click.UsageError):
        parse(next(calls_in(line)))


def calls_in(line: str) -> Iterator[list[str]]:
    """Yield the words behind each `hyperfleet` of a line for a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if not word or not _OPERATORS.issuperset(word):
            words.append(word)
            continue
        if "hyperfleet" in words:
            yield words[words.index("hyperfleet") + 1 :]
        words = []


def provide(word: str) -> str:
    """See to it that a file that is named is there, for some commands look when they read their command line."""
    file = Path(word.replace("*", "any"))
    if file.suffix in (".yaml", ".json") and not file.is_absolute():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        return str(file)
    return word


def parse(words: list[str]) -> str:
    """Read a command line without running it; return the words of the command."""
    context = program.make_context("hyperfleet", words, obj=CliSession({}))
    command: click.Command = program
    names = []
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        context = found.make_context(name, rest, parent=context)
        command = found
        names.append(str(name))
    return " ".join(names)
