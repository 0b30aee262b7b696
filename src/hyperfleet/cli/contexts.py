"""The file with contexts: servers, and how to connect to each of them.

    currentContext: prod
    contexts:
      prod:
        server: https://fleet.example.com
        tokenFile: /run/secrets/fleet
      here:
        server: http://127.0.0.1:8000

It is `config.yaml` in $HYPERFLEET_CONFIG_HOME, else in `hyperfleet` of $XDG_CONFIG_HOME, else in ~/.config/hyperfleet.
`hyperfleet config` shows and changes it; tokens are never printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from hyperfleet.errors import DocumentError


class ServerContext(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """One server and how to connect to it."""

    server: str
    token: str | None = None
    token_file: str | None = None
    ca: str | None = None  # a file with the certificates to trust
    cert: str | None = None  # the client certificate, and its key if it is in another file
    key: str | None = None
    insecure: bool = False  # accept any certificate: only for tests

    def __repr__(self) -> str:
        """Show everything but the token."""
        return f"Context({self.server!r}{', with a token' if self.token or self.token_file else ''})"


class Config(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The content of the file."""

    current_context: str | None = None
    contexts: Mapping[str, ServerContext] = field(default_factory=dict)


def locate(environment: Mapping[str, str]) -> Path:
    """Return the path of the file, whether it exists or not."""
    if own := environment.get("HYPERFLEET_CONFIG_HOME"):
        return Path(own).expanduser() / "config.yaml"
    general = environment.get("XDG_CONFIG_HOME")
    directory = Path(general) if general else Path(environment.get("HOME") or "~").expanduser() / ".config"
    return directory / "hyperfleet" / "config.yaml"


def read_config(file: Path) -> Config:
    """Read the file; a missing one is empty. Raise `DocumentError` with everything that is wrong in it."""
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error
    if not text.strip():
        return Config()
    from hyperfleet.documents import load

    loaded = load(text, Config, file=str(file))
    if loaded.value is None:
        raise DocumentError(loaded.problems)
    return loaded.value


def _unreadable(file: Path, error: OSError | UnicodeDecodeError) -> DocumentError:
    from hyperfleet.documents import DocumentPlace, DocumentProblem

    reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
    return DocumentError([DocumentProblem(DocumentPlace(str(file), 0, 0), f"cannot be read: {reason}", "Unreadable")])
