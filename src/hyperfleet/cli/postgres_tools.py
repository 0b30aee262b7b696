"""Running pg_dump and pg_restore; if they are missing, the command line to run is shown."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from hyperfleet.cli import exits
from hyperfleet.cli.failures import CommandFailure
from hyperfleet.settings import conceal

if TYPE_CHECKING:
    from hyperfleet.cli.session import CliSession

_MISSING: Final = "{tool} is not installed here. Install PostgreSQL's client programs, or run it elsewhere:\n  {line}"


def dump(session: CliSession, url: str, file: Path) -> None:
    """Dump a database to a file with pg_dump; the file gets its name when it is complete."""
    draft = file.with_name(f".{file.name}-{os.getpid()}")
    options = ["--format=custom", "--no-owner", f"--file={draft}"]
    try:
        _run(session, "pg_dump", [*options, f"--dbname={_without_password(url)}"], url)
        draft.replace(file)
    except OSError as error:
        raise CommandFailure(f"{file}: {error.strerror}", exits.USAGE) from error
    finally:
        draft.unlink(missing_ok=True)


def load(session: CliSession, url: str, file: Path) -> None:
    """Load a file into a database with pg_restore, atomically; it fails if the tables already exist."""
    options = ["--no-owner", "--single-transaction", "--exit-on-error", f"--dbname={_without_password(url)}"]
    _run(session, "pg_restore", [*options, str(file)], url)


def _run(session: CliSession, tool: str, arguments: list[str], url: str) -> None:
    found = shutil.which(tool, path=session.environment.get("PATH"))
    if found is None:
        line = " ".join([tool, *arguments])
        raise CommandFailure(_MISSING.format(tool=tool, line=line), exits.UNAVAILABLE)
    password = urlsplit(url).password
    secret = {"PGPASSWORD": unquote(password)} if password else {}  # not an argument: other users can see those
    done = subprocess.run(  # noqa: S603  # the tool found in PATH
        [found, *arguments],
        env={**session.environment, **secret},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        output = conceal(done.stderr.strip() or f"{tool} ended with {done.returncode}")
        raise CommandFailure(output, exits.UNAVAILABLE)


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    credentials, at, hosts = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{credentials.partition(':')[0]}{at}{hosts}"))
