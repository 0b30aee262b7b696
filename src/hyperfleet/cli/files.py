"""Writing files atomically."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hyperfleet.cli.failures import Misuse


def write_private(file: Path, text: str, *, is_lasting: bool = True) -> None:
    """Write a file atomically, readable only by its owner.

    Without `is_lasting` it is not synced to disk, because it will be written again soon.
    """
    try:
        target = file.resolve()  # keep symbolic links
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
