"""Simulates a policy on the live fleet, and on its past, without putting it in force.

The answer is JSON, or a stream of server-sent events with progress. Both end when the caller disconnects.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.answer_decoding import answer_decoder
from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.policy import BODY, locate, read_policy_text, refuse_policy
from hyperfleet.api.problems import Refused, from_error, from_query
from hyperfleet.api.requests import parameters_of
from hyperfleet.api.responses import answer_written, prefers
from hyperfleet.api.simulation_wire import SimulationAnswer, SimulationProgressBody, present_findings, present_replay
from hyperfleet.api.streams import EVENT_STREAM, EventStream, frame, run_while_connected
from hyperfleet.documents.durations import parse_duration
from hyperfleet.errors import DocumentError, HyperFleetError, Overloaded
from hyperfleet.ports import PolicyVersion, Query
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.policies import digest_of
from hyperfleet.services.policy_warnings import PolicyWarnings
from hyperfleet.services.replay import Replay, ReplayRange
from hyperfleet.services.search import read_query
from hyperfleet.services.simulation import PolicySimulation, SimulatedProgress, candidate_rules
from hyperfleet.services.workspace import Rules

_MAX_CONCURRENT: Final = 2  # simulations per process: each takes processor time from requests
_PROGRESS_INTERVAL: Final = 0.25  # seconds; smooth enough for a progress bar
_FOR_LISTS_ONLY: Final = ("orderBy", "continue", "page", "size", "fields")
_REPLAY: Final = "replay"
_NEVER: Final = datetime.min.replace(tzinfo=UTC)  # the activation time of a candidate
_DAYS: Final = re.compile(r"([0-9]{1,4})d")


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    simulations = _Simulations(
        context, ConcurrencyLimit(_MAX_CONCURRENT), PolicyWarnings(context.kinds, is_logged=False)
    )
    return [Route("/policy:simulate", simulations.simulate, methods=["POST"])]


class ConcurrencyLimit:
    """A limit on concurrent simulations, without a share per caller."""

    def __init__(self, most: int) -> None:
        """Allow `most` at once."""
        self._most = most
        self._running = 0

    @contextmanager
    def admit(self, caller: str = "") -> Iterator[None]:
        """Hold a slot within a block."""
        if self._running >= self._most:
            raise Overloaded(f"{self._most} simulations are already running")
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1


class _SimulationRequest(Struct, frozen=True):
    """A policy, the resources to try it on, and the start of the replay."""

    text: str
    queries: tuple[Query, ...]  # one for each kind
    now: datetime
    since: datetime | None


class _Simulations(Struct, frozen=True):
    """The handler."""

    context: Context
    limit: ConcurrencyLimit
    warnings: PolicyWarnings

    async def simulate(self, request: Request) -> Response:
        """Answer what a policy would change, as JSON or as events with progress."""
        asked = await self._read(request)
        with self.limit.admit():  # includes compiling the policy: a long one takes seconds
            trial = await self._prepare(asked)
            if not prefers(request, EVENT_STREAM):
                answer = await run_while_connected(request.receive, trial.answer())
                return answer_written(request, 200, msgspec.json.encode(answer))
        return EventStream(self.limit, trial.stream())  # takes a slot itself

    async def _read(self, request: Request) -> _SimulationRequest:
        text = await read_policy_text(request, self.context.limits)
        now = (await self.context.store.due(1)).now  # the clock of writes
        queries, since = _read_parameters(request, self.context, now)
        return _SimulationRequest(text, queries, now, since)

    async def _prepare(self, asked: _SimulationRequest) -> _Trial:
        """Compile the policy, in a thread because it may be long; refuse one with errors."""
        context = self.context
        try:
            policies = await context.policies.compile(asked.text, BODY)
        except DocumentError as error:
            raise Refused(refuse_policy(error)) from error
        rules = candidate_rules(policies, context.kinds)
        simulation = PolicySimulation(context.store, rules, asked.queries, asked.now)
        replay = await self._prepare_replay(asked, asked.since, rules) if asked.since else None
        version = PolicyVersion(0, digest_of(policies), asked.text, BODY, _NEVER)
        return _Trial(context, version, simulation, replay, self.warnings)

    async def _prepare_replay(self, asked: _SimulationRequest, since: datetime, rules: Rules) -> Replay:
        await self.context.policies.refresh()  # another replica may have put another policy in force
        present, span, first = self.context.policies.rules, ReplayRange(since, asked.now), asked.queries[0]
        return Replay(self.context.store, first.scope, present, rules, span, answer_decoder(present), first.limit)


class _Trial(Struct, frozen=True):
    """A prepared simulation."""

    context: Context
    version: PolicyVersion
    simulation: PolicySimulation
    replay: Replay | None
    warnings: PolicyWarnings

    async def answer(self) -> SimulationAnswer:
        """Run it and return the result."""
        async with aclosing(self.simulation.run(self.replay)) as progress:
            async for _ in progress:
                pass
        return await self._conclude()

    async def stream(self) -> AsyncIterator[bytes]:
        """Run it and write its progress, then the result or the problem."""
        try:
            async with aclosing(self.simulation.run(self.replay)) as progress:
                async for step in _throttle(progress):
                    yield frame("progress", msgspec.json.encode(step))
                    if self.context.tail.is_closing:
                        raise Overloaded("the server is stopping")  # a stop must not wait for a long stream
            yield frame("result", msgspec.json.encode(await self._conclude()))
        except HyperFleetError as error:
            yield frame("failed", msgspec.json.encode(from_error(error).document()))

    async def _conclude(self) -> SimulationAnswer:
        kinds = self.context.kinds
        answer = present_findings(self.simulation.findings, self.version.digest, kinds)
        warnings = await self.warnings.find(self.version)
        return replace(
            answer,
            warnings=UNSET if warnings is None else tuple([locate(warning) for warning in warnings]),
            replay=UNSET if self.replay is None else present_replay(self.replay, kinds),
        )


async def _throttle(progress: AsyncIterator[SimulatedProgress]) -> AsyncIterator[SimulationProgressBody]:
    """Pass progress on at most four times a second."""
    last_sent = float("-inf")
    async for each in progress:
        if perf_counter() >= last_sent + _PROGRESS_INTERVAL:
            last_sent = perf_counter()
            yield SimulationProgressBody(each.examined, each.total, each.changed)


def _read_parameters(request: Request, context: Context, now: datetime) -> tuple[tuple[Query, ...], datetime | None]:
    """Read the filters of lists for each kind, and the start of the replay."""
    given, scope = parameters_of(request), caller_of(request).scope
    searches = [
        read_query(given, kind.name, scope, None, now, read_elsewhere=(_REPLAY,), without=_FOR_LISTS_ONLY)
        for kind in context.kinds
    ]
    own = Parameters({name: values for name, values in given.items() if name == _REPLAY})
    since = read_replay(own, now)
    errors = (*searches[0].errors, *own.errors)
    if errors:
        raise Refused(from_query(errors))
    return tuple([search.query for search in searches if search.query is not None]), since


def read_replay(given: Parameters, now: datetime) -> datetime | None:
    """Return the start of the replay: now minus a duration, which may have days."""
    given.refuse_unknown((_REPLAY,))
    text = given.one(_REPLAY)
    if text is None:
        return None
    days = _DAYS.fullmatch(text)
    try:
        return now - (timedelta(days=int(days[1])) if days else parse_duration(text))
    except (ValueError, OverflowError) as error:
        given.refuse(_REPLAY, "BadFormat", f"{error}; {_REPLAY} is a duration back from now such as 7d or 12h")
        return None
