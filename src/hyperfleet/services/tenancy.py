"""Assigns the tenant of a resource: decided at creation, never changed afterwards.

The commands of `resources` use it. If the setting `tenancy.label` names a label, its value is the tenant; otherwise it
is the tenant of the creator. A child has the tenant of its parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents.pointer import join
from hyperfleet.documents.wording import quote
from hyperfleet.model.resource import Resource
from hyperfleet.services.callers import Caller
from hyperfleet.services.results import Refusal

_SHOWN: Final = 10  # tenants named to a caller who must choose one of them


class Ownership(Struct, frozen=True):
    """The tenant of a resource, and its labels, including the tenancy label if there is one."""

    tenant: str
    labels: Mapping[str, str]


class Tenancy(Struct, frozen=True):
    """How tenants are assigned: by a label or, without one, by the creator."""

    label: str | None = None

    def assign(self, labels: Mapping[str, str], caller: Caller) -> Ownership | Refusal:
        """Assign the tenant of a new resource without a parent."""
        given = labels.get(self.label) if self.label else None
        if given is not None:
            return Ownership(given, labels) if caller.scope.admits(given) else self._refuse_foreign(given, caller)
        tenants = caller.scope.tenants
        if tenants is None:
            return self._label(caller.tenant, labels)
        if len(tenants) == 1:
            return self._label(next(iter(tenants)), labels)
        return self._refuse_ambiguous(sorted(tenants), caller)

    def inherit(self, parent: Resource, labels: Mapping[str, str]) -> Ownership | Refusal:
        """Assign the tenant of the parent."""
        given = labels.get(self.label, parent.tenant) if self.label else parent.tenant
        if given != parent.tenant:
            message = f"it is the tenant, and the parent {parent.id} does not belong to {quote(given)}"
            return self._refuse("Contradiction", message)
        return self._label(parent.tenant, labels)

    def keep(self, before: Mapping[str, str], after: Mapping[str, Any], wanted: object) -> Mapping[str, Any] | Refusal:
        """Return the labels after an edit with the labels `wanted`; the tenancy label stays if left out."""
        label = self.label
        if label is None or after.get(label) == before.get(label):
            return after
        is_left_out = not (isinstance(wanted, Mapping) and label in wanted)
        if is_left_out and label in before:
            return {**after, label: before[label]}
        return self._refuse("Immutable", "it is the tenant of the resource, which never changes; create another one")

    def _label(self, tenant: str, labels: Mapping[str, str]) -> Ownership:
        """Add the tenancy label, if there is one and a tenant."""
        return Ownership(tenant, {**labels, self.label: tenant} if self.label and tenant else labels)

    def _refuse_foreign(self, tenant: str, caller: Caller) -> Refusal:
        who = caller.name or "the caller"
        message = f"the label {self.label} is the tenant, and {who} may not create resources of {quote(tenant)}"
        return Refusal("Forbidden", message, (BodyProblem(self._pointer, "NotYourTenant", message),))

    def _refuse_ambiguous(self, tenants: list[str], caller: Caller) -> Refusal:
        who = caller.name or "the caller"
        if not tenants:
            return Refusal("Forbidden", f"{who} belongs to no tenant, so nothing can be created")
        some = ", ".join(tenants[:_SHOWN]) + (", …" if len(tenants) > _SHOWN else "")
        if self.label is not None:
            return self._refuse("MissingLabel", f"it is the tenant, and {who} has several: give one of {some}")
        message = (
            f"{who} has several tenants ({some}), and the request names none: use a token with one tenant, "
            "or configure a label for it (the server's setting tenancy.label)"
        )
        return Refusal("InvalidLabels", message, (BodyProblem("/labels", "Undecided", message),))

    def _refuse(self, code: str, message: str) -> Refusal:
        message = f"the label {self.label}: {message}"
        return Refusal("InvalidLabels", message, (BodyProblem(self._pointer, code, message),))

    @property
    def _pointer(self) -> str:
        return join("/labels", self.label or "")
