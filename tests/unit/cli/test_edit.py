"""`hyperfleet edit`, with small programs as editors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hyperfleet.cli import exits
from hyperfleet.cli.editor import EditorFile
from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Terminal


@pytest.fixture
def editor(terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    """Put an editor in the place of vi."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return Editor(terminal, tmp_path)


class Editor:
    """Replaces texts in the file it is given, other ones each time; keeps what it was shown."""

    def __init__(self, terminal: Terminal, directory: Path) -> None:
        self._directory = directory
        self._terminal = terminal

    def prepare(self, *turns: dict[str, str]) -> None:
        """Set what to replace in each turn; afterwards nothing is."""
        script = self._directory / "editor.py"
        script.write_text(
            "import pathlib, sys\n"
            f"turns = {turns!r}\n"
            f"seen = pathlib.Path({str(self._directory)!r})\n"
            "turn = len(list(seen.glob('shown-*')))\n"
            "file = pathlib.Path(sys.argv[1])\n"
            "text = file.read_text()\n"
            "(seen / f'shown-{turn}').write_text(text)\n"
            "for before, after in (turns[turn] if turn < len(turns) else {}).items():\n"
            "    assert before in text, before\n"
            "    text = text.replace(before, after)\n"
            "file.write_text(text)\n"
        )
        self._terminal.environment["EDITOR"] = f"{sys.executable} {script}"

    def shown(self, turn: int) -> str:
        """Return what somebody saw in a turn, from 0."""
        return (self._directory / f"shown-{turn}").read_text()

    def kept(self) -> list[Path]:
        """Return the files that were left behind."""
        return list(self._directory.glob("hyperfleet-*"))


def test_the_saved_text_is_applied(terminal: Terminal, scene: Scene, editor: Editor) -> None:
    editor.prepare({"count: 3": "count: 5", "env: prod": "env: test"})
    done = terminal.run("edit", "cluster", "payments")
    assert (done.code, done.out, done.err) == (exits.OK, "cluster/payments edited\n", "")
    assert editor.shown(0) == (
        "# Change spec and labels of cluster/payments, save, and leave the editor."
        " Lines that begin with # are ignored.\n"
        "# To cancel, leave the file unchanged, or save an empty one.\n"
        "kind: Cluster\n"
        "metadata:\n"
        "  name: payments\n"
        "  labels:\n"
        "    env: prod\n"
        "    region: eu-west-1\n"
        "spec:\n"
        "  region: us-east-1\n"
        "  nodes:\n"
        "    count: 3\n"
        "    size: m5.large\n"
    )
    now = scene.server.get(f"/clusters/{scene.clusters['payments']['id']}").json()
    assert (now["generation"], now["spec"]["nodes"]["count"], now["metadata"]["labels"]["env"]) == (2, 5, "test")
    assert editor.kept() == []


def test_a_node_pool_is_named_with_its_cluster(terminal: Terminal, scene: Scene, editor: Editor) -> None:
    editor.prepare({"count: 3": "count: 1"})
    done = terminal.run("edit", "nodepool", "gpu")
    assert (done.code, done.out) == (exits.OK, "nodepool/payments/gpu edited\n")
    assert "clusterName: payments\n" in editor.shown(0)


@pytest.mark.parametrize(
    "turns", [[], [{"count: 3": "count:   3"}]], ids=["nothing was changed", "only how it is written"]
)
def test_without_a_change_nothing_is_sent(
    terminal: Terminal, scene: Scene, editor: Editor, turns: list[dict[str, str]]
) -> None:
    editor.prepare(*turns)
    done = terminal.run("edit", "payments")
    assert (done.code, done.out, done.err) == (exits.OK, "", "Nothing was changed.\n")
    assert editor.kept() == []
    assert scene.server.get(f"/clusters/{scene.clusters['payments']['id']}").json()["generation"] == 1


def test_errors_are_shown_and_the_editor_opens_again(terminal: Terminal, scene: Scene, editor: Editor) -> None:
    editor.prepare(
        {"count: 3": "count: [3"},
        {"count: [3": "count: 3", "name: payments": "nmae: payments"},
        {"nmae: payments": "name: other"},
        {"name: other": "name: payments", "region: us-east-1": "region: 7"},
        {"region: 7": "region: eu-north-1"},
    )
    done = terminal.run("edit", "payments")
    assert (done.code, done.out) == (exits.OK, "cluster/payments edited\n"), done.err
    assert "# This was refused:\n# line 14: this is not valid YAML" in editor.shown(1)
    assert editor.shown(1).splitlines()[14 - 1].strip().startswith("size:"), "the line is that of what is shown"
    assert '# line 7: unknown key "nmae", did you mean "name"?' in editor.shown(2)
    assert editor.shown(2).splitlines()[7 - 1] == "  nmae: payments"
    assert "# expected one manifest, that of cluster/payments: kind and name cannot be changed" in editor.shown(3)
    assert "# line 11: the region of a Cluster is a string" in editor.shown(4)
    assert editor.shown(4).splitlines()[11 - 1] == "  region: 7"
    assert editor.shown(4).count("# This was refused:") == 1, "what was said before is gone"
    assert editor.kept() == []


def test_a_cancelled_edit_keeps_the_file(terminal: Terminal, scene: Scene, editor: Editor) -> None:
    editor.prepare({"count: 3": "count: [3"})
    done = terminal.run("edit", "payments")
    assert (done.code, done.out) == (exits.FAILED, "")
    (kept,) = editor.kept()
    assert done.err == f"Error: cancelled; nothing was changed, and the edited file is {kept}\n"
    assert "count: [3" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


def interfere(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody else set a label while the editor is open for the first time."""
    edit = EditorFile.edit

    def edit_together(draft: EditorFile, text: str) -> str:
        edited = edit(draft, text)
        if "not taken" not in text:
            scene.server.patch(f"/clusters/{scene.clusters['payments']['id']}", {"labels": {"team": "money"}})
        return edited

    monkeypatch.setattr(EditorFile, "edit", edit_together)


def test_a_concurrent_change_is_shown_and_not_lost(
    terminal: Terminal, scene: Scene, editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    payments = scene.clusters["payments"]
    interfere(scene, monkeypatch)
    editor.prepare({"count: 3": "count: 5"}, {"eu-west-1\nspec:": "eu-west-1\n    team: money\nspec:"})
    done = terminal.run("edit", "payments")
    assert (done.code, done.out) == (exits.OK, "cluster/payments edited\n"), done.err
    told = editor.shown(1)
    assert "# another user has changed it; it is at generation 2 now. Their change:\n" in told
    assert "#   +    team: money\n" in told
    assert "    count: 5\n" in told
    now = scene.server.get(f"/clusters/{payments['id']}").json()
    assert (now["spec"]["nodes"]["count"], now["metadata"]["labels"]["team"]) == (5, "money")


def test_a_concurrent_change_can_be_overwritten(
    terminal: Terminal, scene: Scene, editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the comments are removed: that is a word, too."""
    interfere(scene, monkeypatch)
    editor.prepare({"count: 3": "count: 5"}, {"# This was refused:\n": ""})
    done = terminal.run("edit", "payments")
    assert (done.code, done.out) == (exits.OK, "cluster/payments edited\n"), done.err
    now = scene.server.get(f"/clusters/{scene.clusters['payments']['id']}").json()
    assert (now["generation"], "team" in now["metadata"]["labels"]) == (3, False)


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (
            "/nowhere/vi",
            exits.USAGE,
            "Error: the editor /nowhere/vi cannot be run: No such file or directory; set EDITOR",
        ),
        ("false", exits.FAILED, "Error: the editor false ended with 1; nothing was changed"),
        ("vi 'x", exits.USAGE, "Error: EDITOR is not a valid command line: No closing quotation"),
    ],
)
def test_a_failing_editor_is_reported(
    terminal: Terminal, scene: Scene, editor: Editor, command: str, code: int, message: str
) -> None:
    terminal.environment["EDITOR"] = command
    terminal.environment["PATH"] = "/usr/bin:/bin"
    done = terminal.run("edit", "payments")
    assert (done.code, done.out, done.err) == (code, "", f"{message}\n")
    assert editor.kept() == []


def test_a_file_that_is_not_text_is_reported(terminal: Terminal, scene: Scene, editor: Editor) -> None:
    terminal.environment["EDITOR"] = f"{sys.executable} -c \"import sys; open(sys.argv[1], 'wb').write(b'\\xff')\""
    done = terminal.run("edit", "payments")
    assert (done.code, done.err) == (exits.USAGE, "Error: the edited file cannot be read: it is not UTF-8 text\n")


def test_a_resource_being_deleted_cannot_be_edited_and_the_file_is_kept(
    terminal: Terminal, scene: Scene, editor: Editor
) -> None:
    scene.server.delete(f"/clusters/{scene.clusters['search']['id']}")
    editor.prepare({"count: 3": "count: 5"})
    done = terminal.run("edit", "search")
    assert done.code == exits.REFUSED
    (kept,) = editor.kept()
    assert f"The edited file is {kept}\n" in done.err


def test_a_missing_resource_cannot_be_edited(terminal: Terminal, scene: Scene, editor: Editor) -> None:
    editor.prepare()
    done = terminal.run("edit", "cluster", "nowhere")
    assert done.code == exits.NOT_FOUND
    assert not list(editor._directory.glob("shown-*"))
