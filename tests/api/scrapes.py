"""Scrapes as tests see them: read by the parsers of prometheus_client, so that what is not well formed fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from hyperfleet.api.app import create_app
from hyperfleet.api.context import Context

OPEN_METRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


class Scrape:
    """The samples of one answer."""

    def __init__(self, response: httpx.Response) -> None:
        """Read an answer, which must be one."""
        assert response.status_code == 200, response.text
        is_open = response.headers["content-type"].startswith("application/openmetrics-text")
        self.families = {each.name: each for each in (read_openmetrics if is_open else read_text)(response.text)}
        self.samples = [sample for family in self.families.values() for sample in family.samples]
        keys = [(sample.name, *sorted(sample.labels.items())) for sample in self.samples]
        assert len(keys) == len(set(keys)), "no sample is told twice"

    @property
    def names(self) -> set[str]:
        """Return the names of all samples."""
        return {sample.name for sample in self.samples}

    def find(self, name: str, **labels: str) -> dict[tuple[str, ...], float]:
        """Return the samples of a name that have these labels, by the values of the others, in alphabetical order."""
        return {
            tuple(value for key, value in sorted(sample.labels.items()) if key not in labels): sample.value
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        }

    def get(self, name: str, **labels: str) -> float:
        """Return the only sample of a name with these labels; 0 if there is none."""
        (value,) = self.find(name, **labels).values() or (0.0,)
        return value


def fetch(context: Context, path: str = "/metrics", headers: Mapping[str, str] | None = None) -> httpx.Response:
    """GET from an application of its own, in a loop of its own; for contexts on the memory store."""

    async def ask() -> httpx.Response:
        return await fetch_within(context, path, headers)

    return asyncio.run(ask())


async def fetch_within(
    context: Context, path: str = "/metrics", headers: Mapping[str, str] | None = None, **more: Any
) -> httpx.Response:
    """GET from an application of its own, in the loop that runs."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(context)), base_url="http://fleet") as http:
        return await http.get(path, headers=dict(headers or {}), **more)
