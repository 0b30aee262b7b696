"""The tokens of a file, read again when it changes: so a token is revoked by taking it out."""

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
    """What tells one state of a file from another, a replaced file included."""

    node: int = -1
    size: int = -1
    changed_at: int = -1


class Tokens:
    """What the tokens of a file are good for."""

    def __init__(self, file: str, now: Callable[[], float]) -> None:
        """Read the file; raise `SettingsError` with everything that is wrong with it."""
        self._file = file
        self._now = now
        self._tickets: Mapping[bytes, Ticket] = {}
        self._version = _identify(file)  # before it is read, so that no later change is missed
        self._take(self._read())

    def find(self, digest: bytes) -> Ticket | None:
        """Return what the token with that SHA-256 is good for."""
        return self._tickets.get(digest)

    def refresh(self) -> bool:
        """Read the file again if it has changed; tell whether the tokens in force did. With problems they stay."""
        version = _identify(self._file)
        if version == self._version:
            return False
        self._version = version  # a bad file is complained of once
        try:
            self._take(self._read())
        except SettingsError as error:
            _LOG.error("the tokens were not read again, those in force stay: %s", error)
            return False
        _LOG.info("the tokens were read again: %s in force", len(self._tickets))
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
    """Return what is in a file of tokens; raise `SettingsError` if that cannot be had."""
    try:
        return Path(file).read_bytes().decode()
    except OSError as error:
        raise refuse(file, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise refuse(file, "is not UTF-8 text") from None  # it would quote the text


def refuse(file: str, message: str) -> SettingsError:
    """Say what is wrong with a file as a whole."""
    return SettingsError([DocumentProblem(DocumentPlace(file, 1, 1), message, "Unreadable")])


def _check_mode(file: str) -> Iterator[DocumentProblem]:
    """Warn of a file that everybody on the machine can read or, worse, write."""
    mode = os.stat(file).st_mode
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        verb = "change" if mode & stat.S_IWOTH else "read"
        message = f"everybody on this machine can {verb} the tokens: chmod 600 {file}"
        yield DocumentProblem(DocumentPlace(file, 1, 1), message, "Exposed", "warning")


def _identify(file: str) -> _Version:
    try:
        found = os.stat(file)
    except OSError:
        return _Version()
    return _Version(found.st_ino, found.st_size, found.st_mtime_ns)
