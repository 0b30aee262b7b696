"""`hyperfleet edit`: change a resource in your editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.comparison import compare
from hyperfleet.cli.editor import EditorFile
from hyperfleet.cli.failures import CommandFailure
from hyperfleet.cli.manifests import Manifest, parse_manifests, write_manifest
from hyperfleet.cli.output.documents import write_yaml
from hyperfleet.cli.resources import NODE_POOL, ResourceTarget, cluster_names, find, operations_on, parse_target
from hyperfleet.cli.session import CliSession, pass_session
from hyperfleet.errors import HyperFleetError

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, Resource

_HEAD: Final = """\
# Change spec and labels of {target}, save, and leave the editor. Lines that begin with # are ignored.
# To cancel, leave the file unchanged, or save an empty one.
"""
_INSTEAD: Final = "merge it below; or delete these lines and save, to overwrite it with what is below"


@click.command(
    "edit",
    cls=CliCommand,
    examples=[
        ("in the editor that VISUAL or EDITOR names, else vi", "hyperfleet edit cluster payments"),
        ("a node pool", "EDITOR='code --wait' hyperfleet edit nodepool payments/workers"),
    ],
    codes={
        exits.OK: "changed, or left unchanged",
        exits.FAILED: "the editor failed, or an invalid edit was cancelled; nothing was changed",
        exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND],
        exits.REFUSED: exits.MEANINGS[exits.REFUSED],
    },
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME | KIND/NAME | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@connected
@pass_session
def edit(session: CliSession, what: tuple[str, ...], cluster: str | None) -> None:
    """Change spec and labels of a cluster or a node pool in your editor.

    If the edit is invalid, or if another user has changed the resource meanwhile, the editor opens again with the
    errors or the other change as comments. Save without a change to cancel; then the file is kept.
    """
    target = parse_target(what, cluster)
    with session.open() as fleet:
        resource = find(fleet, target)
        edit_session = _EditSession(session, fleet, _name(fleet, target, resource), resource)
        edit_session.work()


class _Note(Struct, frozen=True):
    """A comment on the edited file; `line` counts from the first line that is not a comment."""

    text: str
    line: int | None = None


class _EditSession:
    """The loop between the editor and the server."""

    def __init__(self, session: CliSession, fleet: Fleet, target: ResourceTarget, resource: Resource) -> None:
        self._session = session
        self._fleet = fleet
        self._target = target
        self._base = resource  # the version that is being edited
        self._draft = EditorFile(session.environment, resource.name or resource.id)

    def work(self) -> None:
        """Open the editor until the resource is changed, left unchanged, or the edit is cancelled."""
        keeps = False
        try:
            offered = _HEAD.format(target=self._target) + _write(self._target, self._base)
            while True:
                edited = self._draft.edit(offered)
                if edited == offered or not _body(edited).strip():
                    break
                keeps = True
                notes = self._try(edited)
                if not notes:
                    keeps = False
                    return
                offered = _offer(notes, edited)
        except HyperFleetError:
            if keeps:
                self._session.message(f"The edited file is {self._draft.file}")
            raise
        finally:
            if not keeps:
                self._draft.discard()
        if keeps:
            raise CommandFailure(
                f"cancelled; nothing was changed, and the edited file is {self._draft.file}", exits.FAILED
            )
        self._session.message("Nothing was changed.")

    def _try(self, text: str) -> list[_Note]:
        """Send the edit; return why it is refused, if it is."""
        manifests, problems = parse_manifests(text, str(self._target))
        if problems:
            return [_note(text, each.place.line, each.message) for each in problems]
        if len(manifests) != 1 or not self._is_about(manifests[0]):
            return [_Note(f"expected one manifest, that of {self._target}: kind and name cannot be changed")]
        (manifest,) = manifests
        if manifest.spec == self._base.spec and (manifest.labels or {}) == self._base.labels:
            self._session.message("Nothing was changed.")
            return []
        return self._send(manifest, text)

    def _send(self, manifest: Manifest, text: str) -> list[_Note]:
        from hyperfleet.client.errors import Conflict, Invalid

        operations: Any = operations_on(self._fleet, self._target.noun)
        generation = self._base.generation
        try:
            operations.replace(self._base, manifest.spec, labels=manifest.labels or {}, generation=generation)
        except Invalid as error:
            lines = [_note(text, manifest.place(each.pointer or "").line, each.message) for each in error.errors]
            return lines or [_Note(str(error))]
        except Conflict as error:
            if error.code != "GenerationConflict":
                raise
            return self._refresh()
        self._session.write(f"{self._target} edited")
        return []

    def _is_about(self, manifest: Manifest) -> bool:
        same_cluster = self._target.cluster == manifest.cluster or manifest.cluster is None
        return (manifest.noun, manifest.name, same_cluster) == (self._target.noun, self._base.name, True)

    def _refresh(self) -> list[_Note]:
        """Load the version of another user, and return their change as comments; saving again overwrites it."""
        operations: Any = operations_on(self._fleet, self._target.noun)
        before, self._base = self._base, operations.get(self._base)
        theirs = compare(_document(self._target, before), _document(self._target, self._base))
        lines = f"another user has changed it; it is at generation {self._base.generation} now. Their change:"
        return [
            _Note(lines),
            *(_Note(f"  {line}") for line in theirs),
            _Note(_INSTEAD),
        ]


def _name(fleet: Fleet, target: ResourceTarget, resource: Resource) -> ResourceTarget:
    """Return the full name of a resource, as other commands write it."""
    names = cluster_names(fleet, [resource]) if target.noun is NODE_POOL else {}
    return ResourceTarget(target.noun, resource.name, names.get(resource.metadata.cluster_id or ""))


def _document(target: ResourceTarget, resource: Resource) -> dict[str, Any]:
    return write_manifest(target.noun, resource.name, resource.spec, resource.labels, target.cluster)


def _write(target: ResourceTarget, resource: Resource) -> str:
    return write_yaml(_document(target, resource)) + "\n"


def _note(text: str, line: int, message: str) -> _Note:
    return _Note(message, line - _head(text))


def _offer(notes: list[_Note], edited: str) -> str:
    """Put comments above the edited text, with line numbers in the new file; earlier comments are removed."""
    below = len(notes) + 2
    lines = [f"line {each.line + below}: {each.text}" if each.line else each.text for each in notes]
    head = "".join(f"# {line}".rstrip() + "\n" for line in ("This was refused:", *lines, ""))
    return head + _body(edited)


def _head(text: str) -> int:
    """Return the number of leading comment lines."""
    lines = text.splitlines()
    return next((index for index, line in enumerate(lines) if not line.startswith("#")), len(lines))


def _body(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[_head(text) :])
