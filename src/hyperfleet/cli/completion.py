"""`hyperfleet completion`: let your shell complete commands, options, their values, and names of resources.

The script that a shell loads asks the very same command, with `--answer`, what may come next.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Final

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from hyperfleet.cli.candidates import find_candidates
from hyperfleet.cli.command import Command
from hyperfleet.cli.session import Session, pass_session
from hyperfleet.errors import HyperFleetError

_PROGRAM: Final = "hyperfleet"


class _Knowing:
    """Completes what click cannot know: names of resources, of contexts, of phases."""

    cli: click.Command
    ctx_args: MutableMapping[str, Any]
    prog_name: str

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return what may stand where somebody is typing."""
        from click.shell_completion import _resolve_context, _resolve_incomplete

        context = _resolve_context(self.cli, self.ctx_args, self.prog_name, args)
        place, begun = _resolve_incomplete(context, args, incomplete)
        session = context.ensure_object(Session)
        if isinstance(place, click.Parameter):
            found = find_candidates(session, context, place, begun)
            if found is not None:
                return [CompletionItem(each) for each in found]
        return place.shell_complete(context, begun)


# The scripts are click's, but for whom they ask; tests run them in a real shell.


class _Bash(_Knowing, BashComplete):
    source_template = BashComplete.source_template.replace(
        "%(complete_var)s=bash_complete $1", "$1 completion bash --answer"
    )

    @staticmethod
    def _check_version() -> None:
        """Leave it to those who load it: the script may be for another machine."""


class _Zsh(_Knowing, ZshComplete):
    source_template = ZshComplete.source_template.replace(
        "%(complete_var)s=zsh_complete %(prog_name)s", "%(prog_name)s completion zsh --answer"
    )


class _Fish(_Knowing, FishComplete):
    source_template = FishComplete.source_template.replace("env %(complete_var)s=fish_complete ", "env ").replace(
        "COMP_CWORD=(commandline -t) %(prog_name)s",
        "COMP_CWORD=(commandline -t) %(prog_name)s completion fish --answer",
    )


_SHELLS: Final[Mapping[str, type[ShellComplete]]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


@click.command(
    "completion",
    cls=Command,
    examples=[
        ("bash, for this terminal", "source <(hyperfleet completion bash)"),
        ("… and for all to come", "hyperfleet completion bash > ~/.local/share/bash-completion/completions/hyperfleet"),
        ("zsh", 'hyperfleet completion zsh > "${fpath[1]}/_hyperfleet"'),
        ("fish", "hyperfleet completion fish > ~/.config/fish/completions/hyperfleet.fish"),
    ],
)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.option("--answer", is_flag=True, hidden=True, help="Say what may come next; the script asks this.")
@pass_session
def completion(session: Session, shell: str, answer: bool) -> None:
    """Write a script that lets a shell complete commands, options, values, and names.

    Names of clusters, node pools and adapters are asked from the server, which has a second to answer; bash must be 4.4
    or newer.
    """
    from hyperfleet.cli import command

    shell_completion = _SHELLS[shell](command, {"obj": session}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE")
    if not answer:
        session.write(shell_completion.source().strip())
        return
    try:
        session.write(shell_completion.complete())
    except (HyperFleetError, click.ClickException, OSError):
        return  # somebody is typing: no word of ours would be welcome
