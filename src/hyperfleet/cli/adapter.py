"""`hyperfleet adapter`: write, check and run adapters that are YAML files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hyperfleet.cli import exits
from hyperfleet.cli.adapter_dry_run import dry_run
from hyperfleet.cli.adapter_files import AdapterFiles, adapter_file_options
from hyperfleet.cli.command import HELP, CliCommand
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_document
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.adapter.loading import LoadedAdapter
    from hyperfleet.document_problem import DocumentProblem

_WRONG: Final = exits.MEANINGS[exits.USAGE]
_NAME: Final = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_MAX_NAME: Final = 50  # characters; objects are named after the adapter, with an id behind it


@click.group(name="adapter", context_settings=dict(HELP))
def adapter() -> None:
    """Write and check adapters.

    An adapter is a YAML file: what it reads, what must be true first, which Kubernetes objects it applies, and what it
    reports. See docs/adapters.md.
    """


@adapter.command(
    cls=CliCommand,
    examples=[
        ("one file", "hyperfleet adapter check -f dns.yaml"),
        ("all adapters of a folder", "hyperfleet adapter check -f adapters/"),
        ("the two files of a Go adapter", "hyperfleet adapter check -c adapter-config.yaml -t task.yaml"),
        ("for a program", "hyperfleet adapter check -f dns.yaml -o json"),
    ],
    codes={
        exits.OK: "all are good",
        exits.FALSE: "a file has errors (with --strict: or warnings)",
        exits.USAGE: f"{_WRONG}",
    },
)
@adapter_file_options
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@document_options()
@pass_session
def check(session: CliSession, files: AdapterFiles, strict: bool, output: Output) -> None:
    """Check adapter files: all errors with their positions, and warnings about probable mistakes.

    Templates, expressions, field paths and the names they use are checked, and so are the files that a file names. A
    variable of the environment that is required and not set is a warning, as another machine may have it.
    """
    loaded = files.load(dict(session.environment), missing_env="warning")
    problems = [problem for each in loaded for problem in each.problems]
    errors = sum(problem.level == "error" for problem in problems)
    if output.format.is_table:
        for problem in problems:
            session.write(*map(sanitize, str(problem).split("\n")))
        session.message(_summarize(loaded, errors, len(problems) - errors))
    else:
        print_document(session, output, _document(loaded))
    sys.exit(exits.FALSE if errors or (strict and problems) else exits.OK)


def _summarize(loaded: tuple[LoadedAdapter, ...], errors: int, warnings: int) -> str:
    names = ", ".join(each.config.name if each.config else each.file for each in loaded)
    return f"{names}: {count_of(errors, 'error')}, {count_of(warnings, 'warning')}"


def _document(loaded: tuple[LoadedAdapter, ...]) -> dict[str, Any]:
    return {
        "adapters": [
            {
                "file": each.file,
                "name": each.config.name if each.config else None,
                "isGood": each.config is not None,
                "problems": [_problem(problem) for problem in each.problems],
            }
            for each in loaded
        ]
    }


def _problem(problem: DocumentProblem) -> dict[str, Any]:
    place = problem.place
    where = {"file": place.file, "line": place.line, "column": place.column, "path": place.path}
    return {**where, "level": problem.level, "code": problem.code, "message": problem.message}


@adapter.command(
    cls=CliCommand,
    examples=[
        ("write dns.yaml", "hyperfleet adapter init dns"),
        ("in a folder", "hyperfleet adapter init dns --folder adapters"),
    ],
    codes={exits.USAGE: f"{_WRONG}; the file is there already"},
)
@click.argument("name")
@click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), default=".", help="Where to write it; default: here."
)
@pass_session
def init(session: CliSession, name: str, folder: Path) -> None:
    """Write the file of a new adapter: a working start with comments, which passes `check`."""
    from hyperfleet.adapter.starts import start_text

    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise Misuse(f'"{name}" is not a name for an adapter: small letters, digits and -, at most {_MAX_NAME}')
    file = folder / f"{name}.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(start_text(name))
    except FileExistsError as error:
        raise Misuse(f"{file} is there already") from error
    except OSError as error:
        raise Misuse(f"{file} cannot be written: {error.strerror}") from error
    session.write(str(file))
    session.message(f"Next: hyperfleet adapter check -f {file}")


@adapter.command(cls=CliCommand, examples=[("for an editor", "hyperfleet adapter schema > adapter.schema.json")])
@pass_session
def schema(session: CliSession) -> None:
    """Print the JSON Schema of adapter files, for editors."""
    import msgspec

    from hyperfleet.adapter.documents.files import adapter_schema

    session.write(msgspec.json.format(msgspec.json.encode(adapter_schema()), indent=2).decode())


adapter.add_command(dry_run)
