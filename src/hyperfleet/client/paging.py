"""The pages of a list, one after the other, as one feed. A flow of both faces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hyperfleet.client.answers.document import D
from hyperfleet.client.answers.resource import PageAnswer
from hyperfleet.client.effects import ApiRequest, Feed, FeedItem
from hyperfleet.client.exchange import RetryPolicy, decode_part, fetch
from hyperfleet.client.query import query_of

PAGE: Final = 500  # items that are asked for at once, unless told


def turn_pages(
    shape: type[D],
    path: str,
    keywords: Mapping[str, object],
    limit: int | None,
    retry: RetryPolicy,
    *,
    page_size: int = PAGE,
) -> Feed[D]:
    """Yield what is on the pages of a list; at most `limit`."""
    continue_, left = None, limit
    while left is None or left > 0:
        size = page_size if left is None else min(page_size, left)
        query = query_of({**keywords, "limit": size, "continue": continue_})
        page = yield from fetch(PageAnswer, ApiRequest("GET", path, query), retry)
        for raw in page.items:
            yield FeedItem(decode_part(shape, raw))
        continue_, left = page.continue_, None if left is None else left - len(page.items)
        if continue_ is None:
            return
