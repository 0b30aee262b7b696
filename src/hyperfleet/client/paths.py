"""From an object, an id or an address of a resource to its path. The only module that builds paths.

Operations accept a resource as an object, as its address (`href`), or as its id. The path of a node pool contains its
cluster, so a node pool given only by id is looked up first, with one more request.
"""

from __future__ import annotations

from typing import Final, Generic, TypeAlias
from urllib.parse import quote

from msgspec import Struct

from hyperfleet.client.answers.resource import Cluster, NodePool, PageAnswer, R, Resource
from hyperfleet.client.effects import ApiRequest, Flow
from hyperfleet.client.errors import NotFound, ProblemDocument
from hyperfleet.client.exchange import RetryPolicy, decode_part, fetch
from hyperfleet.client.query import query_of
from hyperfleet.model.kind import CLUSTER, NODE_POOL, Kind

BASE: Final = "/api/hyperfleet/v1"
_ALIASES: Final = ("/api/v1", "/v1")

ResourceLike: TypeAlias = Resource | str


class ResourceType(Struct, Generic[R], frozen=True):
    """A kind of resource, the type it is decoded to, and the kind of its parent."""

    kind: Kind
    shape: type[R]
    parent: Kind | None = None

    @property
    def noun(self) -> str:
        """Return the name of the kind for people: `node pool`."""
        return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in self.kind.name).strip()

    def collection(self, parent: ResourceLike | None = None) -> str:
        """Return the path of the collection, or of the one below a parent."""
        if parent is None or self.parent is None:
            return f"{BASE}/{self.kind.plural}"
        above = direct_path(parent) or f"{BASE}/{self.parent.plural}/{quote_segment(str(parent))}"
        return f"{above}/{self.kind.plural}"

    def locate(self, subject: ResourceLike, retry: RetryPolicy, parent: ResourceLike | None = None) -> Flow[str]:
        """Return the path of a resource; look its parent up if necessary."""
        if path := direct_path(subject):
            return path
        id_ = subject.id if isinstance(subject, Resource) else subject
        if self.parent is None or parent is not None:
            return f"{self.collection(parent)}/{quote_segment(id_)}"
        return (yield from self._look_up(id_, retry))

    def _look_up(self, id_: str, retry: RetryPolicy) -> Flow[str]:
        request = ApiRequest("GET", self.collection(), query_of({"q": id_, "fields": "id,href", "limit": 1000}))
        page = yield from fetch(PageAnswer, request, retry)
        for raw in page.items:
            found = decode_part(Resource, raw)
            if found.id == id_ and (path := direct_path(found)):
                return path
        raise NotFound(not_found(f"there is no {self.noun} {id_}"))


CLUSTERS: Final = ResourceType(CLUSTER, Cluster)
NODE_POOLS: Final = ResourceType(NODE_POOL, NodePool, CLUSTER)


def type_of(subject: ResourceLike) -> ResourceType[Cluster] | ResourceType[NodePool]:
    """Return the type of a resource, judged by its class, address or id; by default a cluster."""
    if isinstance(subject, NodePool):
        return NODE_POOLS
    text = (subject.href or subject.id) if isinstance(subject, Resource) else subject
    is_pool = f"/{NODE_POOL.plural}/" in text or text.startswith(f"{NODE_POOL.id_prefix}-")
    return NODE_POOLS if is_pool else CLUSTERS


def direct_path(subject: ResourceLike) -> str:
    """Return the path that an object or an address contains; empty if there is none."""
    if isinstance(subject, Resource):
        if subject.href.startswith("/"):
            return subject.href
        above = subject.metadata.cluster_id
        return (
            f"{BASE}/{CLUSTER.plural}/{quote_segment(above)}/{NODE_POOL.plural}/{quote_segment(subject.id)}"
            if above
            else ""
        )
    if "/" not in subject:
        return ""
    alias = next((alias for alias in (BASE, *_ALIASES) if subject.startswith(f"{alias}/")), "")
    parts = subject.removeprefix(alias).strip("/").split("/")
    return f"{BASE}/{'/'.join(quote_segment(part) for part in parts)}"


def not_found(detail: str) -> ProblemDocument:
    """Make the problem document for a failed lookup."""
    return ProblemDocument(title="Not found", detail=detail, status=404, code="NotFound")


def quote_segment(text: str) -> str:
    """Quote an id or a name as one segment of a path; refuse those that would change the path."""
    if text in ("", ".", ".."):
        raise ValueError(f"{text!r} is neither an id nor a name")
    return quote(text, safe="")
