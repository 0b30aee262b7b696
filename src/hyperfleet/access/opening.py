"""Putting a doorkeeper together from what is set. The composition root and `serve --check` call this."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from hyperfleet.access.doorkeeper import TokenDoorkeeper
from hyperfleet.access.issuer import Issuer
from hyperfleet.access.tokens import Tokens
from hyperfleet.documents import DocumentPlace, DocumentProblem
from hyperfleet.errors import SettingsError

_LOG: Final = logging.getLogger(__name__)


def open_doorkeeper(
    token_file: str | None, issuers: Sequence[Issuer], now: Callable[[], float]
) -> TokenDoorkeeper | None:
    """Return who asks callers for their tokens; None if nobody is to be asked.

    All files are read, and `SettingsError` has every problem of all of them; no issuer is asked for anything yet.
    """
    if token_file is None and not issuers:
        return None
    problems: list[DocumentProblem] = []
    tokens = None
    if token_file is not None:
        try:
            tokens = Tokens(token_file, now)
        except SettingsError as error:
            problems += error.problems
    doorkeeper = _with_issuers(tokens, issuers, now, problems)
    if problems:
        raise SettingsError(problems)
    return doorkeeper


def _with_issuers(
    tokens: Tokens | None, issuers: Sequence[Issuer], now: Callable[[], float], problems: list[DocumentProblem]
) -> TokenDoorkeeper:
    if not issuers:
        return TokenDoorkeeper(now, tokens)
    from hyperfleet.access import jwt, keys  # noqa: PLC0415  # they load cryptography, which tokens do not need

    known = {}
    for issuer in issuers:
        if issuer.secret_file:
            _LOG.warning("tokens of %s are taken with a shared secret (HS256): for development only", issuer.issuer)
        try:
            known[issuer.issuer] = (issuer, keys.keys_of(issuer))
        except ValueError as error:
            place = DocumentPlace(issuer.jwks or issuer.secret_file or "", 1, 1)
            problems.append(DocumentProblem(place, str(error), "Unreadable"))
    return TokenDoorkeeper(now, tokens, jwt.Verifier(known), [each for _, each in known.values()])
