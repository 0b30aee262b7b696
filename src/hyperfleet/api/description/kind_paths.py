"""Where the resources of a kind are, in the words of the document: paths, parameters, nouns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hyperfleet.api.description.operations import Parameter
from hyperfleet.api.wire import BASE, path_of
from hyperfleet.model.kind import Kind, Kinds


class KindPaths(Struct, frozen=True):
    """A kind and where its resources are."""

    kind: Kind
    kinds: Kinds

    @property
    def parent(self) -> Kind | None:
        """Return the kind that its resources are below of."""
        return self.kinds.get(self.kind.parent) if self.kind.parent else None

    @property
    def collection(self) -> str:
        """Return the path of all resources of the kind (below one parent)."""
        parent = self.parent
        return f"{BASE}{path_of(self.kind, self.kinds, f'{{{id_parameter(parent)}}}' if parent else '')}"

    @property
    def item(self) -> str:
        """Return the path of one resource."""
        return f"{self.collection}/{{{id_parameter(self.kind)}}}"

    @property
    def collection_parameters(self) -> tuple[Parameter, ...]:
        """Return what stands in the path of the collection."""
        return (_path_parameter(self.parent),) if self.parent else ()

    @property
    def item_parameters(self) -> tuple[Parameter, ...]:
        """Return what stands in the path of one resource."""
        return (*self.collection_parameters, _path_parameter(self.kind))

    @property
    def tag(self) -> str:
        """Return the heading its operations stand under."""
        return f"{self.kind.name}s"

    @property
    def noun(self) -> str:
        """Return what people call one of them: `node pool`."""
        return noun_of(self.kind)

    @property
    def nouns(self) -> str:
        """Return what people call several of them: `node pools`."""
        return f"{self.noun}s"

    @property
    def example_id(self) -> str:
        """Return an id such as its resources have."""
        return _example_id(self.kind)

    @property
    def links(self) -> Mapping[str, Any]:
        """Return how a created resource leads to the operations on it, and on what can be below it."""
        name, parameters = self.kind.name, {id_parameter(self.kind): "$response.body#/id"}
        if self.parent:
            parameters[id_parameter(self.parent)] = f"$request.path.{id_parameter(self.parent)}"
        operations = [f"{verb}{name}" for verb in ("get", "replace", "patch", "delete", "forceDelete")]
        operations += [
            f"report{name}Status",
            f"get{name}Statuses",
            f"explain{name}",
            f"get{name}History",
            f"diff{name}",
        ]
        for child in self.kinds.children_of(name):
            operations += [f"create{child.name}", f"list{child.name}s"]
        return {operation: {"operationId": operation, "parameters": parameters} for operation in operations}

    @property
    def report_links(self) -> Mapping[str, Any]:
        """Return how a report leads to what was reported."""
        name = self.kind.name
        parameters = {parameter.name: f"$request.path.{parameter.name}" for parameter in self.item_parameters}
        by_id = {**parameters, "statusId": "$response.body#/id"}
        by_adapter = {**parameters, "adapter": "$request.body#/adapter"}
        return {
            **{
                each: {"operationId": each, "parameters": by_id}
                for each in (f"get{name}StatusesById", f"patch{name}Status")
            },
            **{
                each: {"operationId": each, "parameters": by_adapter}
                for each in (f"get{name}AdapterStatus", f"retire{name}Adapter")
            },
        }


def noun_of(kind: Kind) -> str:
    """Return what people call a resource of a kind: `node pool`."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind.name).strip()


def id_parameter(kind: Kind) -> str:
    """Return the name of the parameter that holds the id of such a resource: `nodePoolId`."""
    return f"{kind.name[0].lower()}{kind.name[1:]}Id"


def _path_parameter(kind: Kind) -> Parameter:
    return Parameter(id_parameter(kind), "path", f"The id of the {noun_of(kind)}.", example=_example_id(kind))


def _example_id(kind: Kind) -> str:
    return f"{kind.id_prefix}-01jd3k2m9pqr5tv8wxyz"
