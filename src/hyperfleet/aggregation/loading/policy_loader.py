"""From YAML text to policies: everything that is wrong is found at once, and placed; on any error nothing loads.

Called at start-up, on reload and by `hyperfleet rules check`. The text is an argument: reading files is for others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation.culprits import mentions_field
from hyperfleet.aggregation.linting.lint import lint
from hyperfleet.aggregation.loading.policy_checks import check_document
from hyperfleet.aggregation.loading.policy_document import PhasesDocument, PolicyDocument
from hyperfleet.aggregation.loading.rule_compiler import RuleCompiler, flapping_limit
from hyperfleet.aggregation.policy import (
    IN_PROGRESS_REASONS,
    WAITING_REASONS,
    ExprRule,
    FlappingLimit,
    PhaseRule,
    Policy,
    PolicySet,
    Rule,
    Selector,
    SummaryRule,
    change_reasons,
)
from hyperfleet.documents import DocumentPlace, DocumentProblem, Places, YamlDocument, bind, has_errors, read, salvage
from hyperfleet.errors import PolicyError
from hyperfleet.model.kind import Kinds

# Increase this when the same policy gets another meaning (a new default reason, another guard), so that every stored
# status is computed again.
SEMANTICS_VERSION: Final = 2
BUILT_IN_KINDS: Final = Kinds()


class Loading(Struct, frozen=True):
    """The result of loading: the policies (None on any error) and every problem, including warnings."""

    policies: PolicySet | None
    problems: tuple[DocumentProblem, ...]


def load_policies(text: str, file: str = "policy.yaml", kinds: Kinds = BUILT_IN_KINDS) -> PolicySet:
    """Load the policies of a YAML text, one per document; raise `PolicyError` with all errors."""
    loading = check_policies(text, file, kinds, with_lint=False)
    if loading.policies is None:
        raise PolicyError([problem for problem in loading.problems if problem.level == "error"])
    return loading.policies


def check_policies(
    text: str, file: str = "policy.yaml", kinds: Kinds = BUILT_IN_KINDS, *, with_lint: bool = True
) -> Loading:
    """Load policies; return all errors and warnings."""
    reading = read(text, file)
    problems = list(reading.problems)
    policies: list[Policy] = []
    for document in reading.documents:
        policy, found = _load_document(document, with_lint=with_lint)
        problems += found
        if policy is not None:
            problems += _selector_problems(policy, policies, kinds, Places(document))
            problems += _pubsub_problems(policy, policies, Places(document))
            policies.append(policy)
    if not reading.documents and not problems:
        # An empty policy would require nothing: the whole fleet would look ready.
        problems.append(DocumentProblem(DocumentPlace(file, 1, 1), "there is no policy in this file", "Empty"))
    found_once = {(problem.place.line, problem.place.column, problem.message): problem for problem in problems}
    in_order = tuple(sorted(found_once.values()))
    return Loading(None if has_errors(in_order) else PolicySet(policies), in_order)


def _load_document(document: YamlDocument, *, with_lint: bool) -> tuple[Policy | None, list[DocumentProblem]]:
    places = Places(document)
    bound = bind(document, PolicyDocument)
    content = bound.value or salvage(document, PolicyDocument)
    if content is None:
        return None, list(bound.problems)
    limit = flapping_limit(content.flapping, FlappingLimit())
    compiler = RuleCompiler(places, limit, content.phases)
    rules = compiler.compile(content.cluster_conditions)
    problems = [*bound.problems, *check_document(content, places), *compiler.problems]
    if has_errors(tuple(problems)):
        return None, problems
    policy = _policy(content, rules, limit)
    if with_lint:
        problems += (
            DocumentProblem(places.value(finding.pointer), finding.message, finding.code, "warning")
            for finding in lint(policy)
        )
    return policy, problems


def _policy(content: PolicyDocument, rules: tuple[Rule, ...], limit: FlappingLimit) -> Policy:
    settings = content.policies
    applies = content.applies_to
    trees = [rule.by.program.tree for rule in rules if isinstance(rule.by, ExprRule)]
    return Policy(
        name=content.name or applies.kind.lower(),
        digest=_digest(content),
        required=content.required_adapters,
        optional=content.optional_adapters,
        rules=rules,
        phases=_phases(content.phases),
        selector=Selector(applies.kind, frozenset(applies.tenants), applies.labels),
        stale_after=settings.stale_threshold,
        stale_action=settings.stale_action,
        missing_after=content.default_behavior.timeout,
        max_retries=settings.max_retries,
        retry_interval=settings.retry_interval,
        reads_conditions=any(mentions_field(tree, "conditions") for tree in trees),
        reads_data=any(mentions_field(tree, "data") for tree in trees),
        reads_times=any(mentions_field(tree, "lastUpdated") for tree in trees),
        reads_children=any(isinstance(rule.by, SummaryRule) and rule.by.over == "nodePools" for rule in rules),
        waiting_reasons=change_reasons(WAITING_REASONS, settings.waiting_reasons),
        in_progress_reasons=change_reasons(IN_PROGRESS_REASONS, settings.in_progress_reasons),
        flapping=limit,
        pubsub=None if content.pubsub is None else content.pubsub.block,
    )


def _phases(document: PhasesDocument) -> dict[str, PhaseRule]:
    phases = {}
    for name in document.__struct_fields__:
        phase = getattr(document, name)
        if phase is not None:
            required = tuple((condition.type, condition.status) for condition in phase.required_conditions)
            phases[name.capitalize()] = PhaseRule(phase.description, required)
    return phases


def _digest(content: PolicyDocument) -> str:
    """Return a digest of what affects a status; a change of anything else recomputes nothing."""
    deciding = replace(
        content,
        name="",
        pubsub=None,
        policies=replace(content.policies, max_retries=0, retry_interval=None),
    )
    encoded = msgspec.json.encode((SEMANTICS_VERSION, deciding), order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:16]


def _pubsub_problems(policy: Policy, others: Iterable[Policy], places: Places) -> Iterator[DocumentProblem]:
    """Find a second block `pubsub` that differs from the first: events go to one broker."""
    for other in others:
        if None not in (policy.pubsub, other.pubsub) and policy.pubsub != other.pubsub:
            message = f"another document of this file has a different pubsub: {other.name}"
            yield DocumentProblem(places.value("/pubsub"), message, "NotAllowed")


def _selector_problems(
    policy: Policy, others: Iterable[Policy], kinds: Kinds, places: Places
) -> Iterator[DocumentProblem]:
    """Find a policy for a kind that does not exist, and two for the same resources."""
    selector = policy.selector
    if kinds.get(selector.kind) is None:
        known = ", ".join(kind.name for kind in kinds)
        yield DocumentProblem(
            places.value("/appliesTo/kind"), f"unknown kind {selector.kind}; known are {known}", "UnknownKind"
        )
    for other in others:
        if other.selector.kind == selector.kind and other.selector.labels == selector.labels:
            shared = sorted(other.selector.tenants & selector.tenants)
            if shared or other.selector.tenants == selector.tenants:
                whom = f"the tenants {', '.join(shared)}" if shared else "the same resources"
                message = f"another policy in this file already applies to {whom}: {other.name}"
                yield DocumentProblem(places.value("/appliesTo"), message, "DuplicateSelector")
