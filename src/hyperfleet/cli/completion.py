"""`hyperfleet completion`: shell completion of commands, options, their values, and names of resources.

The script that a shell loads calls the same command with `--answer` to get the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Final

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from hyperfleet.cli.candidates import find_candidates
from hyperfleet.cli.command import CliCommand
from hyperfleet.cli.session import CliSession, pass_session
from hyperfleet.errors import HyperFleetError

_PROGRAM: Final = "hyperfleet"


class _ResourceCompletion:
    """Completes what click does not know: names of resources, contexts, phases."""

    cli: click.Command
    ctx_args: MutableMapping[str, Any]
    prog_name: str

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return the candidates for what is being typed."""
        from click.shell_completion import _resolve_context, _resolve_incomplete

        context = _resolve_context(self.cli, self.ctx_args, self.prog_name, args)
        place, begun = _resolve_incomplete(context, args, incomplete)
        session = context.ensure_object(CliSession)
        if isinstance(place, click.Parameter):
            found = find_candidates(session, context, place, begun)
            if found is not None:
                return [CompletionItem(each) for each in found]
        return place.shell_complete(context, begun)


# The scripts are click's, except for the command they call; tests run them in a real shell.


class _Bash(_ResourceCompletion, BashComplete):
    source_template = BashComplete.source_template.replace(
        "%(complete_var)s=bash_complete $1", "$1 completion bash --answer"
    )

    @staticmethod
    def _check_version() -> None:
        """Skip the check: the script may be for another machine."""


class _Zsh(_ResourceCompletion, ZshComplete):
    source_template = ZshComplete.source_template.replace(
        "%(complete_var)s=zsh_complete %(prog_name)s", "%(prog_name)s completion zsh --answer"
    )


class _Fish(_ResourceCompletion, FishComplete):
    source_template = FishComplete.source_template.replace("env %(complete_var)s=fish_complete ", "env ").replace(
        "COMP_CWORD=(commandline -t) %(prog_name)s",
        "COMP_CWORD=(commandline -t) %(prog_name)s completion fish --answer",
    )


_SHELLS: Final[Mapping[str, type[ShellComplete]]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


@click.command(
    "completion",
    cls=CliCommand,
    examples=[
        ("bash, for this terminal", "source <(hyperfleet completion bash)"),
        (
            "… and for every new one",
            "hyperfleet completion bash > ~/.local/share/bash-completion/completions/hyperfleet",
        ),
        ("zsh", 'hyperfleet completion zsh > "${fpath[1]}/_hyperfleet"'),
        ("fish", "hyperfleet completion fish > ~/.config/fish/completions/hyperfleet.fish"),
    ],
)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.option("--answer", is_flag=True, hidden=True, help="Return candidates; the script calls this.")
@pass_session
def completion(session: CliSession, shell: str, answer: bool) -> None:
    """Write a script for shell completion of commands, options, values, and names.

    Names of clusters, node pools and adapters come from the server, which has a second to answer; bash must be 4.4 or
    newer.
    """
    from hyperfleet.cli import command

    shell_completion = _SHELLS[shell](command, {"obj": session}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE")
    if not answer:
        session.write(shell_completion.source().strip())
        return
    try:
        session.write(shell_completion.complete())
    except (HyperFleetError, click.ClickException, OSError):
        return  # an error message would disturb the command line being typed
