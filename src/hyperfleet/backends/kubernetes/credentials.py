"""Shows an API server who we are: tokens of a kubeconfig, of a file that changes, or of a plugin.

Used by `api_server`. A token that was refused is fetched again once: it may have been replaced meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Final, Protocol

import httpx
import msgspec
from msgspec import Struct

from hyperfleet.backends.kubernetes.access import ClusterAccess, ExecPlugin, StaticToken, TokenFile
from hyperfleet.errors import KubernetesForbidden

_READ_AGAIN: Final = 60.0  # seconds; a token of a service account is replaced some minutes before it expires
_EXPIRES_SOON: Final = 10.0  # seconds; a request may take that long to be looked at


class TokenSource(Protocol):
    """Gives a token, and may have a newer one."""

    async def token(self) -> str:
        """Return a token."""
        ...

    def forget(self) -> bool:
        """Fetch a new token next time, because this one was refused; False: there is only one."""
        ...


class TokenAuth(httpx.Auth):
    """Puts a token into requests."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Send a request, and send it again with a newer token if it is answered with 401."""
        request.headers["Authorization"] = f"Bearer {await self._source.token()}"
        response = yield request
        if response.status_code == 401 and self._source.forget():
            request.headers["Authorization"] = f"Bearer {await self._source.token()}"
            yield request


def make_auth(access: ClusterAccess) -> httpx.Auth | None:
    """Return what authenticates requests; None: the client certificate does, or nothing."""
    match access.credentials:
        case StaticToken(token):
            return TokenAuth(_OneToken(token))
        case TokenFile():
            return TokenAuth(_FileTokens(access.credentials))
        case ExecPlugin():
            return TokenAuth(_PluginTokens(access.credentials))
        case None:
            return None


class _OneToken:
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token

    def forget(self) -> bool:
        return False


class _FileTokens:
    """Reads a file again after a while. It is small and local, so the event loop can wait for it."""

    def __init__(self, file: TokenFile) -> None:
        self._path = file.path
        self._token = ""
        self._read_at = 0.0

    async def token(self) -> str:
        if not self._token or time.monotonic() > self._read_at + _READ_AGAIN:
            try:
                self._token = self._path.read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise KubernetesForbidden(f"the token file {self._path} cannot be read: {error}") from error
            self._read_at = time.monotonic()
        return self._token

    def forget(self) -> bool:
        self._token = ""
        return True


class _PluginStatus(Struct, frozen=True, rename="camel"):
    token: str = ""
    expiration_timestamp: datetime | None = None


class _PluginAnswer(Struct, frozen=True):
    status: _PluginStatus


class _PluginTokens:
    """Runs a plugin when there is no token, or it expires."""

    def __init__(self, plugin: ExecPlugin) -> None:
        self._plugin = plugin
        self._status = _PluginStatus()
        self._lock = asyncio.Lock()

    async def token(self) -> str:
        async with self._lock:  # one run is enough for all requests that wait
            if not self._status.token or self._is_expiring():
                self._status = await self._run()
            return self._status.token

    def forget(self) -> bool:
        self._status = _PluginStatus()
        return True

    def _is_expiring(self) -> bool:
        end = self._status.expiration_timestamp
        return end is not None and (end - datetime.now(UTC)).total_seconds() < _EXPIRES_SOON

    async def _run(self) -> _PluginStatus:
        output = await self._execute()
        try:
            status = msgspec.json.decode(output, type=_PluginAnswer).status
        except msgspec.DecodeError as error:
            raise self._failure("did not print an ExecCredential") from error
        if not status.token:
            raise self._failure("printed no token (client certificates of plugins are not supported)")
        return status

    async def _execute(self) -> bytes:
        pipe = asyncio.subprocess.PIPE
        command = (self._plugin.command, *self._plugin.arguments)
        try:
            process = await asyncio.create_subprocess_exec(
                *command, env=self._environment(), stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
            )
        except OSError as error:
            raise self._failure(f"cannot be run: {error.strerror}. {self._plugin.hint}".rstrip(". ")) from error
        try:
            output, errors = await process.communicate()
        finally:
            if process.returncode is None:  # we were cancelled: the time for the request is over
                process.kill()
        if process.returncode:
            raise self._failure(f"ended with {process.returncode}: {errors[-500:].decode('utf-8', 'replace').strip()}")
        return output

    def _environment(self) -> dict[str, str]:
        cluster = {} if self._plugin.cluster is None else {"cluster": self._plugin.cluster}
        question = {
            "apiVersion": self._plugin.api_version,
            "kind": "ExecCredential",
            "spec": {"interactive": False, **cluster},
        }
        information = msgspec.json.encode(question).decode()
        return {**os.environ, **self._plugin.environment, "KUBERNETES_EXEC_INFO": information}

    def _failure(self, what: str) -> KubernetesForbidden:
        return KubernetesForbidden(f"the plugin {self._plugin.command} {what}")
