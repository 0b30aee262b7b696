"""The policy in force: the newest version in the store, so that every replica computes with the same one.

A file is put in force when it changed since a server last read it, the built-in policy only in place of another
built-in one, and a policy that is applied or rolled back to always (ADR 23). Each transaction sees the version in
force; a replica that has another one loads it and tries again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from hyperfleet.aggregation import PolicySet, load_policies
from hyperfleet.documents import DocumentProblem
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import AdmitPolicy, NewPolicy, PolicyVersion, Store, admit_always
from hyperfleet.services.policy_warnings import PolicyWarnings
from hyperfleet.services.results import Refusal
from hyperfleet.services.workspace import NextLook, Render, Rules, keep_look

_LOG: Final = logging.getLogger(__name__)


class PolicyText(Struct, frozen=True):
    """The text of a policy file, or of the built-in policy if no file is configured."""

    text: str
    file: str
    is_built_in: bool = False

    def yields_to(self, active: PolicyVersion) -> bool:
        """Tell whether the policy in force stays: the built-in policy replaces only another built-in one."""
        return self.is_built_in and active.file != self.file


class PolicyMoved(Exception):  # noqa: N818  # never leaves this package: the committer catches it and goes on
    """The policy in force is not the one that this transaction computes with, or is meant to replace."""


class PolicyRegistry:
    """The policy this replica computes with."""

    def __init__(
        self,
        store: Store,
        kinds: Kinds,
        render: Render,
        read_text: Callable[[], PolicyText],
        next_look: NextLook = keep_look,
    ) -> None:
        """Read policies with `read_text`; nothing is in force before `activate`."""
        self._store = store
        self._kinds = kinds
        self._render = render
        self._read_text = read_text
        self._next_look = next_look
        self._warnings = PolicyWarnings(kinds)
        self.version: PolicyVersion | None = None
        self.rules = Rules(PolicySet(()), 0, kinds, render)
        self.on_change: Callable[[], None] | None = None  # called when another policy came into force
        self.check: Callable[[PolicySet], None] = _admit_any  # raises if this process cannot put it in force

    # ── from a file ──────────────────────────────────────────────────────────────────────────────────────────────

    async def activate(self) -> PolicyVersion:
        """Read our policy and put it in force if its file changed. One with problems raises and changes nothing."""
        source = self._read_text()

        def admit(active: PolicyVersion, file_digest: str) -> bool:
            return not source.yields_to(active) and (source.is_built_in or file_digest != digest)

        policies = self._load_file(source)
        digest = digest_of(policies)
        version = await self._put_file(source, policies, "", admit)
        _log_file_not_in_force(source, digest, version)
        return version

    async def reload(self, author: str) -> PolicyVersion:
        """Put our file in force, changed or not, because a caller asked for it."""
        source = self._read_text()
        policies = self._load_file(source)
        return await self._put_file(source, policies, author, lambda active, _: not source.yields_to(active))

    async def adopt(self) -> PolicyVersion:
        """Use the policy in force, whatever our file contains; read the file only if there is none."""
        active = await self._store.active_policy()
        return await self.activate() if active is None else await self._follow(active)

    async def refresh(self) -> None:
        """Load the policy in force from the store, if it is not the one we use."""
        version = await self._store.active_policy()
        if version is not None:
            await self._follow(version)

    # ── from the API ─────────────────────────────────────────────────────────────────────────────────────────────

    async def compile(self, text: str, name: str) -> PolicySet:
        """Compile a policy, in a thread because a long one takes seconds; raise `DocumentError` with every problem."""
        return await asyncio.to_thread(load_policies, text, name, self._kinds)

    async def put(
        self, new: NewPolicy, policies: PolicySet, replaced: frozenset[int] | None
    ) -> PolicyVersion | Refusal:
        """Put a policy in force if one of the versions `replaced` is in force; None: whichever is."""
        admit = admit_always if replaced is None else _admit_after(replaced)
        try:
            return await self._put(new, policies, admit)
        except PolicyMoved as moved:
            return Refusal("PreconditionFailed", str(moved))

    # ── warnings ──────────────────────────────────────────────────────────────────────────────────────────────────

    def look_for_warnings(self) -> None:
        """Start to lint the policy that we use; warnings are logged."""
        if self.version is not None:
            self._warnings.look_for(self.version)

    async def find_warnings(self, version: PolicyVersion) -> tuple[DocumentProblem, ...] | None:
        """Return the warnings of a policy; None: they are not known yet, because linting takes long."""
        return await self._warnings.find(version)

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _load_file(self, source: PolicyText) -> PolicySet:
        policies = load_policies(source.text, source.file, self._kinds)
        if not source.is_built_in:
            self.check(policies)
        return policies

    async def _put_file(
        self, source: PolicyText, policies: PolicySet, author: str, admit: AdmitPolicy
    ) -> PolicyVersion:
        kind: Final = "built-in" if source.is_built_in else "file"
        new = NewPolicy(digest_of(policies), source.text, source.file, kind, author)
        return await self._put(new, policies, admit)

    async def _put(self, new: NewPolicy, policies: PolicySet, admit: AdmitPolicy) -> PolicyVersion:
        active = await self._store.active_policy()
        version = await self._store.activate_policy(new, admit)
        if version.digest != new.digest:  # it was not admitted
            return await self._follow(version)
        before = self.version if version == active else active
        self._use(policies, version)
        await self._log_change(before, version)
        return version

    async def _follow(self, version: PolicyVersion) -> PolicyVersion:
        before = self.version
        if version != before:
            self._use(load_policies(version.text, version.name, self._kinds), version)
            await self._log_change(before, version)
        return version

    def _use(self, policies: PolicySet, version: PolicyVersion) -> None:
        self.version = version
        self.rules = Rules(policies, version.version, self._kinds, self._render, next_look=self._next_look)
        if self.on_change is not None:
            self.on_change()

    async def _log_change(self, before: PolicyVersion | None, now: PolicyVersion) -> None:
        if before is None:
            _LOG.info("%s is in force", _describe(now))
        elif before != now:
            _, count = await self._store.outdated(now.version, 1)
            _LOG.info("%s is in force instead of %s; to be recomputed: %s", _describe(now), _describe(before), count)


def _admit_any(_: PolicySet) -> None:
    """Raise nothing: before a server has started, any policy may be put in force."""


def _admit_after(replaced: frozenset[int]) -> AdmitPolicy:
    """Admit a policy only in place of one of these versions."""

    def admit(active: PolicyVersion, file_digest: str) -> bool:
        if active.version not in replaced:
            raise PolicyMoved(f"version {active.version} of the policy is in force")
        return True

    return admit


def _log_file_not_in_force(source: PolicyText, digest: str, version: PolicyVersion) -> None:
    """Warn that the file has no effect now, and how to change that."""
    if version.digest == digest:
        return
    if source.is_built_in:
        _LOG.info("no policy file is configured: the policy from %s stays in force", version.file or "the API")
        return
    _LOG.warning(
        "the policy in %s is not in force: it has not changed since a server last read it, and %s came after it. "
        "To put the file in force: hyperfleet rules apply -f %s. "
        "To keep what is in force: write the output of `hyperfleet rules versions %s` into the file",
        source.file,
        _describe(version),
        source.file,
        version.version,
    )


def _describe(version: PolicyVersion) -> str:
    return f"policy version {version.version} (digest {version.digest}, {_origin_of(version)})"


def _origin_of(version: PolicyVersion) -> str:
    if version.source != "api":
        return version.file
    what = "applied" if version.restores is None else f"rolled back to version {version.restores}"
    return f"{what} by {version.author}" if version.author else what


def digest_of(policies: PolicySet) -> str:
    """Return a digest of what policies mean; comments and the order of keys do not matter."""
    names = "\n".join(policy.digest for policy in policies.policies)
    if policies.pubsub is not None:
        names += f"\n{policies.pubsub}"  # changes no status, but a file that changes it must come into force
    return hashlib.blake2b(names.encode(), digest_size=8).hexdigest()
