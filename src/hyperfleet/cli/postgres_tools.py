"""pg_dump and pg_restore: PostgreSQL's own tools do it better than we could. Where they are missing, we say how."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from hyperfleet.cli import exits
from hyperfleet.cli.failures import Failure
from hyperfleet.settings import conceal

if TYPE_CHECKING:
    from hyperfleet.cli.session import Session

_MISSING: Final = "{tool} is not installed here. Install PostgreSQL's client programs, or run it elsewhere:\n  {line}"


def dump(session: Session, url: str, file: Path) -> None:
    """Let pg_dump write a database to a file, which gets its name when it is complete."""
    draft = file.with_name(f".{file.name}-{os.getpid()}")
    options = ["--format=custom", "--no-owner", f"--file={draft}"]
    try:
        _run(session, "pg_dump", [*options, f"--dbname={_without_password(url)}"], url)
        draft.replace(file)
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}", exits.USAGE) from error
    finally:
        draft.unlink(missing_ok=True)


def load(session: Session, url: str, file: Path) -> None:
    """Let pg_restore read a file into a database, all of it or nothing; one with our tables in it is refused by it."""
    options = ["--no-owner", "--single-transaction", "--exit-on-error", f"--dbname={_without_password(url)}"]
    _run(session, "pg_restore", [*options, str(file)], url)


def _run(session: Session, tool: str, arguments: list[str], url: str) -> None:
    found = shutil.which(tool, path=session.environment.get("PATH"))
    if found is None:
        line = " ".join([tool, *arguments])
        raise Failure(_MISSING.format(tool=tool, line=line), exits.UNAVAILABLE)
    password = urlsplit(url).password
    secret = {"PGPASSWORD": unquote(password)} if password else {}  # others can see arguments
    done = subprocess.run(  # noqa: S603  # what is found under this name is what is meant
        [found, *arguments],
        env={**session.environment, **secret},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = conceal(done.stderr.strip() or f"{tool} ended with {done.returncode}")
        raise Failure(said, exits.UNAVAILABLE)


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    credentials, at, hosts = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{credentials.partition(':')[0]}{at}{hosts}"))
