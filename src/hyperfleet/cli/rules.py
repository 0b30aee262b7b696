"""`hyperfleet rules`: check, simulate and apply policies, evaluate expressions, draw the phases of a policy."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hyperfleet.cli.command import HELP, CliCommand
from hyperfleet.cli.exits import FALSE, MEANINGS, OK, USAGE
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.rules_apply import apply, rollback
from hyperfleet.cli.rules_simulate import simulate
from hyperfleet.cli.rules_versions import versions

if TYPE_CHECKING:
    from hyperfleet.aggregation.policy import Policy
    from hyperfleet.expr import Program

_INPUT = click.Path(exists=True, dir_okay=False, allow_dash=True)
_WRONG = MEANINGS[USAGE]


@click.group(name="rules", context_settings=dict(HELP))
def rules() -> None:
    """Check and apply policies, and evaluate expressions.

    A policy defines which adapters a cluster requires and which rules compute its conditions.
    """


rules.add_command(simulate)
rules.add_command(apply)
rules.add_command(versions)
rules.add_command(rollback)


@rules.command(
    cls=CliCommand,
    examples=[
        ("a sum", "hyperfleet rules eval '1 + 2 * 3'"),
        ("with values", "hyperfleet rules eval 'all(nodes, {.ready})' --data nodes.json"),
        ("… and the value of every part", "hyperfleet rules eval 'len(nodes) >= 2' --data nodes.json --explain"),
        (
            "type-check it for a policy",
            "hyperfleet rules eval 'adapters[\"dns\"].available' --policy-names --check",
        ),
    ],
    codes={FALSE: "the result is false", USAGE: f"{_WRONG}; the expression is wrong"},
)
@click.argument("expression")
@click.option("--data", type=_INPUT, help="A JSON file with the variables of the expression; - for standard input.")
@click.option("--policy-names", is_flag=True, help="Type-check with the names of a policy's rules; no data needed.")
@click.option("--explain", is_flag=True, help="Show the value of every part.")
@click.option("--check", is_flag=True, help="Only compile and show the type of the result.")
def eval(expression: str, data: str | None, policy_names: bool, explain: bool, check: bool) -> None:  # noqa: A001
    """Evaluate an expression of the expr language.

    The result is printed as one line of JSON; values that JSON does not have, such as +Inf, are printed as strings.
    """
    from hyperfleet.expr import to_json

    if explain and (check or policy_names):
        raise click.UsageError("--explain needs values: it cannot be combined with --check or --policy-names.")
    if policy_names:
        click.echo(_compile_for_policy(expression).result_type.name)
        return
    values = _read_values(data)
    program = _compile(expression, values)
    if check:
        click.echo(program.result_type.name)
        return
    if explain:
        click.echo(program.explain(values).render())
    result = program.evaluate(values)
    click.echo(to_json(result))
    sys.exit(FALSE if result is False else OK)


def _compile(expression: str, values: Mapping[str, Any]) -> Program:
    """Compile for the given values; the time is read once."""
    from hyperfleet.expr import ExprOptions, ExprTypeError, infer_schema
    from hyperfleet.expr import compile as compile_expr

    now = datetime.now(UTC)
    try:
        return compile_expr(expression, infer_schema(values), options=ExprOptions(clock=lambda: now))
    except ExprTypeError:
        if not values and _is_for_policy(expression):
            click.echo("Hint: these are names of a policy's rules; try --policy-names.", err=True)
        raise


def _compile_for_policy(expression: str) -> Program:
    from hyperfleet.aggregation.vocabulary import SCHEMA
    from hyperfleet.expr import compile as compile_expr

    return compile_expr(expression, SCHEMA)


def _is_for_policy(expression: str) -> bool:
    from hyperfleet.expr import ExprError

    try:
        _compile_for_policy(expression)
    except ExprError:
        return False
    return True


def _read_values(file: str | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        values = msgspec.json.decode(_read_text(file))
    except msgspec.DecodeError as error:
        raise click.UsageError(f"{file} is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise click.UsageError(f"{file} must contain an object whose keys are the names of variables")
    return values


@rules.command(
    cls=CliCommand,
    examples=[("the examples", "hyperfleet rules check examples/policies/*.yaml")],
    codes={OK: "all are valid", FALSE: "a file has errors (with --strict: or warnings)", USAGE: _WRONG},
)
@click.argument("files", nargs=-1, required=True, type=_INPUT)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
def check(files: tuple[str, ...], strict: bool) -> None:
    """Check policy files: all errors with their positions, and warnings about probable mistakes."""
    from hyperfleet.aggregation.loading.policy_loader import check_policies

    bad = False
    for file in files:
        loading = check_policies(_read_text(file), file)
        for problem in loading.problems:
            click.echo(str(problem))
        errors = sum(problem.level == "error" for problem in loading.problems)
        warnings = len(loading.problems) - errors
        click.echo(f"{file}: {count_of(errors, 'error')}, {count_of(warnings, 'warning')}", err=True)
        bad |= bool(errors or (strict and warnings))
    sys.exit(FALSE if bad else OK)


@rules.command(
    cls=CliCommand,
    examples=[("the guide's policy", "hyperfleet rules diagram examples/policies/guide.yaml")],
    codes={USAGE: f"{_WRONG}; the policy is wrong"},
)
@click.argument("file", type=_INPUT)
def diagram(file: str) -> None:
    """Draw the phases that a policy can reach, as Mermaid state diagrams.

    It tries combinations of adapter states; a comment says if there were too many to try all.
    """
    from hyperfleet.aggregation.linting.diagram import draw_phases, reachable_phases
    from hyperfleet.aggregation.linting.enumeration import enumerate_states

    for policy in _load(file):
        tried = enumerate_states(policy)
        click.echo(f"%% policy {policy.name}: reaches {', '.join(reachable_phases(tried))}")
        click.echo(draw_phases(tried), nl=False)


@rules.command(cls=CliCommand, examples=[("for an editor", "hyperfleet rules schema > policy.schema.json")])
def schema() -> None:
    """Print the JSON Schema of policy files, for editors."""
    from hyperfleet.aggregation.loading.policy_document import policy_schema

    click.echo(_pretty(policy_schema()))


def _pretty(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _load(file: str) -> tuple[Policy, ...]:
    from hyperfleet.aggregation.loading.policy_loader import load_policies

    return load_policies(_read_text(file), file).policies


def _read_text(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8")
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is not UTF-8 text: {error}") from error
