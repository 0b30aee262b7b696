"""Explains the stored status of a resource, as JSON or as text for a terminal."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.aggregation import BodyProblem, StatusExplanation
from hyperfleet.aggregation.explaining.explanation_text import render
from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.explanation_wire import present_explanation
from hyperfleet.api.problems import Refused, from_query, from_refusal
from hyperfleet.api.requests import parameters_of, target_of
from hyperfleet.api.responses import JSON, TEXT, answer_in, prefers_text
from hyperfleet.api.wire import path_of
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.model.kind import Kind
from hyperfleet.services.explanations import Evidence, gather_evidence
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.results import not_found


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    return [
        Route(f"{path_of(kind, context.kinds)}/{{id}}:explain", _Explanations(context, kind).explain, methods=["GET"])
        for kind in context.kinds
    ]


class _Explanations(Struct, frozen=True):
    """The handler of one kind."""

    context: Context
    kind: Kind

    async def explain(self, request: Request) -> Response:
        """Explain the status of a resource, or one condition of it."""
        context, target = self.context, target_of(request, self.kind)
        given = Parameters(parameters_of(request))
        given.refuse_unknown(("condition",))
        only = given.one("condition")
        _check(given)
        evidence = await gather_evidence(context.store, context.policies, target, caller_of(request).scope)
        if evidence is None:
            raise Refused(from_refusal(not_found(target)))
        if only is not None and only not in evidence.condition_types:
            raise Refused(from_query([_unknown_condition(only, evidence)]))
        explanation = await asyncio.to_thread(evidence.explain, only, context.clock.now())
        if prefers_text(request):
            return answer_in(request, self._render(explanation, evidence).encode(), TEXT)
        # A term may have a value that JSON does not have, such as a duration; it is written as text.
        return answer_in(request, msgspec.json.encode(present_explanation(explanation, evidence), enc_hook=str), JSON)

    def _render(self, explanation: StatusExplanation, evidence: Evidence) -> str:
        """Write it as text; ages are relative to now, which must not be before the status was computed."""
        now = max(self.context.clock.now(), evidence.record.status.memory.written_time)
        preview = "" if evidence.is_current else "the policy has changed; after the recomputation:\n"
        return preview + render(explanation, now)


def _check(given: Parameters) -> None:
    if given.errors:
        raise Refused(from_query(given.errors))


def _unknown_condition(only: str, evidence: Evidence) -> BodyProblem:
    types = evidence.condition_types
    guess = suggest(only[:64], types)
    message = f"there is no condition {quote(only)} to explain; there are {', '.join(types)}{guess}"
    return BodyProblem("condition", "UnknownCondition", message)
