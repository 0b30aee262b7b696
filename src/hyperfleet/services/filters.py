"""Filters of lists: parses query parameters into terms over the tokens that `facets` computes.

`search` reads every parameter of a list and calls this for those that filter. Apart from `facets`, this is the only
module that knows the form of tokens.

    parameter      several values     example
    labelSelector  all must hold      env=prod,tier in (web,db),!legacy
    conditions     all must hold      Ready!=True,Available   (a type alone: it is True)
    phase          one must hold      Failed,Degraded or !Ready
    flapping       one must hold      Ready,phase, any or !any
    adapterState   all must hold      dns:Failed|Running      (Unreported: in no other state)
    blockedBy      -                  dns
    reason         one for each type  AdaptersFailed (that of Ready) or Available:AdaptersMissing
    q              all must hold      eu-west prod            (each is the beginning of a word of the resource)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from hyperfleet.aggregation import BodyProblem
from hyperfleet.aggregation.availability import READY
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.model.condition import MAX_REASON, MAX_TYPE, REASON_PATTERN, STATUSES, TYPE_PATTERN
from hyperfleet.model.event import PHASE_SUBJECT
from hyperfleet.model.phase import PHASES
from hyperfleet.model.report import ADAPTER_PATTERN, AVAILABLE, MAX_ADAPTER_NAME
from hyperfleet.model.status import ADAPTER_STATES, AdapterState
from hyperfleet.ports import TokenTerm
from hyperfleet.services.facets import whole_words
from hyperfleet.services.parameters import Parameters, split_list
from hyperfleet.services.selectors import Requirement, SelectorWord, parse_selector

MAX_TERMS: Final = 50  # each is a subquery
MAX_ITEMS: Final = 100  # of one list with commas, as for the values of a selector
MAX_GROUPS: Final = 4  # each multiplies the number of groups

_ALWAYS_THERE: Final = frozenset({AVAILABLE, READY})  # conditions that every resource has
_ANYTHING: Final = "any"  # asked for like a condition that flaps
_STALE: Final = "Stale"  # written like a state, though an adapter is stale in addition to its state
_UNREPORTED: Final[AdapterState] = "Unreported"
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_MAX_LABEL_NAME: Final = 63  # also of a value
_MAX_LABEL_PREFIX: Final = 253

_LABEL_KEY_RULE: Final = "a key of letters, digits and -_. with an optional DNS prefix and /"
_LABEL_VALUE_RULE: Final = f"a value of at most {_MAX_LABEL_NAME} letters, digits and -_."
_TYPE_RULE: Final = "a condition type such as Ready"
_SUBJECT_RULE: Final = f"{_TYPE_RULE}, {PHASE_SUBJECT} or {_ANYTHING}"
_REASON_RULE: Final = "a reason such as AdaptersFailed"
_ADAPTER_RULE: Final = "the name of an adapter such as dns"


class GroupBy(Struct, frozen=True):
    """What to count by: names as the caller wrote them, and the token prefix of each; or the errors."""

    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    errors: tuple[BodyProblem, ...] = ()


def read_terms(given: Parameters) -> tuple[TokenTerm, ...]:
    """Parse every filter; a resource must satisfy all of them."""
    terms: list[TokenTerm] = []
    for name, read in FILTERS.items():
        count = len(terms)
        terms += read(given, name)
        if count <= MAX_TERMS < len(terms):
            given.refuse(name, "TooMany", f"{name} makes {len(terms)} filters in all; at most {MAX_TERMS} are allowed")
    return tuple(terms)


def blocked_by(adapter: str) -> TokenTerm:
    """Return the term for resources that wait for an adapter."""
    return TokenTerm((f"b:{adapter}",))


# ── one parameter each ───────────────────────────────────────────────────────────────────────────────────────────


def _read_labels(given: Parameters, name: str) -> list[TokenTerm]:
    return [_label_term(requirement) for requirement in _requirements(given, name, _check_label)]


def _label_term(requirement: Requirement) -> TokenTerm:
    key = requirement.key.text
    if requirement.operator in ("exists", "absent"):
        return TokenTerm((f"l:{key}=",), is_negated=requirement.operator == "absent", is_prefix=True)
    return _any_of(requirement, f"l:{key}=")


def _check_label(given: Parameters, name: str, requirement: Requirement) -> bool:
    bad = [value for value in requirement.values if not _is_label_value(value.text)]
    if not _is_label_key(requirement.key.text):
        _refuse_word(given, name, requirement.key, _LABEL_KEY_RULE)
    for value in bad:
        _refuse_word(given, name, value, _LABEL_VALUE_RULE)
    return not bad and _is_label_key(requirement.key.text)


def _read_conditions(given: Parameters, name: str) -> list[TokenTerm]:
    return [_condition_term(requirement) for requirement in _requirements(given, name, _check_condition)]


def _condition_term(requirement: Requirement) -> TokenTerm:
    """Return the term for a status; a missing condition is neither True, False nor Unknown."""
    prefix = f"c:{requirement.key.text}="
    if requirement.operator in ("exists", "absent"):
        term = TokenTerm((f"{prefix}True",), is_negated=requirement.operator == "absent")
    else:
        term = _any_of(requirement, prefix)
    return (
        _positive(term, [f"{prefix}{status}" for status in STATUSES]) if requirement.key.text in _ALWAYS_THERE else term
    )


def _positive(term: TokenTerm, tokens: Iterable[str]) -> TokenTerm:
    """Replace a negated term by the other tokens, where every resource has one of them: an index can find those."""
    return TokenTerm(tuple([token for token in tokens if token not in term.tokens])) if term.is_negated else term


def _check_condition(given: Parameters, name: str, requirement: Requirement) -> bool:
    bad = [value for value in requirement.values if value.text not in STATUSES]
    if not _is_type(requirement.key.text):
        _refuse_word(given, name, requirement.key, _TYPE_RULE)
    for value in bad:
        _refuse_choice(given, name, value, STATUSES)
    return not bad and _is_type(requirement.key.text)


def _requirements(
    given: Parameters, name: str, check: Callable[[Parameters, str, Requirement], bool]
) -> list[Requirement]:
    """Parse every selector of a parameter; return the valid requirements."""
    found: list[Requirement] = []
    for text in given.all(name):
        requirements, faults = parse_selector(text)
        for fault in faults:
            given.refuse(name, "BadFormat", fault.message, fault.at)
        found += [requirement for requirement in requirements if check(given, name, requirement)]
    return found


def _any_of(requirement: Requirement, prefix: str) -> TokenTerm:
    tokens = dict.fromkeys([prefix + value.text for value in requirement.values])
    return TokenTerm(tuple(tokens), is_negated=requirement.operator == "notin")


def _read_phases(given: Parameters, name: str) -> list[TokenTerm]:
    wanted: dict[bool, dict[str, None]] = {False: {}, True: {}}  # by whether it is negated
    for is_negated, phase in _negatable_words(given, name):
        if phase.text in PHASES:
            wanted[is_negated][f"p:{phase.text}"] = None
        else:
            _refuse_choice(given, name, phase, PHASES)
    phases = [f"p:{phase}" for phase in PHASES]
    return [_positive(TokenTerm(tuple(tokens), is_negated), phases) for is_negated, tokens in wanted.items() if tokens]


def _read_flapping(given: Parameters, name: str) -> list[TokenTerm]:
    """Parse what flaps: condition types, `phase` or `any`."""
    wanted: dict[bool, dict[str, None]] = {False: {}, True: {}}  # by whether it is negated
    for is_negated, subject in _negatable_words(given, name):
        if _is_type(subject.text):
            wanted[is_negated][subject.text] = None
        else:
            _refuse_word(given, name, subject, _SUBJECT_RULE)
    return [_flapping_term(subjects, is_negated) for is_negated, subjects in wanted.items() if subjects]


def _flapping_term(subjects: Collection[str], is_negated: bool) -> TokenTerm:
    if _ANYTHING in subjects:
        return TokenTerm(("f:",), is_negated, is_prefix=True)
    return TokenTerm(tuple([f"f:{subject}" for subject in subjects]), is_negated)


def _read_states(given: Parameters, name: str) -> list[TokenTerm]:
    terms = [_state_term(given, name, word) for word in _words(given, name)]
    return [term for term in terms if term is not None]


def _state_term(given: Parameters, name: str, word: SelectorWord) -> TokenTerm | None:
    adapter, colon, states = word.text.partition(":")
    if not colon or not _is_adapter(adapter):
        _refuse_word(given, name, word, "an adapter, a colon and a state, such as dns:Failed")
        return None
    wanted: dict[str, None] = {}
    at = word.at + len(adapter) + 1
    for piece in states.split("|"):
        state = piece.strip()
        if state not in (*ADAPTER_STATES, _STALE):
            _refuse_choice(given, name, SelectorWord(state, at), (*ADAPTER_STATES, _STALE))
        wanted[state] = None
        at += len(piece) + 1
    if _UNREPORTED in wanted and _STALE in wanted:  # this would be an `or` of two terms, which a query cannot express
        message = f"{_UNREPORTED} and {_STALE} cannot be alternatives; ask for one after the other"
        given.refuse(name, "Exclusive", message, word.at)
    return _in_one_of(adapter, wanted)


def _in_one_of(adapter: str, states: Collection[str]) -> TokenTerm:
    """Return the term for states; Unreported means no other state, because an optional adapter has no token."""
    if _UNREPORTED in states:
        others = [state for state in ADAPTER_STATES if state not in states]
        return TokenTerm(tuple([f"a:{adapter}={state}" for state in others]), is_negated=True)
    return TokenTerm(tuple([f"s:{adapter}" if state == _STALE else f"a:{adapter}={state}" for state in states]))


def _read_blocker(given: Parameters, name: str) -> list[TokenTerm]:
    adapter = given.one(name)
    if adapter is None:
        return []
    if not _is_adapter(adapter):
        _refuse_word(given, name, SelectorWord(adapter, 1), _ADAPTER_RULE)
    return [blocked_by(adapter)]


def _read_reasons(given: Parameters, name: str) -> list[TokenTerm]:
    """Parse reasons; a condition has only one, so several of one type are alternatives."""
    by_type: dict[str, dict[str, None]] = {}
    for word in _words(given, name):
        first, colon, rest = word.text.partition(":")
        type_, reason = (first, rest) if colon else (READY, first)
        if not _is_type(type_):
            _refuse_word(given, name, SelectorWord(type_, word.at), _TYPE_RULE)
        elif len(reason) > MAX_REASON or not REASON_PATTERN.fullmatch(reason):
            at = word.at + len(first) + 1 if colon else word.at
            _refuse_word(given, name, SelectorWord(reason, at), _REASON_RULE)
        else:
            by_type.setdefault(type_, {})[f"r:{type_}={reason}"] = None
    return [TokenTerm(tuple(tokens)) for tokens in by_type.values()]


def _read_words(given: Parameters, name: str) -> list[TokenTerm]:
    """Parse words for text search; each must be the beginning of some word of the resource."""
    texts = given.all(name)
    words = dict.fromkeys([word for text in texts for word in whole_words(text)])
    if texts and not words:
        given.refuse(name, "BadFormat", f"{quote(texts[0])} has no letter or digit to search for")
    return [TokenTerm((f"w:{word}",), is_prefix=True) for word in words]


FILTERS: Final[dict[str, Callable[[Parameters, str], list[TokenTerm]]]] = {
    "labelSelector": _read_labels,
    "conditions": _read_conditions,
    "phase": _read_phases,
    "flapping": _read_flapping,
    "adapterState": _read_states,
    "blockedBy": _read_blocker,
    "reason": _read_reasons,
    "q": _read_words,
}


# ── groups ───────────────────────────────────────────────────────────────────────────────────────────────────────

_GROUPS: Final = (
    "phase",
    "reason",
    "reason:Type",
    "condition:Type",
    "label:key",
    "adapter:name",
    "blockedBy",
    "flapping",
)


def read_group_by(*values: str) -> GroupBy:
    """Parse what a summary counts by; no values: no groups."""
    given = Parameters({"groupBy": values} if values else {})
    given.refuse_unknown(("groupBy",))
    names: dict[str, str] = {}  # by prefix
    words = _words(given, "groupBy")
    for word in words:
        prefix = _prefix_of(word.text)
        if prefix is None:
            _refuse_group(given, word)
        elif prefix in names:
            message = f"{quote(word.text)} counts by the same as {quote(names[prefix])} before it; give one of them"
            given.refuse("groupBy", "Repeated", message, word.at)
        else:
            names[prefix] = word.text
    if len(words) > MAX_GROUPS:
        given.refuse("groupBy", "TooMany", f"groupBy has {len(words)} names; at most {MAX_GROUPS} are allowed")
    if given.errors:
        return GroupBy(errors=tuple(given.errors))
    return GroupBy(tuple(names.values()), tuple(names))


def _prefix_of(name: str) -> str | None:
    """Return the prefix of a group's tokens; the rest of a token is the value to count by."""
    what, colon, which = name.partition(":")
    if not colon:
        return {"phase": "p:", "reason": f"r:{READY}=", "blockedBy": "b:", "flapping": "f:"}.get(what)
    grouping = _GROUPINGS.get(what)
    if grouping is None or not grouping.is_name(which):
        return None
    return f"{grouping.letter}:{which}="


def _refuse_group(given: Parameters, word: SelectorWord) -> None:
    """Refuse the name behind the colon or, if the group itself is unknown, list the known ones."""
    what = word.text.partition(":")[0]
    grouping = _GROUPINGS.get(what)
    if grouping is None:
        _refuse_choice(given, "groupBy", word, _GROUPS)
    else:
        _refuse_word(given, "groupBy", word, f"{what}: and {grouping.rule}")


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_type(text: str) -> bool:
    return len(text) <= MAX_TYPE and TYPE_PATTERN.fullmatch(text) is not None


def _is_adapter(text: str) -> bool:
    return len(text) <= MAX_ADAPTER_NAME and ADAPTER_PATTERN.fullmatch(text) is not None


def _is_label_key(text: str) -> bool:
    """Tell whether a text can be the key of a label; its syntax is that of condition types."""
    prefix, _, name = text.rpartition("/")
    return len(prefix) <= _MAX_LABEL_PREFIX and len(name) <= _MAX_LABEL_NAME and _is_type(text)


def _is_label_value(text: str) -> bool:
    return len(text) <= _MAX_LABEL_NAME and _LABEL_VALUE.fullmatch(text) is not None


class _Grouping(Struct, frozen=True):
    letter: str
    is_name: Callable[[str], bool]
    rule: str


_GROUPINGS: Final = {
    "reason": _Grouping("r", _is_type, _TYPE_RULE),
    "condition": _Grouping("c", _is_type, _TYPE_RULE),
    "label": _Grouping("l", _is_label_key, _LABEL_KEY_RULE),
    "adapter": _Grouping("a", _is_adapter, _ADAPTER_RULE),
}


def _words(given: Parameters, name: str) -> list[SelectorWord]:
    """Return the items of a list with commas; the caller refuses empty ones."""
    words = [SelectorWord(piece, at) for text in given.all(name) for at, piece in split_list(text)]
    if len(words) > MAX_ITEMS:
        given.refuse(name, "TooMany", f"{name} has {len(words)} items; at most {MAX_ITEMS} are allowed")
    return words[:MAX_ITEMS]


def _negatable_words(given: Parameters, name: str) -> Iterator[tuple[bool, SelectorWord]]:
    """Yield the items of a list with commas, and whether each is negated by a `!`."""
    for word in _words(given, name):
        is_negated = word.text.startswith("!")
        yield is_negated, SelectorWord(word.text[is_negated:].lstrip(), word.at + is_negated)


def _refuse_word(given: Parameters, name: str, word: SelectorWord, expected: str) -> None:
    found = f"found {quote(word.text)}" if word.text else "there is nothing here"
    given.refuse(name, "BadFormat", f"{found}, expected {expected}", word.at)


def _refuse_choice(given: Parameters, name: str, word: SelectorWord, choices: Sequence[str]) -> None:
    guess = suggest(word.text, tuple(choices))
    given.refuse(name, "NotAllowed", f"found {quote(word.text)}, expected one of {', '.join(choices)}{guess}", word.at)
