"""Files that are written at once or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hyperfleet.cli.failures import Misuse


def write_private(file: Path, text: str, *, is_lasting: bool = True) -> None:
    """Write a file that only its owner can read, in one step: nobody ever sees half of it, or nothing.

    What is not `is_lasting` is soon written again, and not worth waiting for the disk.
    """
    try:
        target = file.resolve()  # what is a link stays one
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")  # with mode 0600
        draft = Path(name)
        try:
            with open(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
                if is_lasting:
                    stream.flush()
                    os.fsync(stream.fileno())
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise Misuse(f"{file} cannot be written: {error.strerror}") from error
