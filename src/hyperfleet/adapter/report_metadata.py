"""The metadata that the framework adds to reports: which objects there are, and how long their work took. Pure.

Nothing here changes from one report to the next while nothing happens: a report that says the same is a heartbeat,
which costs the API next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from hyperfleet.adapter.runs import Run

_DONE: Final = ("Complete", "Failed", "Available", "Ready")  # conditions that end the work of an object


def describe_objects(run: Run) -> dict[str, Any]:
    """Return `resourceNames`, `generation`, and of the first Job or workload `job_name` and `executionTime`."""
    named = [each.name for each in run.objects.outcomes if each.operation not in ("delete", "absent", "skip")]
    objects = [run.objects.resources[name] for name in named if name in run.objects.resources]
    described: dict[str, Any] = {"generation": run.subject.generation} if run.subject.generation else {}
    if objects:
        described["resourceNames"] = [str(_metadata(each).get("name", "")) for each in objects]
    job = next((each for each in objects if each.get("kind") == "Job"), None)
    if job is not None:
        described["job_name"] = str(_metadata(job).get("name", ""))
    took = next((time for each in ([job] if job else objects) if (time := _execution_time(each))), "")
    return {**described, "executionTime": took} if took else described


def _execution_time(found: Mapping[str, Any]) -> str:
    """Return how long an object took until it was done, such as 115s; empty: it is not, or does not tell."""
    status = found.get("status")
    status = status if isinstance(status, Mapping) else {}
    conditions = status.get("conditions")
    ended = next(
        (
            each.get("lastTransitionTime")
            for each in (conditions if isinstance(conditions, list) else ())
            if isinstance(each, Mapping) and each.get("type") in _DONE and each.get("status") == "True"
        ),
        None,
    )
    started = _read_time(status.get("startTime") or _metadata(found).get("creationTimestamp"))
    end = _read_time(status.get("completionTime") or ended)
    return f"{max(0, round((end - started).total_seconds()))}s" if started and end else ""


def _read_time(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _metadata(found: Mapping[str, Any]) -> Mapping[str, Any]:
    return found.get("metadata") or {}
