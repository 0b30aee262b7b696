"""Where the audit log is kept: a file that is appended to, or the log of the server."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Final

_LOG: Final = logging.getLogger(__name__)
_AUDIT: Final = logging.getLogger("hyperfleet.audit")
_MODE: Final = 0o640  # it names callers: not readable for everybody
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class LogJournal:
    """Writes records to the log, whatever its level."""

    def __init__(self) -> None:
        """Enable the logger at INFO, so that records show even if the server logs warnings only."""
        _AUDIT.setLevel(logging.INFO)

    def write(self, lines: Sequence[bytes]) -> None:
        """Log records."""
        for line in lines:
            _AUDIT.info("%s", line.decode())

    def reopen(self) -> None:
        """Do nothing: the log is not ours."""


class FileJournal:
    """Appends records to a file; several processes may share it. What cannot be written is logged as an error.

    Each batch of records is one `write`, so no record of another process gets into the midst of it. Nothing waits for
    the disk: a machine that loses power may lose the last records, but not the writes that they describe.
    """

    def __init__(self, path: str) -> None:
        """Open or create the file; raise `OSError` if that fails."""
        self._path = path
        self._file = os.open(path, _FLAGS, _MODE)
        self._is_torn = False  # the last record in the file is incomplete

    def write(self, lines: Sequence[bytes]) -> None:
        """Append records."""
        text = b"".join([b"%b\n" % line for line in lines])
        if self._is_torn:
            text = b"\n" + text
        try:
            written = os.write(self._file, text)
            while written < len(text):  # a nearly full disk takes a part
                self._is_torn = True
                written += os.write(self._file, text[written:])
        except OSError as error:
            _LOG.error("the audit log %s cannot be written: %s", self._path, error.strerror)
            for line in lines:
                _LOG.error("missing audit record: %s", line.decode())
        else:
            self._is_torn = False

    def reopen(self) -> None:
        """Open the file of that name again; if that fails, keep the open one."""
        try:
            opened = os.open(self._path, _FLAGS, _MODE)
        except OSError as error:
            _LOG.error("the audit log %s cannot be opened: %s; the old file is used", self._path, error.strerror)
            return
        os.close(self._file)
        self._file, self._is_torn = opened, False

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
