"""`hyperfleet edit`: change something in your editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import Command, connected
from hyperfleet.cli.comparison import compare
from hyperfleet.cli.editor import Draft
from hyperfleet.cli.failures import Failure
from hyperfleet.cli.manifests import Manifest, parse_manifests, write_manifest
from hyperfleet.cli.output.documents import write_yaml
from hyperfleet.cli.resources import NODE_POOL, Target, cluster_names, find, operations_on, parse_target
from hyperfleet.cli.session import Session, pass_session
from hyperfleet.errors import HyperFleetError

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, Resource

_HEAD: Final = """\
# Change spec and labels of {target}, save, and leave the editor. Lines that begin with # are left out.
# To leave everything as it is, save nothing, or an empty file.
"""
_INSTEAD: Final = "take it over below; or remove these lines and save, to have it as it stands below instead"


@click.command(
    "edit",
    cls=Command,
    examples=[
        ("in the editor that VISUAL or EDITOR names, else vi", "hyperfleet edit cluster payments"),
        ("a node pool", "EDITOR='code --wait' hyperfleet edit nodepool payments/workers"),
    ],
    codes={
        exits.OK: "changed, or left as it was",
        exits.FAILED: "the editor failed, or what was edited was wrong and was given up; nothing was changed",
        exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND],
        exits.REFUSED: exits.MEANINGS[exits.REFUSED],
    },
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME | KIND/NAME | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@connected
@pass_session
def edit(session: Session, what: tuple[str, ...], cluster: str | None) -> None:
    """Change spec and labels of a cluster or a node pool in your editor.

    What is wrong is shown in the file, which is offered again; so is what somebody else changed meanwhile, and nobody's
    change is lost. Save it without a change to give up; then the file is kept.
    """
    target = parse_target(what, cluster)
    with session.open() as fleet:
        resource = find(fleet, target)
        desk = _Desk(session, fleet, _name(fleet, target, resource), resource)
        desk.work()


class _Note(Struct, frozen=True):
    """A word on what was edited; of its `line`, counted from the first one that is no comment, if it is about one."""

    text: str
    line: int | None = None


class _Desk:
    """The back and forth between somebody's editor and the server."""

    def __init__(self, session: Session, fleet: Fleet, target: Target, resource: Resource) -> None:
        self._session = session
        self._fleet = fleet
        self._target = target
        self._base = resource  # as it was when what is edited was made of it
        self._draft = Draft(session.environment, resource.name or resource.id)

    def work(self) -> None:
        """Offer the resource until it is changed, left as it is, or given up."""
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
                self._session.say(f"What was edited is in {self._draft.file}")
            raise
        finally:
            if not keeps:
                self._draft.discard()
        if keeps:
            raise Failure(f"given up; nothing was changed, and what was edited is in {self._draft.file}", exits.FAILED)
        self._session.say("Left as it was.")

    def _try(self, text: str) -> list[_Note]:
        """Send what was edited; return why that cannot be, if it cannot."""
        manifests, problems = parse_manifests(text, str(self._target))
        if problems:
            return [_note(text, each.place.line, each.message) for each in problems]
        if len(manifests) != 1 or not self._is_about(manifests[0]):
            return [_Note(f"this must be one manifest, that of {self._target}: kind and name cannot be changed")]
        (manifest,) = manifests
        if manifest.spec == self._base.spec and (manifest.labels or {}) == self._base.labels:
            self._session.say("Left as it was.")
            return []
        return self._send(manifest, text)

    def _send(self, manifest: Manifest, text: str) -> list[_Note]:
        from hyperfleet.client.errors import Conflict, Invalid

        operations: Any = operations_on(self._fleet, self._target.noun)
        generation = self._base.generation
        try:
            operations.replace(self._base, manifest.spec, labels=manifest.labels or {}, generation=generation)
        except Invalid as error:
            told = [_note(text, manifest.place(each.pointer or "").line, each.message) for each in error.errors]
            return told or [_Note(str(error))]
        except Conflict as error:
            if error.code != "GenerationConflict":
                raise
            return self._learn()
        self._session.write(f"{self._target} edited")
        return []

    def _is_about(self, manifest: Manifest) -> bool:
        same_cluster = self._target.cluster == manifest.cluster or manifest.cluster is None
        return (manifest.noun, manifest.name, same_cluster) == (self._target.noun, self._base.name, True)

    def _learn(self) -> list[_Note]:
        """Take in what somebody else made of it; whoever saves again has seen that."""
        operations: Any = operations_on(self._fleet, self._target.noun)
        before, self._base = self._base, operations.get(self._base)
        theirs = compare(_document(self._target, before), _document(self._target, self._base))
        told = f"somebody else changed it meanwhile; it is at generation {self._base.generation} now. Their change:"
        return [
            _Note(told),
            *(_Note(f"  {line}") for line in theirs),
            _Note(_INSTEAD),
        ]


def _name(fleet: Fleet, target: Target, resource: Resource) -> Target:
    """Name a resource as fully as other commands write it."""
    names = cluster_names(fleet, [resource]) if target.noun is NODE_POOL else {}
    return Target(target.noun, resource.name, names.get(resource.metadata.cluster_id or ""))


def _document(target: Target, resource: Resource) -> dict[str, Any]:
    return write_manifest(target.noun, resource.name, resource.spec, resource.labels, target.cluster)


def _write(target: Target, resource: Resource) -> str:
    return write_yaml(_document(target, resource)) + "\n"


def _note(text: str, line: int, message: str) -> _Note:
    return _Note(message, line - _head(text))


def _offer(notes: list[_Note], edited: str) -> str:
    """Put what is wrong above what was edited, with the lines as they will be; what was said before goes."""
    below = len(notes) + 2
    told = [f"line {each.line + below}: {each.text}" if each.line else each.text for each in notes]
    head = "".join(f"# {line}".rstrip() + "\n" for line in ("This was not taken:", *told, ""))
    return head + _body(edited)


def _head(text: str) -> int:
    """Return how many lines of comments there are before anything else."""
    lines = text.splitlines()
    return next((index for index, line in enumerate(lines) if not line.startswith("#")), len(lines))


def _body(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[_head(text) :])
