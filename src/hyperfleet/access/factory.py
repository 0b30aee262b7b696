"""Build an authenticator from settings. The composition root and `serve --check` call this."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from hyperfleet.access.authenticator import TokenAuthenticator
from hyperfleet.access.issuer import Issuer
from hyperfleet.access.tokens import Tokens
from hyperfleet.documents import DocumentPlace, DocumentProblem
from hyperfleet.errors import SettingsError

_LOG: Final = logging.getLogger(__name__)


def build_authenticator(
    token_file: str | None, issuers: Sequence[Issuer], now: Callable[[], float]
) -> TokenAuthenticator | None:
    """Return the authenticator; None if neither a token file nor issuers are configured.

    All files are read, and `SettingsError` has every problem of all of them. No issuer is contacted yet.
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
    authenticator = _with_issuers(tokens, issuers, now, problems)
    if problems:
        raise SettingsError(problems)
    return authenticator


def _with_issuers(
    tokens: Tokens | None, issuers: Sequence[Issuer], now: Callable[[], float], problems: list[DocumentProblem]
) -> TokenAuthenticator:
    if not issuers:
        return TokenAuthenticator(now, tokens)
    from hyperfleet.access import jwt, keys  # noqa: PLC0415  # they load cryptography, which tokens do not need

    known = {}
    for issuer in issuers:
        if issuer.secret_file:
            _LOG.warning("tokens of %s are accepted with a shared secret (HS256): for development only", issuer.issuer)
        try:
            known[issuer.issuer] = (issuer, keys.keys_of(issuer))
        except ValueError as error:
            place = DocumentPlace(issuer.jwks or issuer.secret_file or "", 1, 1)
            problems.append(DocumentProblem(place, str(error), "Unreadable"))
    return TokenAuthenticator(now, tokens, jwt.Verifier(known), [each for _, each in known.values()])
