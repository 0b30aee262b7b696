"""The checks of `hyperfleet doctor`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from hyperfleet import __version__
from hyperfleet.cli.contexts import Config, locate, read_config
from hyperfleet.cli.output.columns import format_kinds, format_skew
from hyperfleet.cli.output.words import count_of
from hyperfleet.errors import HyperFleetError

if TYPE_CHECKING:
    from hyperfleet.cli.session import CliSession
    from hyperfleet.client import Fleet, Policy

Verdict = Literal["ok", "warning", "failed"]

_SKEW: Final = 5.0  # seconds; ages would be wrong by as much
_ADAPTER_SKEW: Final = 60.0  # seconds; reports with such a clock are often out of order


class CheckResult(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The result of one check. `is_fatal`: if it failed, the checks after it are skipped."""

    check: str
    verdict: Verdict
    found: str
    remedy: str = ""
    is_fatal: bool = False


# ── local ────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_configuration(session: CliSession) -> Iterator[CheckResult]:
    """Check the config file and the server it names."""
    file = locate(session.environment)
    try:
        config = read_config(file)
    except HyperFleetError as error:
        yield CheckResult("config", "failed", str(error), f"correct {file}, or remove it", is_fatal=True)
        return
    yield _check_file(file, config)
    try:
        connection = session.connection
        session.open().close()  # raises if the options are invalid or unsafe
    except HyperFleetError as error:
        yield CheckResult("server", "failed", str(error), "see `hyperfleet config --help`", is_fatal=True)
        return
    yield CheckResult("server", "ok", f"{connection.server} ({connection.origin})")
    if connection.token:
        yield CheckResult("token", "ok", f"set ({connection.token_origin})")
    if connection.trust.insecure:
        remedy = "set `ca` in the context to the certificate of its authority, instead of `insecure`"
        yield CheckResult("tls", "warning", "the certificate of the server is not verified", remedy)


def _check_file(file: Path, config: Config) -> CheckResult:
    if not file.exists():
        return CheckResult("config", "ok", f"{file} does not exist, which is fine")
    has_token = any(context.token for context in config.contexts.values())
    mode = file.stat().st_mode & 0o777
    if has_token and mode & 0o077:
        return CheckResult("config", "warning", f"{file} has tokens and others can read it", f"chmod 600 {file}")
    return CheckResult("config", "ok", f"{file} has {count_of(len(config.contexts), 'context')}")


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────


def check_server(session: CliSession, fleet: Fleet) -> Iterator[CheckResult]:
    """Check that the server answers, its version and clock, that it accepts the token, and that it is ready."""
    started = time.monotonic()
    try:
        fleet.health()
    except HyperFleetError as error:
        remedy = "start it (`hyperfleet serve`), or choose another one with --server or a context"
        yield CheckResult("answer", "failed", str(error), remedy, is_fatal=True)
        return
    milliseconds = (time.monotonic() - started) * 1000
    yield CheckResult("answer", "ok", f"the server answers ({_format_latency(milliseconds)})")
    yield _check_version(fleet)
    yield _check_clock(session)
    yield _check_access(fleet)
    yield _check_readiness(fleet)


def _format_latency(milliseconds: float) -> str:
    return "in less than 100 ms" if milliseconds < 100 else f"after {milliseconds:.0f} ms"


def _check_version(fleet: Fleet) -> CheckResult:
    try:
        theirs = fleet.version()
    except HyperFleetError as error:
        return CheckResult("version", "warning", str(error), "is this the address of a HyperFleet server?")
    if theirs == __version__:
        return CheckResult("version", "ok", f"{theirs}, the same as here")
    remedy = "install the same version on both sides"
    return CheckResult("version", "warning", f"this is {__version__}, the server {theirs}", remedy)


def _check_clock(session: CliSession) -> CheckResult:
    from http.client import HTTPException

    try:
        theirs = session.read_server_clock()
    except (OSError, HTTPException, ValueError) as error:  # also a response that is not HTTP, or a date that is invalid
        return CheckResult("clock", "warning", f"the server's clock cannot be read: {error}", "try again")
    if theirs is None:
        return CheckResult("clock", "ok", "the server does not send its time")
    skew = (theirs - session.now()).total_seconds()
    if abs(skew) <= _SKEW:
        return CheckResult("clock", "ok", "agrees with the server's")
    ahead = "ahead of" if skew > 0 else "behind"
    found = f"the server's clock is {abs(skew):.0f}s {ahead} this one, so all ages are off by that"
    return CheckResult("clock", "warning", found, "synchronise both machines with NTP")


def _check_access(fleet: Fleet) -> CheckResult:
    try:
        fleet.clusters.page(limit=1, fields="id")
    except HyperFleetError as error:
        remedy = "set another token: `hyperfleet config set-token`, HYPERFLEET_TOKEN or --token"
        return CheckResult("access", "failed", str(error), remedy, is_fatal=True)
    return CheckResult("access", "ok", "the fleet can be read")


def _check_readiness(fleet: Fleet) -> CheckResult:
    try:
        readiness = fleet.ready()
    except HyperFleetError as error:
        return CheckResult("ready", "failed", str(error), "see the log of the server")
    if readiness.is_ready:
        return CheckResult("ready", "ok", "the server can read and write")
    reasons = "; ".join(f"{each.check}: {each.message}" for each in readiness.reasons)
    return CheckResult("ready", "failed", reasons or readiness.status, "see the log of the server")


# ── the fleet ────────────────────────────────────────────────────────────────────────────────────────────────────


def check_fleet(fleet: Fleet) -> Iterator[CheckResult]:
    """Check the policy in force, and the adapters."""
    try:
        yield from _check_policy(fleet)
        yield from _check_adapters(fleet)
    except HyperFleetError as error:
        yield CheckResult("fleet", "warning", str(error), "the token may not have permission")


def _origin_of(policy: Policy) -> str:
    """Return where a policy that was in no file comes from."""
    return f"applied by {policy.by}" if policy.by else "applied through the API"


def _check_policy(fleet: Fleet) -> Iterator[CheckResult]:
    policy = fleet.policy()
    where = f"version {policy.version}, {policy.file or _origin_of(policy)}"
    for warning in policy.warnings:
        yield CheckResult("policy", "warning", str(warning), "see `hyperfleet rules check`")
    if policy.recomputation.remaining:
        left = count_of(policy.recomputation.remaining, "resource")
        yield CheckResult("policy", "warning", f"{where}: {left} still to be recomputed", "wait a little")
    elif not policy.warnings:
        yield CheckResult("policy", "ok", where)


def _check_adapters(fleet: Fleet) -> Iterator[CheckResult]:
    adapters = fleet.adapters()
    for adapter in adapters:
        if adapter.last_seen is None and any(adapter.blocks.values()):
            found = f"{adapter.name} has never reported, and {format_kinds(adapter.blocks)} wait for it"
            yield CheckResult("adapters", "warning", found, "is it installed, and can it reach this server?")
        skew = adapter.clock_skew_seconds
        if skew is not None and abs(skew) > _ADAPTER_SKEW:
            found = f"the clock of {adapter.name} is {format_skew(skew)} off"
            yield CheckResult("adapters", "warning", found, "synchronise its machine with NTP")
    yield CheckResult("adapters", "ok", f"{count_of(len(adapters), 'adapter')} known")
