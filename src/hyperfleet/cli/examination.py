"""What `hyperfleet doctor` looks at, one check after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from hyperfleet import __version__
from hyperfleet.cli.contexts import Config, locate, read_config
from hyperfleet.cli.output.columns import tell_kinds, tell_skew
from hyperfleet.cli.output.words import count_of
from hyperfleet.errors import HyperFleetError

if TYPE_CHECKING:
    from hyperfleet.cli.session import Session
    from hyperfleet.client import Fleet, Policy

Verdict = Literal["ok", "warning", "failed"]

_SKEW: Final = 5.0  # seconds; ages are wrong by as much
_ADAPTER_SKEW: Final = 60.0  # seconds; reports of such a clock are often out of order


class Finding(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one check found. `is_fatal`: the checks after it make no sense if it failed."""

    check: str
    verdict: Verdict
    found: str
    remedy: str = ""
    is_fatal: bool = False


# ── here ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def examine_configuration(session: Session) -> Iterator[Finding]:
    """Check the config file, and which server it leads to."""
    file = locate(session.environment)
    try:
        config = read_config(file)
    except HyperFleetError as error:
        yield Finding("config", "failed", str(error), f"correct {file}, or move it away", is_fatal=True)
        return
    yield _examine_file(file, config)
    try:
        connection = session.connection
        session.open().close()  # refuses what makes no sense or is not safe
    except HyperFleetError as error:
        yield Finding("server", "failed", str(error), "see `hyperfleet config --help`", is_fatal=True)
        return
    yield Finding("server", "ok", f"{connection.server} ({connection.origin})")
    if connection.token:
        yield Finding("token", "ok", f"there is one ({connection.token_origin})")
    if connection.trust.insecure:
        remedy = "give the certificate of its authority as `ca` in the context instead of `insecure`"
        yield Finding("tls", "warning", "the certificate of the server is not checked", remedy)


def _examine_file(file: Path, config: Config) -> Finding:
    if not file.exists():
        return Finding("config", "ok", f"{file} is not there; that is fine")
    has_token = any(context.token for context in config.contexts.values())
    mode = file.stat().st_mode & 0o777
    if has_token and mode & 0o077:
        return Finding("config", "warning", f"{file} has tokens and others can read it", f"chmod 600 {file}")
    return Finding("config", "ok", f"{file} has {count_of(len(config.contexts), 'context')}")


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────


def examine_server(session: Session, fleet: Fleet) -> Iterator[Finding]:
    """Check that the server answers, its version and clock, that it takes our token, and that it is ready."""
    started = time.monotonic()
    try:
        fleet.health()
    except HyperFleetError as error:
        remedy = "start it (`hyperfleet serve`), or name another one with --server or a context"
        yield Finding("answer", "failed", str(error), remedy, is_fatal=True)
        return
    milliseconds = (time.monotonic() - started) * 1000
    yield Finding("answer", "ok", f"the server answers ({_tell_time(milliseconds)})")
    yield _examine_version(fleet)
    yield _examine_clock(session)
    yield _examine_access(fleet)
    yield _examine_readiness(fleet)


def _tell_time(milliseconds: float) -> str:
    return "at once" if milliseconds < 100 else f"after {milliseconds:.0f} ms"


def _examine_version(fleet: Fleet) -> Finding:
    try:
        theirs = fleet.version()
    except HyperFleetError as error:
        return Finding("version", "warning", str(error), "is this the address of a HyperFleet server?")
    if theirs == __version__:
        return Finding("version", "ok", f"{theirs}, here and there")
    remedy = "install the same version here and there"
    return Finding("version", "warning", f"this is {__version__}, the server {theirs}", remedy)


def _examine_clock(session: Session) -> Finding:
    from http.client import HTTPException

    try:
        theirs = session.read_server_clock()
    except (OSError, HTTPException, ValueError) as error:  # also what is no HTTP, and what is no date
        return Finding("clock", "warning", f"the server's clock cannot be read: {error}", "try again")
    if theirs is None:
        return Finding("clock", "ok", "the server does not tell its time")
    skew = (theirs - session.now()).total_seconds()
    if abs(skew) <= _SKEW:
        return Finding("clock", "ok", "agrees with that of the server")
    ahead = "ahead of" if skew > 0 else "behind"
    found = f"the server's clock is {abs(skew):.0f}s {ahead} this one, so all ages are wrong by that"
    return Finding("clock", "warning", found, "let both machines take their time from NTP")


def _examine_access(fleet: Fleet) -> Finding:
    try:
        fleet.clusters.page(limit=1, fields="id")
    except HyperFleetError as error:
        remedy = "give another token: `hyperfleet config set-token`, HYPERFLEET_TOKEN or --token"
        return Finding("access", "failed", str(error), remedy, is_fatal=True)
    return Finding("access", "ok", "the fleet can be read")


def _examine_readiness(fleet: Fleet) -> Finding:
    try:
        readiness = fleet.ready()
    except HyperFleetError as error:
        return Finding("ready", "failed", str(error), "look at the log of the server")
    if readiness.is_ready:
        return Finding("ready", "ok", "the server can read and write")
    reasons = "; ".join(f"{each.check}: {each.message}" for each in readiness.reasons)
    return Finding("ready", "failed", reasons or readiness.status, "look at the log of the server")


# ── the fleet ────────────────────────────────────────────────────────────────────────────────────────────────────


def examine_fleet(fleet: Fleet) -> Iterator[Finding]:
    """Check the policy in force, and the adapters."""
    try:
        yield from _examine_policy(fleet)
        yield from _examine_adapters(fleet)
    except HyperFleetError as error:
        yield Finding("fleet", "warning", str(error), "the token may not be allowed to look at it")


def _origin_of(policy: Policy) -> str:
    """Say where a policy comes from that was in no file."""
    return f"applied by {policy.by}" if policy.by else "applied through the API"


def _examine_policy(fleet: Fleet) -> Iterator[Finding]:
    policy = fleet.policy()
    where = f"version {policy.version}, {policy.file or _origin_of(policy)}"
    for warning in policy.warnings:
        yield Finding("policy", "warning", str(warning), "`hyperfleet rules check` tells more")
    if policy.recomputation.remaining:
        left = count_of(policy.recomputation.remaining, "resource")
        yield Finding("policy", "warning", f"{where}: {left} still to be computed with it", "wait a little")
    elif not policy.warnings:
        yield Finding("policy", "ok", where)


def _examine_adapters(fleet: Fleet) -> Iterator[Finding]:
    adapters = fleet.adapters()
    for adapter in adapters:
        if adapter.last_seen is None and any(adapter.blocks.values()):
            found = f"{adapter.name} was never heard of, and {tell_kinds(adapter.blocks)} wait for it"
            yield Finding("adapters", "warning", found, "is it installed, and does it reach this server?")
        skew = adapter.clock_skew_seconds
        if skew is not None and abs(skew) > _ADAPTER_SKEW:
            found = f"the clock of {adapter.name} is {tell_skew(skew)} off"
            yield Finding("adapters", "warning", found, "let its machine take its time from NTP")
    yield Finding("adapters", "ok", f"{count_of(len(adapters), 'adapter')} known")
