"""The tokens of a file, which is read again when it changes: to revoke a token, remove it from the file."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from hyperfleet.access.token_file import Ticket, TokenList, read_tokens
from hyperfleet.documents import DocumentPlace, DocumentProblem, has_errors
from hyperfleet.errors import SettingsError

_LOG: Final = logging.getLogger(__name__)


class _Version(Struct, frozen=True):
    """Identifies the state of a file; a replaced file has another one."""

    node: int = -1
    size: int = -1
    changed_at: int = -1


class Tokens:
    """The tokens of a file, each with its caller."""

    def __init__(self, file: str, now: Callable[[], float]) -> None:
        """Read the file; raise `SettingsError` with all its problems."""
        self._file = file
        self._now = now
        self._tickets: Mapping[bytes, Ticket] = {}
        self._version = _identify(file)  # before reading, so that no later change is missed
        self._take(self._read())

    def find(self, digest: bytes) -> Ticket | None:
        """Return the ticket of the token with this SHA-256."""
        return self._tickets.get(digest)

    def refresh(self) -> bool:
        """Read the file again if it changed; return whether the tokens changed. With problems the old ones stay."""
        version = _identify(self._file)
        if version == self._version:
            return False
        self._version = version  # log an invalid file only once
        try:
            self._take(self._read())
        except SettingsError as error:
            _LOG.error("the token file was not reloaded, keeping the old tokens: %s", error)
            return False
        _LOG.info("the token file was reloaded: %s tokens", len(self._tickets))
        return True

    def _read(self) -> TokenList:
        return read_tokens(read_text(self._file), self._file, self._now())

    def _take(self, found: TokenList) -> None:
        if has_errors(found.problems):
            raise SettingsError(found.problems)
        for problem in (*found.problems, *_check_mode(self._file)):
            _LOG.warning("%s", problem)
        self._tickets = found.tickets


def read_text(file: str) -> str:
    """Return the text of a token file; raise `SettingsError` if it cannot be read."""
    try:
        return Path(file).read_bytes().decode()
    except OSError as error:
        raise refuse(file, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise refuse(file, "is not UTF-8 text") from None  # not chained: it would quote the text


def refuse(file: str, message: str) -> SettingsError:
    """Make an error about a file as a whole."""
    return SettingsError([DocumentProblem(DocumentPlace(file, 1, 1), message, "Unreadable")])


def _check_mode(file: str) -> Iterator[DocumentProblem]:
    """Warn of a file that every user of the machine can read or, worse, write."""
    mode = os.stat(file).st_mode
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        verb = "change" if mode & stat.S_IWOTH else "read"
        message = f"every user of this machine can {verb} the tokens: chmod 600 {file}"
        yield DocumentProblem(DocumentPlace(file, 1, 1), message, "Exposed", "warning")


def _identify(file: str) -> _Version:
    try:
        found = os.stat(file)
    except OSError:
        return _Version()
    return _Version(found.st_ino, found.st_size, found.st_mtime_ns)
