"""Programs that tests start: where `.ci/servers` puts what it builds, and how to run one without root's rights.

Nothing here knows pytest.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


def find_program(name: str, variable: str) -> str | None:
    """Return the program that a variable names, or one on the path, or one that `.ci/servers` built."""
    built = build_directory(name) / name
    return os.environ.get(variable) or shutil.which(name) or (str(built) if os.access(built, os.X_OK) else None)


def build_directory(name: str) -> Path:
    """Return where `.ci/servers` puts a program that it builds: a folder of the user's cache, one per version."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "hyperfleet" / f"{name}-{read_version(name)}"


def read_version(name: str) -> str:
    """Return the version of a program that `.ci/versions` asks for; empty if it does not name it."""
    found = re.search(rf"^{name.upper()}_VERSION=(.+)$", (ROOT / ".ci/versions").read_text("utf-8"), re.MULTILINE)
    return found[1] if found else ""


def without_privileges(command: Sequence[str]) -> list[str]:
    """Return a command to which the permissions of files apply, also when root runs it."""
    drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    return [*drop, *command]
