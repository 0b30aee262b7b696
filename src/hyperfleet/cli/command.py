"""How commands are declared: man-style help with examples and exit codes, and the global options.

Every command is a `CliCommand`; help and docs/cli come from the same declarations. `bundle` collects several options in
one value, so that a command with twenty options is still a function with few arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

import click

from hyperfleet.cli import exits
from hyperfleet.cli.session import CliSession

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]

HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
GLOBAL: Final = "Options of every command"
# Exit codes of every command that connects to a server.
CONNECTED: Final = (exits.USAGE, exits.UNAVAILABLE, exits.DENIED, exits.INTERRUPTED)


class CliCommand(click.Command):
    """A command whose help has examples and exit codes."""

    def __init__(
        self,
        *arguments: Any,
        examples: Sequence[tuple[str, str]] = (),
        codes: Mapping[int, str] | None = None,
        **attributes: Any,
    ) -> None:
        """Take `examples` as (purpose, command line), `codes` as exit codes with their meaning for this command."""
        attributes.setdefault("context_settings", dict(HELP))
        super().__init__(*arguments, **attributes)
        self.examples = tuple(examples)
        self.codes = dict(codes or {})

    def every_code(self) -> dict[int, str]:
        """Return all exit codes, including those of every connected command."""
        general = CONNECTED if any(isinstance(each, GlobalOption) for each in self.params) else ()
        codes = {exits.OK: exits.MEANINGS[exits.OK], **{code: exits.MEANINGS[code] for code in general}, **self.codes}
        return dict(sorted(codes.items()))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's options first, then the global ones."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        own = [each for each in options if not isinstance(each, GlobalOption)]
        shared = [each for each in options if isinstance(each, GlobalOption)]
        for title, parameters in (("Options", own), (GLOBAL, shared)):
            records = [record for each in parameters if (record := each.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples and exit codes."""
        if self.examples:
            with formatter.section("Examples"):
                for purpose, line in self.examples:
                    formatter.write(f"  # {purpose}\n  {line}\n")
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in self.every_code().items()])
        super().format_epilog(ctx, formatter)


class GlobalOption(click.Option):
    """A global option; it may come before or after the command."""


def connected(function: F) -> F:
    """Give a command the options that choose the server."""
    for add in reversed(_GLOBAL_OPTIONS):
        function = add(function)
    return function


def bundle(name: str, make: Callable[..., Any], *options: Decorator[Any]) -> Decorator[F]:
    """Collect several options in one value, made by `make` and passed to the command as `name`."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def run(*arguments: Any, **values: Any) -> Any:
            own = {each: values.pop(each) for each in names}
            return function(*arguments, **{name: make(**own)}, **values)

        before = len(getattr(run, "__click_params__", ()))
        decorated: Any = run
        for add in reversed(options):
            decorated = add(decorated)
        names = [each.name for each in decorated.__click_params__[before:]]
        return decorated  # type: ignore[no-any-return]  # click's decorators return what they are given

    return decorate


class DurationType(click.ParamType[timedelta]):
    """A duration such as 90s, 1h30m or 2d; a bare number is seconds."""

    name = "duration"

    def __init__(self, *, may_be_zero: bool = True) -> None:
        """Accept a duration of zero, or not."""
        self._may_be_zero = may_be_zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parse a duration, or fail with what is wrong."""
        from hyperfleet.documents.durations import parse_duration

        if isinstance(value, timedelta):
            return value
        text = str(value)
        try:
            duration = parse_duration(f"{text}s" if text.isdecimal() else _spell_days(text))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not duration and not self._may_be_zero:
            self.fail("expected more than zero", param, ctx)
        return duration


class TimeType(click.ParamType[str]):
    """A time, or how long ago it was; days are understood, because ages are shown in days."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return it in the server's format."""
        return _spell_days(str(value))


def _spell_days(text: str) -> str:
    """Convert days to hours, the largest unit of durations."""
    return f"{int(text[:-1]) * 24}h" if text.endswith("d") and text[:-1].isdecimal() else text


DURATION: Final = DurationType()
TIME: Final = TimeType()


def _remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Store a global option in the session; the last one wins."""
    if value not in (None, False) and parameter.name:
        setattr(ctx.ensure_object(CliSession).flags, parameter.name, value)


def _global(*names: str, **attributes: Any) -> Decorator[Any]:
    return click.option(*names, cls=GlobalOption, callback=_remember, expose_value=False, **attributes)


_GLOBAL_OPTIONS: Final[Sequence[Decorator[Any]]] = (
    _global("--server", metavar="URL", help="The address of the server. [env: HYPERFLEET_SERVER]"),
    _global("--context", metavar="NAME", help="The context of the config file to use. [env: HYPERFLEET_CONTEXT]"),
    _global("--token", metavar="TOKEN", help="The token to send; HYPERFLEET_TOKEN is safer, others can see flags."),
    _global("--request-timeout", type=DurationType(may_be_zero=False), help="Timeout of one request. [default: 30s]"),
    _global("--debug", is_flag=True, help="Show the traceback of an error."),
)
