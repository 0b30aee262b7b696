"""How commands fail: one clear message on stderr and an exit code, never a traceback.

`run` of the package passes every exception to `report`. With `--debug` the traceback is shown as well. Commands let
exceptions pass; for errors of their own they raise `Misuse`, or `CommandFailure` with another exit code.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar, Final

import click

from hyperfleet.cli import exits
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.errors import DocumentError, HyperFleetError, MissingPackage, StoreUnavailable

if TYPE_CHECKING:
    from hyperfleet.client.errors import FleetError


class CommandFailure(HyperFleetError):  # noqa: N818  # the name describes a state
    """A command failed with an exit code."""

    code: ClassVar[str] = "CommandFailed"

    def __init__(self, message: str, exit_code: int) -> None:
        """Keep the exit code."""
        self.exit_code = exit_code
        super().__init__(message)


class Misuse(CommandFailure):
    """The arguments, or what they name, are wrong."""

    code: ClassVar[str] = "Misuse"

    def __init__(self, message: str) -> None:
        """Take a message that says what is wrong and, if possible, what would be right."""
        super().__init__(message, exits.USAGE)


# Errors of the client, by name, so that the client need not be imported. All others mean REFUSED.
_OF_CLIENT: Final = {
    "BadConnection": exits.USAGE,
    "ConnectionFailed": exits.UNAVAILABLE,
    "UnexpectedAnswer": exits.UNAVAILABLE,
    "Ambiguous": exits.USAGE,
    "Unauthenticated": exits.DENIED,
    "Forbidden": exits.DENIED,
    "NotFound": exits.NOT_FOUND,
    "Gone": exits.NOT_FOUND,
    "Forgotten": exits.NOT_FOUND,
    "RateLimited": exits.UNAVAILABLE,
    "Unavailable": exits.UNAVAILABLE,
    "WaitFailed": exits.FAILED,
    "WaitTimeout": exits.TIMEOUT,
}


def report(error: BaseException, *, debug: bool = False) -> int:
    """Print an error on stderr; return the exit code."""
    if debug and not isinstance(error, click.ClickException):
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    match error:
        case click.ClickException():
            error.show(sys.stderr)
            return error.exit_code
        case KeyboardInterrupt() | click.Abort():
            return exits.INTERRUPTED
        case HyperFleetError():
            _print_errors(error)
            return code_of(error)
        case ModuleNotFoundError(name=str(module)) if module.partition(".")[0] not in ("", "hyperfleet"):
            _print_error(str(MissingPackage(module.partition(".")[0])))
            return exits.UNAVAILABLE
        case OSError():
            _print_error(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
            return exits.USAGE
        case _:
            _print_error(f"internal error: {type(error).__name__}: {error}")
            _print_hint("" if debug else "Run it again with --debug for a traceback, and report it.")
            return exits.INTERNAL


def code_of(error: HyperFleetError) -> int:
    """Return the exit code of an error."""
    if isinstance(error, CommandFailure):
        return error.exit_code
    if isinstance(error, StoreUnavailable):
        return exits.UNAVAILABLE
    if fleet_error := _as_fleet_error(error):
        if fleet_error.code == "InvalidQuery":  # the query came from arguments
            return exits.USAGE
        names = (each.__name__ for each in type(fleet_error).__mro__)
        return next((_OF_CLIENT[name] for name in names if name in _OF_CLIENT), exits.REFUSED)
    return exits.USAGE


def _as_fleet_error(error: HyperFleetError) -> FleetError | None:
    """Return the error if it is one of the client, which need not have been imported."""
    module = sys.modules.get("hyperfleet.client.errors")
    return error if module is not None and isinstance(error, module.FleetError) else None


def _print_errors(error: HyperFleetError) -> None:
    if isinstance(error, DocumentError):
        for problem in error.problems:
            _print_error(str(problem))
        return
    for each in (error, *getattr(error, "others", ())):
        _print_error(str(each))


def _print_error(sentence: str) -> None:
    """Print an error; parts of it may come from the server, so it is sanitized."""
    click.echo("\n".join(map(sanitize, f"Error: {sentence}".split("\n"))), err=True)


def _print_hint(sentence: str) -> None:
    if sentence:
        click.echo(sentence, err=True)
