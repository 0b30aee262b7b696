"""What an author of a policy is told: every sentence of the checks and of the lint, word for word."""

from __future__ import annotations

import pytest

from hyperfleet.aggregation.loading.policy_loader import check_policies, load_policies
from hyperfleet.aggregation.policy import IN_PROGRESS_REASONS
from hyperfleet.errors import PolicyError

BAD = """\
requiredAdapters: [dns, dns]
optionalAdapters: [logging, dns]
clusterConditions:
  - {type: Ready, evaluate: {expr: 'true'}}
  - {type: phase, evaluate: {expr: 'true'}}
  - {type: Same, evaluate: {expr: 'true'}}
  - {type: Same, evaluate: {expr: 'true'}}
  - {type: NoKind}
  - {type: TwoKinds, evaluate: {expr: 'true'}, mirror: {adapter: dns}}
  - {type: S1, summary: {over: requiredAdapters, types: [Health]}}
  - {type: S2, summary: {over: requiredAdapters, type: Health, negative: [Health, Other]}}
  - {type: S3, summary: {type: Health}}
  - {type: S6, summary: {over: requiredAdapters, type: Health, adapter: dns}}
  - {type: S4, summary: {types: [Available, Ready, Same, Nobody]}}
  - type: S5
    summary:
      adapter: dns
      types: [A]
      negative: [B]
      ignoreIfMissing: [C]
  - {type: M1, mirror: {adapter: nobody}}
  - {type: T1, evaluate: {expr: 'true'}, templates: {true: {reason: A, message: 'x {{Bad}} {{.Worse}}'}}}
  - {type: E1, evaluate: {expr: 'now() > now()'}}
  - {type: E2, evaluate: {expr: 'olderThan(adapters["dns"], adapters["dns"].reason)'}}
  - {type: E3, evaluate: {expr: 'olderThan(adapters["dns"], "soon")'}}
phases:
  ready: {requiredConditions: [{type: Nothing, status: "True"}]}
  deleting: {requiredConditions: [{type: Ready, status: "True"}]}
policies: {waitingReasons: [Baking, "!Waiting"], inProgressReasons: [Baking, "!Waiting"]}
"""

NOW = (
    "now() is not allowed in a policy: a status must not depend on when it is read; "
    'use olderThan(adapters["name"], "7m")'
)
KNOWN_VARIABLES = (
    "FailedCount, FailedAdapterNames, TotalCount, UnhealthyAdapterNames, WorkingCount, AdapterFailureMessage, "
    "FirstFailureMessage, AwaitedAdapterNames, Error, Summary"
)
RULES = "phase, Same, NoKind, TwoKinds, S1, S2, S3, S6, S4, S5, M1, T1, E1, E2, E3"  # as they stand above, each once
EXPECTED = [
    (1, "DuplicateAdapter", "the adapter dns is already in requiredAdapters"),
    (2, "DuplicateAdapter", "the adapter dns is already in requiredAdapters"),
    (4, "ReservedType", "Ready is computed by HyperFleet itself and cannot be a rule; choose another type"),
    (5, "ReservedType", "phase means the phase in a history; choose another type"),
    (7, "DuplicateType", "there is already a rule for Same"),
    (8, "RuleKind", "a rule needs one of evaluate, summary or mirror; none is given"),
    (9, "RuleKind", "a rule needs one of evaluate, summary or mirror; evaluate and mirror are given"),
    (
        10,
        "SummaryShape",
        "with over, give the one condition type to merge as type, and neither types nor adapter",
    ),
    (11, "SummaryShape", "only Health is merged here"),
    (12, "SummaryShape", "without over, give the condition types to merge as types"),
    (
        13,
        "SummaryShape",
        "with over, give the one condition type to merge as type, and neither types nor adapter",
    ),
    (
        14,
        "UnknownType",
        (
            "Nobody is not a condition that comes before this one; those are Available, Ready, Ready, phase, Same, "
            "Same, NoKind, TwoKinds, S1, S2, S3, S6"
        ),
    ),
    (19, "UnknownType", "B is not in types"),
    (20, "UnknownType", "C is not in types"),
    (21, "UnknownAdapter", "unknown adapter nobody; required or optional are dns, dns, logging, dns"),
    (22, "TemplateVariable", "{{Bad}} is not a variable; write {{.Name}}"),
    (22, "TemplateVariable", f"unknown template variable Worse; known are {KNOWN_VARIABLES}"),
    (23, "Expression", NOW),
    (23, "Expression", NOW),
    (24, "Expression", 'the duration of olderThan must be written out, such as "7m"'),
    (25, "Expression", 'expected a duration such as 10m or 1h30m, found "soon"'),
    (27, "UnknownType", f"unknown condition type Nothing; known are Available, Ready, {RULES}"),
    (
        28,
        "NotAllowed",
        "Deleting is decided by the deletion of the resource alone; only its description can be given",
    ),
    (
        29,
        "DuplicateReason",
        "Baking cannot mean both waiting and in progress; !Baking removes a default of inProgressReasons",
    ),
    (29, "UnknownReason", f"Waiting is not among the defaults: {', '.join(sorted(IN_PROGRESS_REASONS))}"),
]


def test_everything_that_is_wrong_is_said_in_a_sentence() -> None:
    found = check_policies(BAD, "bad.yaml").problems
    assert [(problem.place.line, problem.code, problem.message) for problem in found] == EXPECTED
    assert {(problem.level, problem.place.file) for problem in found} == {("error", "bad.yaml")}


def test_a_file_has_a_name_even_if_nobody_gave_one() -> None:
    assert {problem.place.file for problem in check_policies(BAD).problems} == {"policy.yaml"}
    with pytest.raises(PolicyError) as caught:
        load_policies(BAD)
    assert {problem.place.file for problem in caught.value.problems} == {"policy.yaml"}
    with pytest.raises(PolicyError) as caught:
        load_policies(BAD, "named.yaml")
    assert {problem.place.file for problem in caught.value.problems} == {"named.yaml"}


def test_without_adapters_there_is_none_to_choose_from() -> None:
    (problem,) = check_policies("clusterConditions: [{type: M, mirror: {adapter: dns}}]\n").problems
    assert problem.message == "unknown adapter dns; required or optional are none"


def test_two_policies_for_the_same_resources() -> None:
    (problem,) = check_policies("name: one\n---\nname: two\nappliesTo: {kind: Cluster}\n").problems
    assert (problem.place.line, problem.code) == (4, "DuplicateSelector")
    assert problem.message == "another policy in this file already applies to the same resources: one"


def test_a_policy_without_a_name_is_called_by_its_kind() -> None:
    (problem,) = check_policies("appliesTo: {kind: NodePool}\n---\nname: two\nappliesTo: {kind: NodePool}\n").problems
    assert problem.message.endswith(": nodepool")


LINTED = """\
requiredAdapters: [dns, network]
clusterConditions:
  - {type: NotDone, evaluate: {expr: 'any(requiredAdapters, {.available != "True"})'}}
  - {type: Done, evaluate: {expr: 'all(requiredAdapters, {.available == "True"})'}}
  - {type: Same, evaluate: {expr: 'adapters["nobody"].reported || 1 < 2'}}
  - {type: Seen, evaluate: {expr: 'any(requiredAdapters, {.reported})'}}
phases:
  degraded: {requiredConditions: [{type: Done, status: "True"}, {type: NotDone, status: "True"}]}
  failed: {requiredConditions: [{type: NotDone, status: "True"}]}
  ready: {requiredConditions: [{type: Done, status: "True"}]}
  provisioning: {requiredConditions: [{type: NotDone, status: "True"}, {type: Seen, status: "False"}]}
policies: {staleAction: degraded}
"""

FINDINGS = [
    (5, "ConstantCondition", "Same is True whatever the adapters report"),
    (
        5,
        "UnconfiguredAdapter",
        (
            "Same names the adapter nobody, which is neither required nor optional; it reads as Unknown until "
            "something reports under that name"
        ),
    ),
    (8, "PhaseNeverWanted", "no combination of adapter states gives Done=True, NotDone=True"),
    (
        9,
        "FailedWithoutFailedAdapter",
        'NotDone also matches when no adapter is Failed (for example network Running); test .state == "Failed"',
    ),
    (
        10,
        "ReadyIgnoresGeneration",
        (
            "Done also matches when an adapter has not reported for the current generation (for example dns Outdated, "
            'network Outdated); test .observedGeneration == currentGeneration or .state == "Completed"'
        ),
    ),
    (
        11,
        "ProvisioningWithoutRunningAdapter",
        (
            "NotDone, Seen also matches when no adapter is Running (for example before any adapter has reported); "
            'test .state == "Running"'
        ),
    ),
    (12, "StaleActionWithoutThreshold", "staleAction has no effect without staleThreshold: no adapter is ever stale"),
]


def test_every_finding_of_the_lint_is_a_sentence() -> None:
    found = check_policies(LINTED, "linted.yaml").problems
    assert [(problem.place.line, problem.code, problem.message) for problem in found] == FINDINGS
    assert {problem.level for problem in found} == {"warning"}


def test_a_ready_that_nothing_leads_to() -> None:
    found = check_policies("requiredAdapters: [dns]\nphases: {ready: {description: Fine}}\n").problems
    assert [(problem.code, problem.message) for problem in found] == [
        ("UnreachablePhase", "no combination of adapter states leads to Ready")
    ]


def test_every_condition_behind_ready_is_named() -> None:
    found = check_policies("""
requiredAdapters: [dns]
clusterConditions: [{type: Done, evaluate: {expr: 'adapters["dns"].available == "True"'}}]
phases: {ready: {requiredConditions: [{type: Done, status: "True"}, {type: Available, status: "True"}]}}
""").problems
    assert [problem.message.partition(" also ")[0] for problem in found] == ["Done, Available"]


def test_nothing_to_warn_of() -> None:
    """A policy that requires nobody is always Ready, and a rule cannot be tried where there is nobody."""
    assert check_policies("clusterConditions: [{type: Same, evaluate: {expr: 'true'}}]\n").problems == ()
    assert check_policies("optionalAdapters: [logging]\n").problems == ()


def test_loading_alone_warns_of_nothing() -> None:
    assert check_policies(LINTED, with_lint=False).problems == ()


def test_a_fault_of_an_expression_shows_the_line_and_a_caret() -> None:
    """docs/semantics.md §3: each with line, column and a caret; a fault of a template is shown by its place alone."""
    text = """
clusterConditions:
  - {type: A, evaluate: {expr: 'true && later'}, templates: {true: {reason: A, message: '{{.No}}'}}}
"""
    found = {problem.code: problem.snippet for problem in check_policies(text).problems}
    assert found == {"Expression": " | true && later\n | ........^", "TemplateVariable": ""}


def test_a_template_with_a_fault_on_a_later_line() -> None:
    text = """
clusterConditions:
  - type: A
    evaluate: {expr: 'true'}
    templates:
      true:
        reason: A
        message: |
          One
          Two
          Three {{.No}}
"""
    (problem,) = check_policies(text).problems
    assert (problem.place.line, problem.place.column) == (11, 17)


def test_a_call_with_too_few_arguments_is_a_fault_and_no_crash() -> None:
    (problem,) = check_policies(
        "clusterConditions: [{type: A, evaluate: {expr: 'olderThan(adapters[\"dns\"])'}}]"
    ).problems
    assert problem.code == "Expression"
    assert "not enough arguments" in problem.message


def test_a_rule_must_be_known_to_be_boolean() -> None:
    """What is in `data` may be anything; a comparison says what is meant."""
    text = (
        'requiredAdapters: [dns]\nclusterConditions: [{type: A, evaluate: {expr: \'adapters["dns"].data["ok"]%s\'}}]\n'
    )
    (problem,) = check_policies(text % "", with_lint=False).problems
    assert (problem.code, problem.message.partition(",")[0]) == ("Expression", "expected bool")
    assert check_policies(text % " == true", with_lint=False).problems == ()


@pytest.mark.parametrize(
    ("message", "column", "said"),
    [
        ("{{.TotalCount", 1, "{{ without }}: a variable is written {{.Name}}"),
        ("{{.TotalCount}} and {{.Total and {{", 21, "{{ without }}: a variable is written {{.Name}}"),
    ],
)
def test_braces_that_do_not_close(message: str, column: int, said: str) -> None:
    text = f"""
clusterConditions:
  - type: A
    evaluate: {{expr: 'true'}}
    templates:
      true:
        reason: A
        message: "{message}"
"""
    (problem,) = check_policies(text, with_lint=False).problems
    assert (problem.place.line, problem.place.column - len('        message: "'), problem.message) == (8, column, said)


@pytest.mark.parametrize(
    ("phases", "codes"),
    [
        pytest.param(
            'degraded: {requiredConditions: [{type: Any, status: "True"}]}, '
            'ready: {requiredConditions: [{type: Ready, status: "True"}]}',
            ["UnreachablePhase"],
            id="Degraded always hides it",
        ),
        pytest.param(
            'failed: {requiredConditions: [{type: Always, status: "True"}]}, '
            'ready: {requiredConditions: [{type: Ready, status: "True"}]}',
            ["UnreachablePhase"],
            id="Failed always hides it",
        ),
        pytest.param(
            'ready: {requiredConditions: [{type: Done, status: "True"}, {type: Done, status: "False"}]}',
            ["PhaseNeverWanted", "UnreachablePhase"],
            id="it is wished for in vain",
        ),
        pytest.param(
            'degraded: {requiredConditions: [{type: Done, status: "False"}]}, '
            'ready: {requiredConditions: [{type: Ready, status: "True"}]}',
            [],
            id="another phase does not always hide it",
        ),
        pytest.param("failed: {description: x}, ready: {}", ["UnreachablePhase"], id="it is never wished for"),
    ],
)
def test_a_ready_that_is_hidden(phases: str, codes: list[str]) -> None:
    text = f"""
requiredAdapters: [dns]
clusterConditions:
  - {{type: Any, evaluate: {{expr: 'any(requiredAdapters, {{.available != ""}})'}}}}
  - {{type: Always, evaluate: {{expr: '1 < 2'}}}}
  - {{type: Done, evaluate: {{expr: 'adapters["dns"].state == "Completed"'}}}}
phases: {{{phases}}}
"""
    found = {problem.code for problem in check_policies(text).problems}
    assert sorted(found & {"PhaseNeverWanted", "UnreachablePhase"}) == codes
