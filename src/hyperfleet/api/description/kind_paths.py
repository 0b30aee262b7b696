"""The paths, parameters and nouns of a kind in the API description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hyperfleet.api.description.operations import Parameter
from hyperfleet.api.wire import BASE, path_of
from hyperfleet.model.kind import Kind, Kinds


class KindPaths(Struct, frozen=True):
    """The paths and names of the resources of a kind."""

    kind: Kind
    kinds: Kinds

    @property
    def parent(self) -> Kind | None:
        """Return the kind of the parent, if any."""
        return self.kinds.get(self.kind.parent) if self.kind.parent else None

    @property
    def collection(self) -> str:
        """Return the path of the collection (below one parent)."""
        parent = self.parent
        return f"{BASE}{path_of(self.kind, self.kinds, f'{{{id_parameter(parent)}}}' if parent else '')}"

    @property
    def item(self) -> str:
        """Return the path of one resource."""
        return f"{self.collection}/{{{id_parameter(self.kind)}}}"

    @property
    def collection_parameters(self) -> tuple[Parameter, ...]:
        """Return the path parameters of the collection."""
        return (_path_parameter(self.parent),) if self.parent else ()

    @property
    def item_parameters(self) -> tuple[Parameter, ...]:
        """Return the path parameters of one resource."""
        return (*self.collection_parameters, _path_parameter(self.kind))

    @property
    def tag(self) -> str:
        """Return the tag of its operations."""
        return f"{self.kind.name}s"

    @property
    def noun(self) -> str:
        """Return the noun of one resource: `node pool`."""
        return noun_of(self.kind)

    @property
    def nouns(self) -> str:
        """Return the noun of several resources: `node pools`."""
        return f"{self.noun}s"

    @property
    def example_id(self) -> str:
        """Return an example id."""
        return _example_id(self.kind)

    @property
    def links(self) -> Mapping[str, Any]:
        """Return the links from a created resource to the operations on it and on its children."""
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
        """Return the links from a report to the operations on it."""
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
    """Return the noun of a kind: `node pool`."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind.name).strip()


def id_parameter(kind: Kind) -> str:
    """Return the name of the id parameter of a kind: `nodePoolId`."""
    return f"{kind.name[0].lower()}{kind.name[1:]}Id"


def _path_parameter(kind: Kind) -> Parameter:
    return Parameter(id_parameter(kind), "path", f"The id of the {noun_of(kind)}.", example=_example_id(kind))


def _example_id(kind: Kind) -> str:
    return f"{kind.id_prefix}-01jd3k2m9pqr5tv8wxyz"
