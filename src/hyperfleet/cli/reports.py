"""Reports in files: their format, their resources, and their outcomes.

    - cluster: payments                     or nodePool: payments/workers, clusterId: …, nodePoolId: …
      adapter: dns
      conditions:
        - {type: Available, status: "True", reason: RecordsCreated}
        - {type: Applied, status: "True"}
        - {type: Health, status: "True"}

Only `report` calls this. Validation is left to the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.manifests import name_file, read_text
from hyperfleet.cli.resources import CLUSTER, NODE_POOL, ResourceTarget, cluster_names, find
from hyperfleet.documents import DocumentPlace, DocumentProblem, Places, read
from hyperfleet.documents.nodes import ListNode, MappingNode, Node, YamlDocument, to_plain
from hyperfleet.errors import DocumentError

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, Resource

_NAMES: Final = ("cluster", "nodePool")
_IDS: Final = ("clusterId", "nodePoolId")


class FileReport(Struct, frozen=True):
    """A report in a file."""

    body: Mapping[str, Any]
    place: DocumentPlace


class SentReport(Struct, frozen=True):
    """The outcome of a report."""

    resource: str
    adapter: str
    outcome: str
    reason: str = ""
    phase: str = ""
    report_id: str = ""
    notes: tuple[str, ...] = ()
    problem: str = ""

    @property
    def code(self) -> int:
        """Return the exit code of this report alone."""
        if self.problem:
            return exits.REFUSED
        return exits.FALSE if self.outcome == "discarded" else exits.OK

    def as_document(self) -> dict[str, Any]:
        """Return a document for programs, without empty fields."""
        fields = {
            "resource": self.resource,
            "adapter": self.adapter,
            "outcome": self.outcome,
            "reason": self.reason,
            "phase": self.phase,
            "reportId": self.report_id,
            "notes": list(self.notes),
            "problem": self.problem,
        }
        return {key: value for key, value in fields.items() if value}


def read_reports(file: str) -> list[FileReport]:
    """Read the reports of a file: one, a list, several documents, or what is below `reports`."""
    name = name_file(file)
    reading = read(read_text(file), name)
    problems = list(reading.problems)
    reports = []
    for document in reading.documents:
        for node in _items(document.root):
            place = Places(YamlDocument(document.file, document.source, node)).value("")
            if isinstance(node, MappingNode):
                body: Any = to_plain(node)
                reports.append(FileReport(body, place))
            else:
                problems.append(
                    DocumentProblem(place, "expected a report: a mapping with adapter and conditions", "WrongType")
                )
    if not reports and not problems:
        problems.append(DocumentProblem(DocumentPlace(name, 1, 1), "it contains no report", "Empty"))
    if problems:
        raise DocumentError(problems)
    return reports


def send(fleet: Fleet, reports: Sequence[FileReport], target: ResourceTarget | None, now: datetime) -> list[SentReport]:
    """Send reports as a batch; `target` is the resource of those that do not name one."""
    targets = _ReportTargets(fleet, target)
    bodies = [targets.complete(each, now) for each in reports]
    result = fleet.report_batch(body for _, body in bodies)
    sent = []
    for (name, body), entry in zip(bodies, result.results, strict=True):
        problem = _format_problem(entry.problem) if entry.problem else ""
        notes = tuple(note.message for note in entry.notes)
        outcome = "refused" if entry.problem else entry.outcome
        adapter = str(body.get("adapter", ""))
        sent.append(
            SentReport(name, adapter, outcome, entry.reason or "", entry.phase, entry.report_id or "", notes, problem)
        )
    return sent


def name_of(fleet: Fleet, resource: Resource) -> str:
    """Return the name of a resource as commands accept it."""
    if resource.metadata.cluster_id is None:
        return str(ResourceTarget(CLUSTER, resource.name))
    return str(ResourceTarget(NODE_POOL, resource.name, cluster_names(fleet, [resource])[resource.metadata.cluster_id]))


class _ReportTargets:
    """Finds the resources of reports, each once."""

    def __init__(self, fleet: Fleet, target: ResourceTarget | None) -> None:
        self._fleet = fleet
        self._target = target
        self._found: dict[ResourceTarget, tuple[str, Resource]] = {}

    def complete(self, report: FileReport, now: datetime) -> tuple[str, dict[str, Any]]:
        """Return the name of a report's resource, and the body to send."""
        name, resource = self._find(self._parse_target(report))
        key = _IDS[resource.metadata.cluster_id is not None]
        body = {each: value for each, value in report.body.items() if each not in (*_NAMES, *_IDS)}
        return name, {
            key: resource.id,
            "observedGeneration": resource.generation,
            "observedTime": now.isoformat(),
            **body,
        }

    def _parse_target(self, report: FileReport) -> ResourceTarget:
        given = [key for key in (*_NAMES, *_IDS) if report.body.get(key)]
        if len(given) > 1:
            raise Misuse(f"{report.place}: {' and '.join(given)}: name the resource once")
        if not given:
            if self._target is None:
                raise Misuse(f"{report.place}: name the resource with cluster: NAME or nodePool: CLUSTER/NAME")
            return self._target
        name = str(report.body[given[0]])
        if given[0].startswith("cluster"):
            return ResourceTarget(CLUSTER, name)
        cluster, _, pool = name.rpartition("/")
        return ResourceTarget(NODE_POOL, pool, cluster or None)

    def _find(self, target: ResourceTarget) -> tuple[str, Resource]:
        if target not in self._found:
            resource = find(self._fleet, target)
            self._found[target] = (name_of(self._fleet, resource), resource)
        return self._found[target]


def _items(root: Node) -> Sequence[Node]:
    if isinstance(root, MappingNode) and (entry := root.find("reports")) is not None:
        root = entry.value
    return root.items if isinstance(root, ListNode) else (root,)


def _format_problem(problem: Any) -> str:
    details = "; ".join(str(detail) for detail in problem.errors)
    return f"{problem.detail or problem.title}{f' ({details})' if details else ''}"
