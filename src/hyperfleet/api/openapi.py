"""The description of the API: `/openapi.json`, the same as a page at `/docs`, events, and the meaning of problem codes.

Outside the base path: the `type` of a problem document is a path, `/problems/{code}`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from hyperfleet import __version__
from hyperfleet.api.context import Context
from hyperfleet.api.description.document import describe
from hyperfleet.api.description.page import render
from hyperfleet.api.description.table import list_operations
from hyperfleet.api.problems import CATALOGUE, Problem, Refused
from hyperfleet.api.responses import answer_json, answer_made
from hyperfleet.api.shapes import Catalogue, CatalogueEntry
from hyperfleet.events.describing import describe_events
from hyperfleet.messaging import TopicNames

# The page has no scripts and loads nothing; if a script is ever injected, browsers will not run it.
_PAGE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
}


def routes(context: Context) -> list[Route]:
    """Return the routes of this module; their paths are absolute."""
    operations = list_operations(context)
    document = describe(operations, has_authentication=context.authenticator is not None)
    encoded = msgspec.json.encode(document)

    async def read_document(request: Request) -> Response:
        """Answer the OpenAPI document."""
        return answer_json(request, encoded)

    async def read_events(request: Request) -> Response:
        """Answer the AsyncAPI document; the broker is known only when the server has started."""
        choice = context.events.choice
        return answer_json(request, _encode_events(choice.topics, choice.provider == "rabbitmq"))

    async def read_page(request: Request) -> Response:
        """Answer the page, with examples that use the address of this server."""
        return HTMLResponse(render(operations, document, str(request.base_url)), headers=_PAGE_HEADERS)

    return [
        Route("/openapi.json", read_document, methods=["GET"]),
        Route("/asyncapi.json", read_events, methods=["GET"]),
        Route("/docs", read_page, methods=["GET"]),
        Route("/problems", _list_problems, methods=["GET"]),
        Route("/problems/{code}", _read_problem, methods=["GET"]),
    ]


@lru_cache(maxsize=1)
def _encode_events(topics: TopicNames, has_exchanges: bool) -> bytes:
    return msgspec.json.encode(describe_events(__version__, topics, has_exchanges=has_exchanges))


async def _list_problems(request: Request) -> Response:
    """Answer the whole catalogue."""
    return answer_made(request, Catalogue(tuple([_entry(code) for code in CATALOGUE])))


async def _read_problem(request: Request) -> Response:
    """Answer what one code means."""
    code = request.path_params["code"]
    if code not in CATALOGUE:
        raise Refused(Problem("NotFound", "there is no problem with that code; /problems lists them all"))
    return answer_made(request, _entry(code))


def _entry(code: str) -> CatalogueEntry:
    entry = CATALOGUE[code]
    return CatalogueEntry(code, f"/problems/{code}", entry.status, entry.title, entry.remedy)
