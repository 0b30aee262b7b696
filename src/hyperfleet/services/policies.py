"""The policy in force: kept in the store, so that every replica computes with the same one.

Whoever starts or reloads with another policy file puts it in force for all; the policy that is built in never takes the
place of one from a file. Each transaction sees the version that is in force; a replica that has another one loads it
and tries again.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from hyperfleet.aggregation import PolicySet, load_policies
from hyperfleet.documents import DocumentProblem
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import PolicyVersion, Store
from hyperfleet.services.policy_warnings import PolicyWarnings
from hyperfleet.services.workspace import Render, Rules

_LOG: Final = logging.getLogger(__name__)


class PolicyText(Struct, frozen=True):
    """A policy as it stands in a file, or as it is built in because nobody named a file."""

    text: str
    file: str
    is_built_in: bool = False

    def yields_to(self, active: PolicyVersion) -> bool:
        """Tell whether the policy in force stays although it is not this one; built in replaces built in."""
        return self.is_built_in and active.file != self.file


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
        self._warnings = PolicyWarnings(kinds)
        self.version: PolicyVersion | None = None
        self.rules = Rules(PolicySet(()), 0, kinds, render)
        self.on_change: Callable[[], None] | None = None  # told when another policy came into force

    async def activate(self) -> PolicyVersion:
        """Read our policy and put it in force, unless it yields. A policy with problems raises and changes nothing."""
        source = self._read_text()
        policies = load_policies(source.text, source.file, self._kinds)
        active = await self._store.active_policy()
        if active is not None and source.yields_to(active):
            _LOG.info("no policy file was given here: the policy from %s stays in force", active.file)
            return await self._follow(active)
        version = await self._store.activate_policy(digest_of(policies), source.text, source.file)
        before = self.version if version == active else active
        self._use(policies, version)
        await self._tell_change(before, version)
        return version

    async def adopt(self) -> PolicyVersion:
        """Use what is in force, whatever our file says by now; read the file only if nothing is."""
        active = await self._store.active_policy()
        return await self.activate() if active is None else await self._follow(active)

    async def refresh(self) -> None:
        """Use what is in force in the store, if it is not what we use."""
        version = await self._store.active_policy()
        if version is not None:
            await self._follow(version)

    def look_for_warnings(self) -> None:
        """Begin to find out what is likely wrong with the policy that we use; it will be in the log."""
        if self.version is not None:
            self._warnings.look_for(self.version)

    async def find_warnings(self, version: PolicyVersion) -> tuple[DocumentProblem, ...] | None:
        """Return what is likely wrong with a policy; None: that takes longer than anybody wants to wait."""
        return await self._warnings.find(version)

    async def _follow(self, version: PolicyVersion) -> PolicyVersion:
        before = self.version
        if version != before:
            self._use(load_policies(version.text, version.file, self._kinds), version)
            await self._tell_change(before, version)
        return version

    def _use(self, policies: PolicySet, version: PolicyVersion) -> None:
        self.version = version
        self.rules = Rules(policies, version.version, self._kinds, self._render)
        if self.on_change is not None:
            self.on_change()

    async def _tell_change(self, before: PolicyVersion | None, now: PolicyVersion) -> None:
        if before is None:
            _LOG.info("%s is in force", _describe(now))
        elif before != now:
            _, count = await self._store.outdated(now.version, 1)
            _LOG.info("%s is in force instead of %s; to be recomputed: %s", _describe(now), _describe(before), count)


def _describe(version: PolicyVersion) -> str:
    return f"policy version {version.version} (digest {version.digest}, {version.file})"


def digest_of(policies: PolicySet) -> str:
    """Name a set of policies by what they say; a comment or the order of keys does not matter."""
    names = "\n".join(policy.digest for policy in policies.policies)
    return hashlib.blake2b(names.encode(), digest_size=8).hexdigest()
