"""Lint warnings of the policy in force, found in the background because linting takes seconds.

`policies` uses it. Linting tries a policy on thousands of states, so it runs once for each policy, in a daemon thread
that does not delay the end of the process.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from typing import Final

from hyperfleet.aggregation.loading.policy_loader import check_policies
from hyperfleet.documents import DocumentProblem
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import PolicyVersion

_LOG: Final = logging.getLogger(__name__)
_TIMEOUT: Final = 10.0  # seconds that a request waits; one policy takes about two, and a file may have several


class PolicyWarnings:
    """The warnings of the policy that was linted last."""

    def __init__(self, kinds: Kinds, *, is_logged: bool = True) -> None:
        """Check policies for `kinds`; warnings are logged, unless the policy is only a candidate."""
        self._kinds = kinds
        self._is_logged = is_logged
        self._version: PolicyVersion | None = None
        self._found: Future[tuple[DocumentProblem, ...]] = Future()

    def look_for(self, version: PolicyVersion) -> None:
        """Start to lint a policy, unless that was done before; warnings are logged."""
        if version != self._version:
            self._version, self._found = version, Future()
            threading.Thread(target=self._lint, args=(version, self._found), name="lint", daemon=True).start()

    async def find(self, version: PolicyVersion) -> tuple[DocumentProblem, ...] | None:
        """Return the warnings of a policy; None: not known yet, ask again later."""
        self.look_for(version)
        try:
            async with asyncio.timeout(_TIMEOUT):
                return await asyncio.shield(asyncio.wrap_future(self._found))
        except TimeoutError:
            return None

    def _lint(self, version: PolicyVersion, found: Future[tuple[DocumentProblem, ...]]) -> None:
        try:
            warnings = check_policies(version.text, version.file or "text", self._kinds).problems
        except Exception as error:  # noqa: BLE001  # an error of the linter is not an error of the policy
            _LOG.error("policy version %s could not be linted", version.version, exc_info=error)
            warnings = ()
        for warning in warnings if self._is_logged else ():
            _LOG.warning("policy version %s: %s", version.version, warning)
        found.set_result(warnings)
