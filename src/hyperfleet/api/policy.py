"""The policy in force: read it, and put what now stands in the policy file in force for every replica."""

from __future__ import annotations

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.callers import require_everything
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Problem, Refused
from hyperfleet.api.responses import answer_made, answer_written
from hyperfleet.api.shapes import PolicyFault, PolicyInForce, Recomputing
from hyperfleet.document_problem import DocumentProblem
from hyperfleet.errors import DocumentError
from hyperfleet.ports import PolicyVersion


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, relative to the base path."""

    async def read(request: Request) -> Response:
        """Answer the policy in force, and how many resources are still to be computed with it."""
        version = await context.store.active_policy()
        if version is None:
            raise Refused(Problem("NotFound", "no policy is in force yet"))
        return answer_made(request, await _present(version, context))

    async def reload(request: Request) -> Response:
        """Read the policy file again and put it in force; with problems in it, nothing changes."""
        require_everything(request)
        try:
            version = await context.policies.activate()
        except DocumentError as error:
            raise Refused(refuse_policy(error)) from error
        return answer_written(request, 200, msgspec.json.encode(await _present(version, context)))

    return [Route("/policy", read, methods=["GET"]), Route("/policy:reload", reload, methods=["POST"])]


async def _present(version: PolicyVersion, context: Context) -> PolicyInForce:
    _, remaining = await context.store.outdated(version.version, 1)
    warnings = await context.policies.find_warnings(version)
    return PolicyInForce(
        version=version.version,
        digest=version.digest,
        file=version.file,
        activated_at=version.time,
        text=version.text,
        recomputation=Recomputing(remaining),
        warnings=UNSET if warnings is None else tuple(locate(warning) for warning in warnings),
    )


def refuse_policy(error: DocumentError) -> Problem:
    """Tell every problem of the file with its place; warnings are told beside the errors, not without them."""
    found = tuple(locate(problem) for problem in error.problems)
    file = error.problems[0].place.file if error.problems else "the policy"
    count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
    return Problem("InvalidPolicy", f"{file} has {count}; the policy in force stays as it is", found)


def locate(problem: DocumentProblem) -> PolicyFault:
    """Tell one problem of a policy with its place."""
    place = problem.place
    return PolicyFault(problem.code, problem.message, place.path, line=place.line, column=place.column)
