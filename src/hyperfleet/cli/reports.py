"""Reports in files: what they look like, which resources they are about, and what became of them.

    - cluster: payments                     or nodePool: payments/workers, clusterId: …, nodePoolId: …
      adapter: dns
      conditions:
        - {type: Available, status: "True", reason: RecordsCreated}
        - {type: Applied, status: "True"}
        - {type: Health, status: "True"}

Only `report` calls this. What the server will check is left to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.manifests import name_file, read_text
from hyperfleet.cli.resources import CLUSTER, NODE_POOL, Target, cluster_names, find
from hyperfleet.documents import DocumentPlace, DocumentProblem, Places, read
from hyperfleet.documents.nodes import ListNode, MappingNode, Node, YamlDocument, to_plain
from hyperfleet.errors import DocumentError

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, Resource

_NAMES: Final = ("cluster", "nodePool")
_IDS: Final = ("clusterId", "nodePoolId")


class Written(Struct, frozen=True):
    """A report as it stands in a file."""

    body: Mapping[str, Any]
    place: DocumentPlace


class Sent(Struct, frozen=True):
    """What became of a report."""

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
        """Return the exit code that this alone would have."""
        if self.problem:
            return exits.REFUSED
        return exits.FALSE if self.outcome == "discarded" else exits.OK

    def as_document(self) -> dict[str, Any]:
        """Write it for programs; what there is nothing to say of is left out."""
        told = {
            "resource": self.resource,
            "adapter": self.adapter,
            "outcome": self.outcome,
            "reason": self.reason,
            "phase": self.phase,
            "reportId": self.report_id,
            "notes": list(self.notes),
            "problem": self.problem,
        }
        return {key: value for key, value in told.items() if value}


def read_reports(file: str) -> list[Written]:
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
                reports.append(Written(body, place))
            else:
                problems.append(
                    DocumentProblem(place, "expected a report: a mapping with adapter and conditions", "WrongType")
                )
    if not reports and not problems:
        problems.append(DocumentProblem(DocumentPlace(name, 1, 1), "there is no report in it", "Empty"))
    if problems:
        raise DocumentError(problems)
    return reports


def send(fleet: Fleet, reports: Sequence[Written], target: Target | None, now: datetime) -> list[Sent]:
    """Send reports as a batch; `target` is what those are about that do not say it themselves."""
    roll = _Roll(fleet, target)
    bodies = [roll.complete(each, now) for each in reports]
    result = fleet.report_batch(body for _, body in bodies)
    told = []
    for (name, body), entry in zip(bodies, result.results, strict=True):
        problem = _tell(entry.problem) if entry.problem else ""
        notes = tuple(note.message for note in entry.notes)
        outcome = "refused" if entry.problem else entry.outcome
        adapter = str(body.get("adapter", ""))
        told.append(
            Sent(name, adapter, outcome, entry.reason or "", entry.phase, entry.report_id or "", notes, problem)
        )
    return told


def name_of(fleet: Fleet, resource: Resource) -> str:
    """Write a resource as commands take it."""
    if resource.metadata.cluster_id is None:
        return str(Target(CLUSTER, resource.name))
    return str(Target(NODE_POOL, resource.name, cluster_names(fleet, [resource])[resource.metadata.cluster_id]))


class _Roll:
    """Finds the resources that reports are about, each once."""

    def __init__(self, fleet: Fleet, target: Target | None) -> None:
        self._fleet = fleet
        self._target = target
        self._found: dict[Target, tuple[str, Resource]] = {}

    def complete(self, report: Written, now: datetime) -> tuple[str, dict[str, Any]]:
        """Return the name of what a report is about, and the report as it is sent."""
        name, resource = self._find(self._parse_target(report))
        key = _IDS[resource.metadata.cluster_id is not None]
        body = {each: value for each, value in report.body.items() if each not in (*_NAMES, *_IDS)}
        return name, {
            key: resource.id,
            "observedGeneration": resource.generation,
            "observedTime": now.isoformat(),
            **body,
        }

    def _parse_target(self, report: Written) -> Target:
        given = [key for key in (*_NAMES, *_IDS) if report.body.get(key)]
        if len(given) > 1:
            raise Misuse(f"{report.place}: {' and '.join(given)}: say once what it is about")
        if not given:
            if self._target is None:
                raise Misuse(f"{report.place}: say what it is about: cluster: NAME or nodePool: CLUSTER/NAME")
            return self._target
        name = str(report.body[given[0]])
        if given[0].startswith("cluster"):
            return Target(CLUSTER, name)
        cluster, _, pool = name.rpartition("/")
        return Target(NODE_POOL, pool, cluster or None)

    def _find(self, target: Target) -> tuple[str, Resource]:
        if target not in self._found:
            resource = find(self._fleet, target)
            self._found[target] = (name_of(self._fleet, resource), resource)
        return self._found[target]


def _items(root: Node) -> Sequence[Node]:
    if isinstance(root, MappingNode) and (entry := root.find("reports")) is not None:
        root = entry.value
    return root.items if isinstance(root, ListNode) else (root,)


def _tell(problem: Any) -> str:
    faults = "; ".join(str(fault) for fault in problem.errors)
    return f"{problem.detail or problem.title}{f' ({faults})' if faults else ''}"
