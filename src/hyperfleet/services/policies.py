"""The policy in force: kept in the store, so that every replica computes with the same one.

Whoever starts or reloads with another policy puts it in force for all. Each transaction sees the version that is in
force; a replica that has another one loads it and tries again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from msgspec import Struct

from hyperfleet.aggregation import PolicySet, load_policies
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import PolicyVersion, Store
from hyperfleet.services.workspace import Render, Rules


class PolicyText(Struct, frozen=True):
    """A policy as it stands in a file."""

    text: str
    file: str


class PolicyMoved(Exception):  # noqa: N818  # never leaves this package: the committer catches it and goes on
    """Another policy is in force than the one this transaction was to compute with."""


class PolicyBook:
    """The policy this replica computes with."""

    def __init__(self, store: Store, kinds: Kinds, render: Render, read_text: Callable[[], PolicyText]) -> None:
        """Read policies with `read_text`; nothing is in force before `activate`."""
        self._store = store
        self._kinds = kinds
        self._render = render
        self._read_text = read_text
        self.version: PolicyVersion | None = None
        self.rules = Rules(PolicySet(()), 0, kinds, render)
        self.on_change: Callable[[], None] | None = None  # told when another policy came into force

    async def activate(self) -> PolicyVersion:
        """Read our policy and put it in force. A policy with problems raises and changes nothing."""
        source = self._read_text()
        policies = load_policies(source.text, source.file, self._kinds)
        version = await self._store.activate_policy(digest_of(policies), source.text, source.file)
        self._use(policies, version)
        return version

    async def refresh(self) -> None:
        """Use what is in force in the store, if it is not what we use."""
        version = await self._store.active_policy()
        if version is not None and version != self.version:
            self._use(load_policies(version.text, version.file, self._kinds), version)

    def _use(self, policies: PolicySet, version: PolicyVersion) -> None:
        self.version = version
        self.rules = Rules(policies, version.version, self._kinds, self._render)
        if self.on_change is not None:
            self.on_change()


def digest_of(policies: PolicySet) -> str:
    """Name a set of policies by what they say; a comment or the order of keys does not matter."""
    names = "\n".join(policy.digest for policy in policies.policies)
    return hashlib.blake2b(names.encode(), digest_size=8).hexdigest()
