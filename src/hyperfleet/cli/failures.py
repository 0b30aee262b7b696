"""Every way in which a command can fail, as one clear sentence on stderr and an exit code; never a traceback.

`run` of the package hands every exception to `tell`. With `--debug` the traceback is shown as well. Commands raise
what they get; what they find wrong themselves they raise as `Misuse`, or as a `Failure` if another code than that for
wrong arguments fits.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar, Final

import click

from hyperfleet.cli import exits
from hyperfleet.cli.printable import tame
from hyperfleet.errors import DocumentError, HyperFleetError, StoreUnavailable

if TYPE_CHECKING:
    from hyperfleet.client.errors import FleetError


class Failure(HyperFleetError):  # noqa: N818  # it names an end, as those of the client name states
    """A command cannot do what it should; `exit_code` says how."""

    code: ClassVar[str] = "CommandFailed"

    def __init__(self, message: str, exit_code: int) -> None:
        """Say why, and how to end."""
        self.exit_code = exit_code
        super().__init__(message)


class Misuse(Failure):
    """The arguments, or what they name, are wrong."""

    code: ClassVar[str] = "Misuse"

    def __init__(self, message: str) -> None:
        """Say what is wrong and, if it is known, what would be right."""
        super().__init__(message, exits.USAGE)


# The errors of the client, by name: it is not imported unless it was used. Those that are not here were refused.
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


def tell(error: BaseException, *, debug: bool = False) -> int:
    """Say on stderr what went wrong; return the exit code."""
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
            _say_all(error)
            return code_of(error)
        case OSError():
            _say(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
            return exits.USAGE
        case _:
            _say(f"this should not have happened: {type(error).__name__}: {error}")
            _say_more("" if debug else "Run it again with --debug to see where, and tell us.")
            return exits.INTERNAL


def code_of(error: HyperFleetError) -> int:
    """Return the exit code of an error of ours."""
    if isinstance(error, Failure):
        return error.exit_code
    if isinstance(error, StoreUnavailable):
        return exits.UNAVAILABLE
    if fleet_error := _as_fleet_error(error):
        if fleet_error.code == "InvalidQuery":  # what was typed went into the query
            return exits.USAGE
        names = (each.__name__ for each in type(fleet_error).__mro__)
        return next((_OF_CLIENT[name] for name in names if name in _OF_CLIENT), exits.REFUSED)
    return exits.USAGE


def _as_fleet_error(error: HyperFleetError) -> FleetError | None:
    """Return the error if it is one of the client; if that was never imported, it cannot be."""
    module = sys.modules.get("hyperfleet.client.errors")
    return error if module is not None and isinstance(error, module.FleetError) else None


def _say_all(error: HyperFleetError) -> None:
    if isinstance(error, DocumentError):
        for problem in error.problems:
            _say(str(problem))
        return
    for each in (error, *getattr(error, "others", ())):
        _say(str(each))


def _say(sentence: str) -> None:
    """Say it; a part of it may be somebody else's."""
    click.echo("\n".join(map(tame, f"Error: {sentence}".split("\n"))), err=True)


def _say_more(sentence: str) -> None:
    if sentence:
        click.echo(sentence, err=True)
