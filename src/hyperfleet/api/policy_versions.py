"""The versions of the policy: list them, read one."""

from __future__ import annotations

import re
from typing import Final

from msgspec import UNSET, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.context import Context
from hyperfleet.api.policy import author_of, find_version
from hyperfleet.api.problems import Problem, Refused, from_query
from hyperfleet.api.requests import parameters_of
from hyperfleet.api.responses import TEXT, answer_in, answer_made, prefers_text
from hyperfleet.api.shapes import PolicyVersionAnswer, PolicyVersionEntry, PolicyVersionList
from hyperfleet.ports import PolicyVersion
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.search import DEFAULT_LIMIT, MAX_LIMIT

_CONTINUE: Final = "continue"
_LIMIT: Final = "limit"
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,15}")  # fits into 64 bits


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, relative to the base path."""
    handlers = _Versions(context)
    return [
        Route("/policy/versions", handlers.list, methods=["GET"]),
        Route("/policy/versions/{version}", handlers.read, methods=["GET"]),
    ]


class _Versions(Struct, frozen=True):
    """The handlers."""

    context: Context

    async def list(self, request: Request) -> Response:
        """Answer one page of versions, the newest first."""
        before, limit = _read_page(request)
        active = await self._active_number()
        found = await self.context.store.policy_versions(
            before, limit + 1
        )  # one more, to know whether there is another page
        page = found[:limit]
        items = tuple([_present_entry(each, active, request) for each in page])
        more = str(page[-1].version) if len(found) > limit else UNSET
        return answer_made(request, PolicyVersionList(items, more))

    async def read(self, request: Request) -> Response:
        """Answer one version: as JSON, or only its text."""
        text = str(request.path_params["version"])
        if not _NUMBER.fullmatch(text):
            raise Refused(Problem("NotFound", "a version of the policy is a number, such as 3"))
        version = await find_version(self.context, int(text))
        if prefers_text(request):
            return answer_in(request, version.text.encode(), f"{TEXT}; charset=utf-8")
        shown = _present_entry(version, await self._active_number(), request)
        return answer_made(request, _with_text(shown, version.text))

    async def _active_number(self) -> int:
        active = await self.context.store.active_policy()
        return 0 if active is None else active.version


def _read_page(request: Request) -> tuple[int | None, int]:
    given = Parameters(parameters_of(request))
    given.refuse_unknown((_LIMIT, _CONTINUE))
    limit = given.number(_LIMIT, MAX_LIMIT) or DEFAULT_LIMIT
    text = given.one(_CONTINUE)
    if text is not None and not _NUMBER.fullmatch(text):
        message = "this is not a continue token; send the `continue` of the last page unchanged"
        given.refuse(_CONTINUE, "BadFormat", message)
    if given.errors:
        raise Refused(from_query(given.errors))
    return None if text is None else int(text), limit


def _present_entry(version: PolicyVersion, active: int, request: Request) -> PolicyVersionEntry:
    return PolicyVersionEntry(
        version.version,
        version.digest,
        version.source,
        version.file,
        version.time,
        version.version == active,
        author_of(version, request),
        version.restores or UNSET,
    )


def _with_text(entry: PolicyVersionEntry, text: str) -> PolicyVersionAnswer:
    return PolicyVersionAnswer(
        entry.version,
        entry.digest,
        entry.source,
        entry.file,
        entry.activated_at,
        entry.in_force,
        text,
        entry.by,
        entry.restores,
    )
