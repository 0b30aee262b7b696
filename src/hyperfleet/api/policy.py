"""The policy: read the one in force, put another one in force, roll back to an earlier one."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.aggregation import BodyProblem, PolicySet
from hyperfleet.api.callers import caller_of, require_everything
from hyperfleet.api.context import Context, RequestLimits
from hyperfleet.api.problems import (
    MAX_MESSAGE,
    MAX_POINTER,
    Problem,
    Refused,
    from_body,
    from_query,
    from_refusal,
    limit_faults,
    shorten,
)
from hyperfleet.api.requests import parameters_of, read_body, read_json, replaced_versions
from hyperfleet.api.resource_bodies import read_rollback
from hyperfleet.api.responses import answer_new_version, answer_versioned, answer_written
from hyperfleet.api.shapes import PolicyCheckBody, PolicyFault, PolicyInForce, Recomputing
from hyperfleet.document_problem import DocumentProblem
from hyperfleet.errors import DocumentError
from hyperfleet.ports import NewPolicy, PolicyVersion
from hyperfleet.services.audit import note_dry_run, note_policy
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.policies import digest_of
from hyperfleet.services.policy_warnings import PolicyWarnings
from hyperfleet.services.results import Refusal

MEDIA_TYPES: Final = ("application/json", "application/yaml", "application/x-yaml", "text/yaml")
BODY: Final = "the body"  # in place of a file name in problems

_DRY_RUN: Final = "dryRun"


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, relative to the base path."""
    handlers = _Policy(context, PolicyWarnings(context.kinds, is_logged=False))
    return [
        Route("/policy", handlers.read, methods=["GET"]),
        Route("/policy", handlers.put, methods=["PUT"]),
        Route("/policy:rollback", handlers.roll_back, methods=["POST"]),
        Route("/policy:reload", handlers.reload, methods=["POST"]),
    ]


class _Policy(Struct, frozen=True):
    """The handlers."""

    context: Context
    trial_warnings: PolicyWarnings  # of policies that are only checked

    async def read(self, request: Request) -> Response:
        """Answer the policy in force and how many resources are still to be recomputed."""
        version = await self._active()
        return answer_versioned(request, await self._present(request, version), version.version)

    async def put(self, request: Request) -> Response:
        """Put the policy in the body in force, or only check it."""
        require_everything(request)
        is_dry_run = _read_dry_run(request)
        replaced = replaced_versions(request)
        text = await read_policy_text(request, self.context.limits)
        policies = await self._compile(text, BODY)
        self.context.policies.check(policies)
        if is_dry_run:
            return await self._check(request, text, policies, replaced)
        new = NewPolicy(digest_of(policies), text, "", "api", caller_of(request).name)
        return await self._put(request, new, policies, replaced)

    async def roll_back(self, request: Request) -> Response:
        """Put the text of an earlier version in force again, as a new version."""
        require_everything(request)
        replaced = replaced_versions(request)
        number, errors = read_rollback(await read_json(request, self.context.limits))
        if errors:
            raise Refused(from_body(errors))
        version = await find_version(self.context, number)
        policies = await self._compile(version.text, version.name)
        self.context.policies.check(policies)
        author = caller_of(request).name
        new = NewPolicy(digest_of(policies), version.text, "", "api", author, version.version)
        return await self._put(request, new, policies, replaced)

    async def reload(self, request: Request) -> Response:
        """Put the policy file in force, changed or not; a file with errors changes nothing."""
        require_everything(request)
        try:
            version = await self.context.policies.reload(caller_of(request).name)
        except DocumentError as error:
            raise Refused(refuse_policy(error)) from error
        return await self._answer(request, version)

    # steps

    async def _compile(self, text: str, name: str) -> PolicySet:
        try:
            return await self.context.policies.compile(text, name)
        except DocumentError as error:
            raise Refused(refuse_policy(error)) from error

    async def _put(
        self, request: Request, new: NewPolicy, policies: PolicySet, replaced: frozenset[int] | None
    ) -> Response:
        result = await self.context.policies.put(new, policies, replaced)
        if isinstance(result, Refusal):
            raise Refused(from_refusal(result))
        return await self._answer(request, result)

    async def _check(
        self, request: Request, text: str, policies: PolicySet, replaced: frozenset[int] | None
    ) -> Response:
        """Answer the lint warnings of a policy that compiles."""
        active = await self._active()
        if replaced is not None and active.version not in replaced:
            raise Refused(Problem("PreconditionFailed", f"version {active.version} of the policy is in force"))
        digest = digest_of(policies)
        found = await self.trial_warnings.find(PolicyVersion(0, digest, text, BODY, active.time))
        warnings = UNSET if found is None else tuple([locate(warning) for warning in found])
        note_dry_run()
        check = PolicyCheckBody(True, digest, digest != active.digest, active.version, warnings)
        return answer_written(request, 200, msgspec.json.encode(check))

    async def _answer(self, request: Request, version: PolicyVersion) -> Response:
        note_policy(version.version)
        return answer_new_version(request, await self._present(request, version), version.version)

    async def _active(self) -> PolicyVersion:
        version = await self.context.store.active_policy()
        if version is None:
            raise Refused(Problem("NotFound", "no policy is in force yet"))
        return version

    async def _present(self, request: Request, version: PolicyVersion) -> PolicyInForce:
        _, remaining = await self.context.store.outdated(version.version, 1)
        warnings = await self.context.policies.find_warnings(version)
        return PolicyInForce(
            version=version.version,
            digest=version.digest,
            source=version.source,
            file=version.file,
            activated_at=version.time,
            text=version.text,
            recomputation=Recomputing(remaining),
            warnings=UNSET if warnings is None else tuple([locate(warning) for warning in warnings]),
            by=author_of(version, request),
            restores=version.restores or UNSET,
        )


async def read_policy_text(request: Request, limits: RequestLimits) -> str:
    """Read a body that is a policy, in YAML or JSON."""
    body = await read_body(request, limits, MEDIA_TYPES)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(from_body([BodyProblem("", "BadEncoding", "the policy is not UTF-8")])) from error


async def find_version(context: Context, number: int) -> PolicyVersion:
    """Return a version of the policy; refuse the request if there is none."""
    version = await context.store.read_policy(number)
    if version is None:
        raise Refused(Problem("NotFound", f"there is no version {number} of the policy"))
    return version


def author_of(version: PolicyVersion, request: Request) -> str | UnsetType:
    """Return who put a version in force; hidden from callers who see only some tenants."""
    is_visible = caller_of(request).scope.tenants is None
    return version.author if version.author and is_visible else UNSET


def _read_dry_run(request: Request) -> bool:
    given = Parameters(parameters_of(request))
    given.refuse_unknown((_DRY_RUN,))
    text = given.one(_DRY_RUN)
    if text not in (None, "true", "false"):
        given.refuse(_DRY_RUN, "BadFormat", f"{_DRY_RUN} is true or false")
    if given.errors:
        raise Refused(from_query(given.errors))
    return text == "true"


def refuse_policy(error: DocumentError) -> Problem:
    """Describe every problem of a policy with line and column; warnings are included only beside errors."""
    found = limit_faults(locate(problem) for problem in error.problems)
    file = error.problems[0].place.file if error.problems else "the policy"
    number = len(error.problems)
    count = "1 problem" if number == 1 else f"{number} problems"
    if len(found) < number:
        count += f", of which the first {len(found)} are listed"
    return Problem("InvalidPolicy", f"{file} has {count}; the policy in force does not change", found)


def locate(problem: DocumentProblem) -> PolicyFault:
    """Describe one problem of a policy with line and column."""
    place = problem.place
    message, path = shorten(problem.message, MAX_MESSAGE), shorten(place.path, MAX_POINTER)
    return PolicyFault(problem.code, message, path, line=place.line, column=place.column)
