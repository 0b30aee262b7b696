"""How our commands are declared: man-style help with examples and exit codes, and the options that all of them have.

`Command` is what every command is made of; help and docs/cli are written from the same declarations. `bundle` gathers
several options into one value, so that a command with twenty options is still a function with few arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

import click

from hyperfleet.cli import exits
from hyperfleet.cli.session import Session

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]

HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
GLOBAL: Final = "Options of every command"
# What may happen to any command that speaks to a server.
CONNECTED: Final = (exits.USAGE, exits.UNAVAILABLE, exits.DENIED, exits.INTERRUPTED)


class Command(click.Command):
    """A command whose help has examples and exit codes."""

    def __init__(
        self,
        *arguments: Any,
        examples: Sequence[tuple[str, str]] = (),
        codes: Mapping[int, str] | None = None,
        **attributes: Any,
    ) -> None:
        """Take `examples` as (what for, command line), `codes` as exit codes with what they mean here."""
        attributes.setdefault("context_settings", dict(HELP))
        super().__init__(*arguments, **attributes)
        self.examples = tuple(examples)
        self.codes = dict(codes or {})

    def every_code(self) -> dict[int, str]:
        """Return all exit codes, those that every connected command has included."""
        general = CONNECTED if any(isinstance(each, GlobalOption) for each in self.params) else ()
        told = {exits.OK: exits.MEANINGS[exits.OK], **{code: exits.MEANINGS[code] for code in general}, **self.codes}
        return dict(sorted(told.items()))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write our own options first, then those of every command."""
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
    """An option that every command has; it may stand before the command or after it."""


def connected(function: F) -> F:
    """Give a command the options that say which server it speaks to."""
    for add in reversed(_GLOBAL_OPTIONS):
        function = add(function)
    return function


def bundle(name: str, make: Callable[..., Any], *options: Decorator[Any]) -> Decorator[F]:
    """Gather the values of several options into one, made by `make` and passed to the command as `name`."""

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
    """A duration such as 90s or 1h30m; a bare number is seconds, `0` nothing, and days are understood."""

    name = "duration"

    def __init__(self, *, may_be_zero: bool = True) -> None:
        """Take nothing at all for a duration, or do not."""
        self._may_be_zero = may_be_zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Read it, or say what is wrong."""
        from hyperfleet.documents.durations import parse_duration

        if isinstance(value, timedelta):
            return value
        text = str(value)
        try:
            duration = parse_duration(f"{text}s" if text.isdecimal() else _spell_days(text))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not duration and not self._may_be_zero:
            self.fail("expected more than nothing", param, ctx)
        return duration


class TimeType(click.ParamType[str]):
    """A time that the server reads, or how long ago it was; days, which ages are told in, are understood."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Write it as the server takes it."""
        return _spell_days(str(value))


def _spell_days(text: str) -> str:
    """Write days as hours, the longest that our durations have."""
    return f"{int(text[:-1]) * 24}h" if text.endswith("d") and text[:-1].isdecimal() else text


DURATION: Final = DurationType()
TIME: Final = TimeType()


def _remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep what was given for all commands, wherever it stood; the last one wins."""
    if value not in (None, False) and parameter.name:
        setattr(ctx.ensure_object(Session).flags, parameter.name, value)


def _global(*names: str, **attributes: Any) -> Decorator[Any]:
    return click.option(*names, cls=GlobalOption, callback=_remember, expose_value=False, **attributes)


_GLOBAL_OPTIONS: Final[Sequence[Decorator[Any]]] = (
    _global("--server", metavar="URL", help="The server to speak to. [env: HYPERFLEET_SERVER]"),
    _global("--context", metavar="NAME", help="The context of the config file to use. [env: HYPERFLEET_CONTEXT]"),
    _global("--token", metavar="TOKEN", help="The token to send; better set HYPERFLEET_TOKEN, flags can be seen."),
    _global(
        "--request-timeout", type=DurationType(may_be_zero=False), help="How long one request may take. [default: 30s]"
    ),
    _global("--debug", is_flag=True, help="Show where an error comes from."),
)
