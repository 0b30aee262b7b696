"""Whose a resource is: decided when it is created, never changed afterwards.

The commands of `resources` ask here. Where the setting `tenancy.label` names a label, its value is the tenant;
otherwise a resource is its creator's. What is below another resource is whose that is.
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

_SHOWN: Final = 10  # tenants told to a caller who must choose one of them


class Home(Struct, frozen=True):
    """Whose a resource is, and its labels; where a label tells whose it is, it is among them."""

    tenant: str
    labels: Mapping[str, str]


class Tenancy(Struct, frozen=True):
    """How it is told whose a resource is: by a label or, without one, by who creates it."""

    label: str | None = None

    def settle(self, labels: Mapping[str, str], caller: Caller) -> Home | Refusal:
        """Decide whose a new resource is that is below nothing."""
        given = labels.get(self.label) if self.label else None
        if given is not None:
            return Home(given, labels) if caller.scope.admits(given) else self._refuse_foreign(given, caller)
        tenants = caller.scope.tenants
        if tenants is None:
            return self._label(caller.tenant, labels)
        if len(tenants) == 1:
            return self._label(next(iter(tenants)), labels)
        return self._refuse_undecided(sorted(tenants), caller)

    def settle_below(self, parent: Resource, labels: Mapping[str, str]) -> Home | Refusal:
        """Give a new resource to whom its parent belongs."""
        given = labels.get(self.label, parent.tenant) if self.label else parent.tenant
        if given != parent.tenant:
            message = f"it says whose this is, and {parent.id}, which this is below, is not {quote(given)}'s"
            return self._refuse("Contradiction", message)
        return self._label(parent.tenant, labels)

    def keep(self, before: Mapping[str, str], after: Mapping[str, Any], wanted: object) -> Mapping[str, Any] | Refusal:
        """Return labels after a change that names those `wanted`; the one that tells whose it is stays if left out."""
        label = self.label
        if label is None or after.get(label) == before.get(label):
            return after
        is_left_out = not (isinstance(wanted, Mapping) and label in wanted)
        if is_left_out and label in before:
            return {**after, label: before[label]}
        return self._refuse("Immutable", "it says whose the resource is, and that never changes; create another one")

    def _label(self, tenant: str, labels: Mapping[str, str]) -> Home:
        """Add the label, if there is one and something to be told."""
        return Home(tenant, {**labels, self.label: tenant} if self.label and tenant else labels)

    def _refuse_foreign(self, tenant: str, caller: Caller) -> Refusal:
        who = caller.name or "the caller"
        message = f"the label {self.label} says whose this is, and {who} may not create for {quote(tenant)}"
        return Refusal("Forbidden", message, (BodyProblem(self._pointer, "NotYourTenant", message),))

    def _refuse_undecided(self, tenants: list[str], caller: Caller) -> Refusal:
        who = caller.name or "the caller"
        if not tenants:
            return Refusal("Forbidden", f"{who} belongs to no tenant, so nothing can be created")
        some = ", ".join(tenants[:_SHOWN]) + (", …" if len(tenants) > _SHOWN else "")
        if self.label is not None:
            return self._refuse("MissingLabel", f"it says whose this is, and {who} has several tenants: give {some}")
        message = (
            f"{who} has several tenants ({some}), and nothing says whose this is: use a token of one of them, "
            "or let the server tell it by a label (its setting tenancy.label)"
        )
        return Refusal("InvalidLabels", message, (BodyProblem("/labels", "Undecided", message),))

    def _refuse(self, code: str, message: str) -> Refusal:
        message = f"the label {self.label}: {message}"
        return Refusal("InvalidLabels", message, (BodyProblem(self._pointer, code, message),))

    @property
    def _pointer(self) -> str:
        return join("/labels", self.label or "")
