"""Running the user's editor on a temporary file."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hyperfleet.cli.exits import FAILED
from hyperfleet.cli.failures import CommandFailure, Misuse

_DEFAULT: Final = "vi"


class EditorFile:
    """A temporary file for the editor, which may be opened several times."""

    def __init__(self, environment: Mapping[str, str], name: str) -> None:
        """Create the file, readable only by its owner."""
        self._editor = environment.get("VISUAL") or environment.get("EDITOR") or _DEFAULT
        self._environment = environment
        descriptor, path = tempfile.mkstemp(prefix=f"hyperfleet-{name}-", suffix=".yaml")
        os.close(descriptor)
        self.file = Path(path)

    def edit(self, text: str) -> str:
        """Open the editor on a text; return the edited text."""
        self.file.write_text(text, "utf-8")
        try:
            command = [*shlex.split(self._editor), str(self.file)]
            done = subprocess.run(command, env=dict(self._environment), check=False)  # noqa: S603  # the user's own editor
        except ValueError as error:
            raise Misuse(f"EDITOR is not a valid command line: {error}") from error
        except OSError as error:
            raise Misuse(f"the editor {command[0]} cannot be run: {error.strerror}; set EDITOR") from error
        if done.returncode:
            raise CommandFailure(f"the editor {self._editor} ended with {done.returncode}; nothing was changed", FAILED)
        try:
            return self.file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise Misuse(f"the edited file cannot be read: {reason}") from error

    def discard(self) -> None:
        """Remove the file."""
        self.file.unlink(missing_ok=True)
