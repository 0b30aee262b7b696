"""What schemathesis also checks when it runs against our server. It loads this file by its path.

A request that fits the OpenAPI document must be accepted, or refused with an error that no schema can foresee.
"""

from __future__ import annotations

import json
from typing import Any, Final

import schemathesis
from schemathesis.checks import CheckContext
from schemathesis.core.transport import Response
from schemathesis.generation.case import Case
from schemathesis.specs.openapi.checks import positive_data_acceptance

UNFORESEEABLE: Final = {
    "Contradiction": "two parts of a body differ that must be the same",
    "DuplicateAdapter": "an adapter speaks twice in one body",
    "DuplicateType": "a condition is given twice in one report",
    "Exclusive": "two query parameters, or two values of one, exclude each other",
    "InTheFuture": "the clock decides which times are yet to come",
    "MissingParameter": "of two query parameters, one must be given",
    "Repeated": "an item of a list is given twice",
    "Reversed": "a span ends before it begins",
    "UnknownCondition": "the policy decides which conditions there are",
}
OPAQUE: Final = "continue"  # a parameter whose values only an earlier answer can give
NUMBERS: Final = "an integer of more than 64 bits"  # JSON can spell them, and programs read them differently


@schemathesis.check
def well_formed_is_accepted(ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """Let `positive_data_acceptance` decide, unless the refusal is one that no schema can foresee."""
    if response.status_code == 400 and all(_is_unforeseeable(error) for error in _errors_of(response)):
        return None
    return positive_data_acceptance(ctx, response, case)


def _errors_of(response: Response) -> list[dict[str, str]]:
    problem = json.loads(response.content)
    return list(problem.get("errors", [{"code": problem["code"]}]))


def _is_unforeseeable(error: dict[str, str]) -> bool:
    is_about_numbers = NUMBERS in error.get("message", "")
    return error["code"] in UNFORESEEABLE or error.get("parameter") == OPAQUE or is_about_numbers
