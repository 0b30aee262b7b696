"""`hyperfleet serve`: run the server, or only check its settings."""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Final

import click

from hyperfleet.cli.command import CliCommand
from hyperfleet.cli.exits import FALSE, OK, UNAVAILABLE, USAGE
from hyperfleet.errors import DocumentError, HyperFleetError, PolicyError, SettingsError, StoreUnavailable
from hyperfleet.settings import SETTINGS, Setting, conceal, find_unknown_variables, resolve

if TYPE_CHECKING:
    from hyperfleet.documents import DocumentProblem
    from hyperfleet.settings import Resolution, Settings

_LOG: Final = logging.getLogger(__name__)
_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
# Flags of settings, and the keys they set.
FLAGS: Final = {
    "--listen": "listen",
    "--database": "database",
    "--policy": "policy",
    "--workers": "workers",
    "--insecure-listen": "insecureListen",
    "--log-level": "logLevel",
}
_LISTEN_ERRORS: Final = {
    errno.EADDRINUSE: "is in use by another program. Choose another one with --listen; port 0 takes any free port",
    errno.EACCES: "is not permitted: ports below 1024 need privileges. Choose another one with --listen",
    errno.EADDRNOTAVAIL: "is not an address of this machine. Listen on 127.0.0.1, or on 0.0.0.0 for every network",
}


def _help(key: str) -> str:
    """Return the help of a flag, from its setting."""
    setting = _BY_KEY[key]
    return f"{setting.description}.{_describe_default(setting)}"


def _describe_default(setting: Setting) -> str:
    return f" [default: {setting.write_default()}]" if setting.default else ""


def _list_others() -> str:
    """List the settings that have no flag."""
    rows = [
        (setting.key, setting.write_default(), setting.description)
        for setting in SETTINGS
        if setting.key not in FLAGS.values()
    ]
    return "\n".join(f"  {key:<31} {default:<8} {text}" for key, default, text in rows)


_EXAMPLES: Final = [
    ("on this machine, with a file for its data", "hyperfleet serve"),
    ("for a quick test", "hyperfleet serve --listen 127.0.0.1:0 --database memory:"),
    ("in production", "hyperfleet serve --database postgresql://fleet@db.example.com/fleet --workers 4"),
    ("only check the settings", "hyperfleet serve --config hyperfleet.yaml --check"),
]
_CODES: Final = {
    OK: "stopped normally; with --check: valid",
    FALSE: "a worker had to be killed; with --check: invalid",
    USAGE: "settings or policy are wrong",
    UNAVAILABLE: "the database or the address is not available",
}
EPILOG: Final = f"""\b
Every setting can be given in three ways; the first of these wins:
  a flag                  --log-level debug
  an environment variable HYPERFLEET_LOG_LEVEL=debug
                          HYPERFLEET_LIMITS_MAX_DEPTH=64 (limits.maxDepth)
  the file of --config    logLevel: debug
Give passwords in the last two ways: other users of the machine can see flags.

\b
Settings without a flag, and their defaults:
{_list_others()}
"""


@click.command(name="serve", cls=CliCommand, examples=_EXAMPLES, codes=_CODES, epilog=EPILOG)
@click.option("--listen", metavar="HOST:PORT", help=_help("listen"))
@click.option("--database", metavar="URL", help=_help("database"))
@click.option("--policy", metavar="FILE", help=_help("policy"))
@click.option("--config", metavar="FILE", help="A YAML file with settings. [env: HYPERFLEET_CONFIG]")
@click.option("--workers", metavar="N", help=_help("workers"))
@click.option("--insecure-listen", is_flag=True, help=_help("insecureListen"))
@click.option("--log-level", metavar="LEVEL", help=_help("logLevel"))
@click.option(
    "--check", is_flag=True, help="Check settings and policy, show the effective settings and their origins, and exit."
)
def serve(config: str | None, check: bool, insecure_listen: bool, **texts: str | None) -> None:
    """Run the server until it is stopped (Ctrl-C or SIGTERM).

    Without any settings it listens on this machine only, keeps its data in the file hyperfleet.db in the current
    directory, and uses the policy stored there, or else the built-in one. A policy file is
    activated if it changed since a server last read it, so that a restart does not undo `hyperfleet rules apply`.

    SIGTERM and Ctrl-C stop it gracefully, SIGHUP reloads its policy and its tokens.
    """
    flags = {"--" + name.replace("_", "-"): text for name, text in texts.items()}
    flags["--insecure-listen"] = "true" if insecure_listen else None
    for warning in find_unknown_variables(os.environ):
        click.echo(f"Warning: {warning}", err=True)
    if check:
        sys.exit(_check(flags, config))
    sys.exit(_run(resolve(flags, os.environ, config).settings))


def _run(settings: Settings) -> int:
    """Run the server; user errors end with a message."""
    from hyperfleet import serving

    if settings.log_format == "text":  # a JSON log must not contain other lines; `--check` shows the same
        click.echo(f"Data: {conceal(settings.database)}", err=True)
        click.echo(f"Policy: {settings.policy or 'the stored one, or else the built-in one'}", err=True)
        click.echo(f"Callers: {_describe_auth(settings)}", err=True)
    try:
        return serving.serve(settings)
    except StoreUnavailable as error:
        return _fail(conceal(str(error)), settings)
    except HyperFleetError as error:
        if settings.log_format == "text":
            raise
        return _fail(conceal(str(error)), settings, USAGE)
    except socket.gaierror:
        return _fail(f"cannot listen on {settings.listen}: unknown host", settings)
    except OSError as error:
        if error.errno not in _LISTEN_ERRORS:
            raise
        return _fail(f"{settings.listen} {_LISTEN_ERRORS[error.errno]}", settings)


def _describe_auth(settings: Settings) -> str:
    auth = settings.auth
    methods = [*(["a file of tokens"] if auth.tokens else []), *(f"tokens of {each.issuer}" for each in auth.issuers)]
    return f"authenticated by {' and '.join(methods)}" if methods else "not authenticated (docs/security.md)"


def _fail(sentence: str, settings: Settings, code: int = UNAVAILABLE) -> int:
    """Report why it ended, in the format of the log; return the exit code."""
    if settings.log_format == "json":
        _LOG.critical(sentence)
    else:
        click.echo(f"Error: {sentence}", err=True)
    return code


def _check(flags: dict[str, str | None], config: str | None) -> int:
    """Print everything that is wrong, or the effective settings."""
    try:
        resolution = resolve(flags, os.environ, config)
        _check_files(resolution.settings)
    except DocumentError as error:
        for problem in error.problems:
            click.echo(str(problem))
        return FALSE
    _show(resolution)
    return OK


def _check_files(settings: Settings) -> None:
    """Read the files of the settings, as a start would; print warnings, and raise all errors together."""
    from hyperfleet import bootstrap
    from hyperfleet.event_system import check_webhook_files

    problems: list[DocumentProblem] = []
    checks = (bootstrap.spec_checker, bootstrap.build_authenticator, check_webhook_files)
    for look in (_check_policy, *checks, _check_tls):
        try:
            look(settings)
        except DocumentError as error:
            problems += error.problems
    if problems:
        raise SettingsError(problems)


def _check_policy(settings: Settings) -> None:
    from hyperfleet import bootstrap
    from hyperfleet.aggregation.loading.policy_loader import check_policies
    from hyperfleet.documents import has_errors

    policy = bootstrap.read_policy(settings.policy)
    problems = check_policies(policy.text, policy.file).problems
    if has_errors(problems):
        raise PolicyError(problems)
    for problem in problems:
        click.echo(str(problem), err=True)


def _check_tls(settings: Settings) -> None:
    from hyperfleet import bootstrap

    for problem in bootstrap.check_tls(settings):
        click.echo(str(problem), err=True)


def _show(resolution: Resolution) -> None:
    """Print every setting and its origin."""
    for setting in SETTINGS:
        line = f"{setting.key}: {setting.show(resolution.settings)}"
        click.echo(f"{line:<48} # {resolution.origins[setting.key]}")
