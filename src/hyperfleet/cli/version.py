"""`hyperfleet version`: the versions of this program and of the server."""

from __future__ import annotations

import click

from hyperfleet import __version__
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_document
from hyperfleet.cli.session import CliSession, pass_session


@click.command(
    "version",
    cls=CliCommand,
    examples=[
        ("both versions", "hyperfleet version"),
        ("only that of this program, without a request", "hyperfleet version --client"),
    ],
)
@click.option("--client", "is_client_only", is_flag=True, help="Only the version of this program.")
@document_options()
@connected
@pass_session
def version(session: CliSession, is_client_only: bool, output: Output) -> None:
    """Show the versions of this program and of the server."""
    versions = {"client": __version__}
    if output.format.is_table:
        session.write(f"Client: {__version__}")  # before the request: the server may be away
    if not is_client_only:
        with session.open() as fleet:
            versions["server"] = fleet.version()
        if output.format.is_table:
            session.write(f"Server: {versions['server']} at {session.connection.server}")
    if not output.format.is_table:
        print_document(session, output, versions)
