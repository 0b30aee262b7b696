"""Where resources are: from an object, an id or an address to a path. The only place that builds paths.

Wherever a resource is wanted, it can be given as the object itself, as its address (`href`), or as its id. A node pool
is below its cluster, so the id of one alone has to be looked up first: one request more.
"""

from __future__ import annotations

from typing import Final, Generic, TypeAlias
from urllib.parse import quote

from msgspec import Struct

from hyperfleet.client.answers.resource import Cluster, NodePool, PageAnswer, R, Resource
from hyperfleet.client.effects import Flow, Request
from hyperfleet.client.errors import NotFound, ProblemDocument
from hyperfleet.client.exchange import Patience, decode_part, fetch
from hyperfleet.client.query import query_of
from hyperfleet.model.kind import CLUSTER, NODE_POOL, Kind

BASE: Final = "/api/hyperfleet/v1"
_ALIASES: Final = ("/api/v1", "/v1")

Subject: TypeAlias = Resource | str


class Place(Struct, Generic[R], frozen=True):
    """A kind of resources, and how they are read."""

    kind: Kind
    shape: type[R]
    parent: Kind | None = None

    @property
    def noun(self) -> str:
        """Return what people call one of them: `node pool`."""
        return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in self.kind.name).strip()

    def collection(self, parent: Subject | None = None) -> str:
        """Return the path of all of them, or of those below a parent."""
        if parent is None or self.parent is None:
            return f"{BASE}/{self.kind.plural}"
        above = direct_path(parent) or f"{BASE}/{self.parent.plural}/{quoted(str(parent))}"
        return f"{above}/{self.kind.plural}"

    def locate(self, subject: Subject, patience: Patience, parent: Subject | None = None) -> Flow[str]:
        """Return the path of one of them; look its parent up if need be."""
        if path := direct_path(subject):
            return path
        id_ = subject.id if isinstance(subject, Resource) else subject
        if self.parent is None or parent is not None:
            return f"{self.collection(parent)}/{quoted(id_)}"
        return (yield from self._look_up(id_, patience))

    def _look_up(self, id_: str, patience: Patience) -> Flow[str]:
        request = Request("GET", self.collection(), query_of({"q": id_, "fields": "id,href", "limit": 1000}))
        page = yield from fetch(PageAnswer, request, patience)
        for raw in page.items:
            found = decode_part(Resource, raw)
            if found.id == id_ and (path := direct_path(found)):
                return path
        raise NotFound(absent(f"there is no {self.noun} {id_}"))


CLUSTERS: Final = Place(CLUSTER, Cluster)
NODE_POOLS: Final = Place(NODE_POOL, NodePool, CLUSTER)


def place_of(subject: Subject) -> Place[Cluster] | Place[NodePool]:
    """Tell where something belongs by what it is or looks like; what looks like nothing is the id of a cluster."""
    if isinstance(subject, NodePool):
        return NODE_POOLS
    text = (subject.href or subject.id) if isinstance(subject, Resource) else subject
    is_pool = f"/{NODE_POOL.plural}/" in text or text.startswith(f"{NODE_POOL.id_prefix}-")
    return NODE_POOLS if is_pool else CLUSTERS


def direct_path(subject: Subject) -> str:
    """Return the path that something has with it; empty if it has none."""
    if isinstance(subject, Resource):
        if subject.href.startswith("/"):
            return subject.href
        above = subject.metadata.cluster_id
        return f"{BASE}/{CLUSTER.plural}/{quoted(above)}/{NODE_POOL.plural}/{quoted(subject.id)}" if above else ""
    if "/" not in subject:
        return ""
    alias = next((alias for alias in (BASE, *_ALIASES) if subject.startswith(f"{alias}/")), "")
    parts = subject.removeprefix(alias).strip("/").split("/")
    return f"{BASE}/{'/'.join(quoted(part) for part in parts)}"


def absent(detail: str) -> ProblemDocument:
    """Make the problem document of something that we looked for and did not find."""
    return ProblemDocument(title="There is no such thing", detail=detail, status=404, code="NotFound")


def quoted(text: str) -> str:
    """Write an id or a name as one part of a path, whatever is in it; refuse what would lead to another place."""
    if text in ("", ".", ".."):
        raise ValueError(f"{text!r} is neither an id nor a name")
    return quote(text, safe="")
