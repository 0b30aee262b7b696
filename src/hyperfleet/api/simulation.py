"""What if? Tries a policy on the live fleet, and on its past, without putting it in force.

The answer is JSON, or a stream of server-sent events with the progress before it. Both end when the caller goes away.
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
from hyperfleet.api.streams import EVENT_STREAM, EventStream, attend, frame
from hyperfleet.documents.durations import parse_duration
from hyperfleet.errors import DocumentError, HyperFleetError, Overloaded
from hyperfleet.ports import PolicyVersion, Query
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.policies import digest_of
from hyperfleet.services.policy_warnings import PolicyWarnings
from hyperfleet.services.replay import Replay, Span
from hyperfleet.services.search import read_query
from hyperfleet.services.simulation import Progress, Simulation, candidate_rules
from hyperfleet.services.workspace import Rules

_MOST_AT_ONCE: Final = 2  # simulations of one process: each takes a share of the processor from requests
_BEAT: Final = 0.25  # seconds between two words of progress
_FOR_LISTS_ONLY: Final = ("orderBy", "continue", "page", "size", "fields")
_REPLAY: Final = "replay"
_NEVER: Final = datetime.min.replace(tzinfo=UTC)  # when a policy that is only tried was put in force
_DAYS: Final = re.compile(r"([0-9]{1,4})d")


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    simulations = _Simulations(context, ConcurrencyLimit(_MOST_AT_ONCE), PolicyWarnings(context.kinds, is_logged=False))
    return [Route("/policy:simulate", simulations.simulate, methods=["POST"])]


class ConcurrencyLimit:
    """Seats for a few who ask for much."""

    def __init__(self, most: int) -> None:
        """Have room for so many at once."""
        self._most = most
        self._taken = 0

    @contextmanager
    def seat(self, caller: str = "") -> Iterator[None]:  # there are so few that nobody has a share
        """Take a seat for the length of a block."""
        if self._taken >= self._most:
            raise Overloaded(f"{self._most} simulations are under way already")
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1


class _Question(Struct, frozen=True):
    """What was asked: a policy, on what, and since when the past is to be lived again."""

    text: str
    queries: tuple[Query, ...]  # one for each kind
    now: datetime
    since: datetime | None


class _Simulations(Struct, frozen=True):
    """The handler."""

    context: Context
    room: ConcurrencyLimit
    warnings: PolicyWarnings

    async def simulate(self, request: Request) -> Response:
        """Answer what a policy would change, at once or with progress."""
        question = await self._read(request)
        with self.room.seat():  # also while the policy is loaded: a long one takes seconds
            trial = await self._prepare(question)
            if not prefers(request, EVENT_STREAM):
                answer = await attend(request.receive, trial.answer())
                return answer_written(request, 200, msgspec.json.encode(answer))
        return EventStream(self.room, trial.tell())  # which takes a seat itself

    async def _read(self, request: Request) -> _Question:
        text = await read_policy_text(request, self.context.limits)
        now = (await self.context.store.due(1)).now  # the clock that writes go by
        queries, since = _read_parameters(request, self.context, now)
        return _Question(text, queries, now, since)

    async def _prepare(self, question: _Question) -> _Trial:
        """Load the policy, in a thread because it may be long; one with problems is refused with all of them."""
        context = self.context
        try:
            policies = await context.policies.compile(question.text, BODY)
        except DocumentError as error:
            raise Refused(refuse_policy(error)) from error
        rules = candidate_rules(policies, context.kinds)
        simulation = Simulation(context.store, rules, question.queries, question.now)
        replay = await self._prepare_replay(question, question.since, rules) if question.since else None
        version = PolicyVersion(0, digest_of(policies), question.text, BODY, _NEVER)
        return _Trial(context, version, simulation, replay, self.warnings)

    async def _prepare_replay(self, question: _Question, since: datetime, rules: Rules) -> Replay:
        await self.context.policies.refresh()  # another replica may have put another one in force
        present, span, asked = self.context.policies.rules, Span(since, question.now), question.queries[0]
        return Replay(self.context.store, asked.scope, present, rules, span, answer_decoder(present), asked.limit)


class _Trial(Struct, frozen=True):
    """A simulation that is ready to run."""

    context: Context
    version: PolicyVersion
    simulation: Simulation
    replay: Replay | None
    warnings: PolicyWarnings

    async def answer(self) -> SimulationAnswer:
        """Run it to its end."""
        async with aclosing(self.simulation.run(self.replay)) as progress:
            async for _ in progress:
                pass
        return await self._conclude()

    async def tell(self) -> AsyncIterator[bytes]:
        """Run it, and write how far it is now and then, then the result or what went wrong."""
        try:
            async with aclosing(self.simulation.run(self.replay)) as progress:
                async for words in _now_and_then(progress):
                    yield frame("progress", msgspec.json.encode(words))
                    if self.context.tail.is_closing:
                        raise Overloaded("the server is stopping")  # a stream may take long, and a stop may not
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


async def _now_and_then(progress: AsyncIterator[Progress]) -> AsyncIterator[SimulationProgressBody]:
    """Let a word of progress pass several times a second."""
    told = float("-inf")
    async for each in progress:
        if perf_counter() >= told + _BEAT:
            told = perf_counter()
            yield SimulationProgressBody(each.examined, each.total, each.changed)


def _read_parameters(request: Request, context: Context, now: datetime) -> tuple[tuple[Query, ...], datetime | None]:
    """Read the filters, which are those of lists, for each kind; and how far to go back."""
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
    """Return since when the past is to be lived again: a duration back from now, in which days count, too."""
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
