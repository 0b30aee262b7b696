"""Which adapter files a command is about: `-f FILE|FOLDER`, or the two files of a Go adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from hyperfleet.cli.command import bundle
from hyperfleet.cli.failures import Misuse

if TYPE_CHECKING:
    from hyperfleet.adapter.loading import LoadedAdapter
    from hyperfleet.document_problem import Level


class AdapterFiles(Struct, frozen=True):
    """The files that were named on the command line."""

    file: Path | None = None
    config: Path | None = None
    task: Path | None = None

    def load(self, env: Mapping[str, str], *, missing_env: Level = "error") -> tuple[LoadedAdapter, ...]:
        """Load the adapters, with every problem of them."""
        from hyperfleet.adapter.loading import LoadOptions, load_adapter, load_folder, load_pair
        from hyperfleet.errors import UnreadableFile

        options = LoadOptions(env, missing_env)
        try:
            if self.file is None:
                return (load_pair(self._need(self.config, "-c"), self._need(self.task, "-t"), options),)
            return load_folder(self.file, options) if self.file.is_dir() else (load_adapter(self.file, options),)
        except UnreadableFile as error:
            raise Misuse(str(error)) from error

    @staticmethod
    def _need(path: Path | None, flag: str) -> Path:
        if path is None:
            raise Misuse(
                f"name a file or folder with -f, or both files of a Go adapter with -c and -t ({flag} missing)"
            )
        return path


def _make(file: Path | None, config: Path | None, task: Path | None) -> AdapterFiles:
    if file is not None and (config is not None or task is not None):
        raise Misuse("-f names a whole adapter: it cannot be combined with -c or -t")
    return AdapterFiles(file, config, task)


def adapter_file_options(function: Callable[..., Any]) -> Any:
    """Give a command `-f`, `-c` and `-t`; it gets them as `files`."""
    path = click.Path(path_type=Path)
    return bundle(
        "files",
        _make,
        click.option("-f", "--file", "file", type=path, metavar="FILE|FOLDER", help="An adapter file, or a folder."),
        click.option("-c", "--config", "config", type=path, metavar="FILE", help="The adapter config of a Go adapter."),
        click.option("-t", "--task-config", "task", type=path, metavar="FILE", help="The task config of a Go adapter."),
    )(function)
