"""Compile `post`: payloads, and the actions that send them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from hyperfleet.adapter.compiling.compiler import Compiler
from hyperfleet.adapter.config import (
    ApiCall,
    BuildConstant,
    BuildList,
    BuildMap,
    BuildNode,
    ComputedValue,
    Payload,
    PostAction,
    StatusBuild,
    StatusCondition,
)
from hyperfleet.adapter.documents.parts import ABSENT, ApiCallPart
from hyperfleet.adapter.documents.post import (
    ContractActionPart,
    PayloadPart,
    PostActionPart,
    PostPart,
    StatusConditionPart,
    StatusParameterPart,
    ValuePart,
)
from hyperfleet.adapter.templates import TextTemplate, variables_of
from hyperfleet.documents import Places, good_items
from hyperfleet.documents.pointer import join

REQUIRED_CONDITIONS: Final = ("applied", "available", "health")
_VALUE_KEYS: Final = ("expression", "field")


class ReferencedTree(NamedTuple):
    """The map in a YAML file beside the adapter file, or why there is none."""

    value: Mapping[str, Any]
    places: Places | None = None
    fault: str = ""


ReadTree = Callable[[str], ReferencedTree]


def payload_names(post: PostPart) -> list[str]:
    """Return the names of all payloads."""
    names = [each.name for _, each in good_items(post.payloads)]
    names += [each.name for _, each in good_items(post.parameters)]
    return [name for name in names if name]


def compile_payloads(post: PostPart, compiler: Compiler, read: ReadTree) -> tuple[Payload, ...]:
    """Compile payloads; templates see the payloads before them, expressions do not."""
    run = _PayloadCompiler(compiler, read)
    payloads = [run.compile(part, f"/post/payloads/{index}") for index, part in good_items(post.payloads)]
    payloads += [run.compile_status(part, f"/post/parameters/{index}") for index, part in good_items(post.parameters)]
    compiler.names.reveal_payloads()
    return tuple(payloads)


class _PayloadCompiler:
    def __init__(self, compiler: Compiler, read: ReadTree) -> None:
        self._compiler = compiler
        self._read = read
        self._seen: set[str] = set()

    def compile(self, part: PayloadPart, pointer: str) -> Payload:
        """Compile a payload as the Go adapter writes it."""
        when = part.when.expression if part.when else None
        gate = self._compiler.optional_gate(when, f"{pointer}/when/expression")
        build = self._build(part, pointer)
        self._finish(part.name, pointer)
        return Payload(name=part.name, build=build, when=gate)

    def compile_status(self, part: StatusParameterPart, pointer: str) -> Payload:
        """Compile a payload as the contract writes it."""
        at = f"{pointer}/build"
        conditions = getattr(part.build, "conditions", None)
        if conditions is None:  # it has a problem, which is reported already
            self._finish(part.name, pointer)
            return Payload(name=part.name, build=StatusBuild(conditions=()))
        for name in REQUIRED_CONDITIONS:
            if name not in conditions:
                self._compiler.report(f"{at}/conditions", f'the condition "{name}" is missing', "MissingKey")
        build = StatusBuild(
            conditions=tuple(
                self._condition(name, each, join(f"{at}/conditions", name)) for name, each in conditions.items()
            ),
            data=build_tree(part.build.data, self._compiler, f"{at}/data", is_contract=True),
            metadata=build_tree(part.build.metadata, self._compiler, f"{at}/metadata", is_contract=True),
        )
        self._finish(part.name, pointer)
        return Payload(name=part.name, build=build)

    def _finish(self, name: str | None, pointer: str) -> None:
        if name in self._seen or (name and self._compiler.names.is_visible(name)):
            message = f"there is already a variable {name}"
            self._compiler.report(f"{pointer}/name", message, "DuplicateName")
        if name:
            self._seen.add(name)
            self._compiler.names.reveal_in_templates(name)

    def _build(self, part: PayloadPart, pointer: str) -> BuildNode:
        given = [key for key in ("build", "build_ref") if self._compiler.places.is_given(f"{pointer}/{key}")]
        if len(given) != 1:
            self._compiler.report(pointer, "exactly one of build and build_ref is needed", "ExactlyOne")
        if part.build_ref is not None:
            value, places, fault = self._read(part.build_ref)
            if fault or places is None:
                self._compiler.report(f"{pointer}/build_ref", fault, "FileReference")
                return BuildConstant(None)
            return build_tree(value, self._compiler.within(places), "")
        if part.build is not None and not isinstance(part.build, dict):
            self._compiler.report(f"{pointer}/build", "expected a mapping", "WrongType")
        return build_tree(part.build, self._compiler, f"{pointer}/build")

    def _condition(self, name: str, part: StatusConditionPart, pointer: str) -> StatusCondition:
        compiler = self._compiler
        status = part.status.expression if part.status else None
        return StatusCondition(
            type=name[:1].upper() + name[1:],
            status=compiler.expression(status, f"{pointer}/status/expression", is_gate=True, is_contract=True),
            reason=self._value(part.reason, f"{pointer}/reason"),
            message=self._value(part.message, f"{pointer}/message"),
        )

    def _value(self, part: ValuePart | str | None, pointer: str) -> ComputedValue | TextTemplate | None:
        if part is None or isinstance(part, str):
            return self._compiler.optional_text(part, pointer)
        expression = self._compiler.expression(part.expression, f"{pointer}/expression", is_contract=True)
        return ComputedValue(expression, None if part.default is ABSENT else part.default)


def build_tree(value: Any, compiler: Compiler, pointer: str, *, is_contract: bool = False) -> BuildNode:
    """Compile a tree of templates and values; a map with an expression or a field is a value."""
    if isinstance(value, Mapping):
        key = next((each for each in _VALUE_KEYS if isinstance(value.get(each), str) and value[each]), None)
        if key is not None:
            return _computed(value, key, compiler, pointer, is_contract=is_contract)
        return BuildMap(
            tuple(
                (
                    compiler.key(name, join(pointer, name)),
                    build_tree(item, compiler, join(pointer, name), is_contract=is_contract),
                )
                for name, item in value.items()
            )
        )
    if isinstance(value, list):
        return BuildList(
            tuple(
                build_tree(item, compiler, join(pointer, index), is_contract=is_contract)
                for index, item in enumerate(value)
            )
        )
    return compiler.text(value, pointer) if isinstance(value, str) else BuildConstant(value)


def _computed(
    value: Mapping[str, Any], key: str, compiler: Compiler, pointer: str, *, is_contract: bool
) -> ComputedValue:
    if key == "field":
        expression: Any = compiler.field(value[key], f"{pointer}/field")
    else:
        expression = compiler.expression(value[key], f"{pointer}/expression", is_contract=is_contract)
    return ComputedValue(expression, value.get("default"))


# ── actions ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def compile_actions(post: PostPart, compiler: Compiler) -> tuple[PostAction, ...]:
    """Compile actions; one without a name gets one from its position."""
    names = frozenset(payload_names(post))
    actions = [
        _action(part, compiler, f"/post/post_actions/{index}", names) for index, part in good_items(post.post_actions)
    ]
    actions += [
        _contract_action(part, compiler, f"/post/postActions/{index}", names, f"postAction{index + 1}")
        for index, part in good_items(post.contract_actions)
    ]
    return tuple(actions)


def _action(part: PostActionPart, compiler: Compiler, pointer: str, payloads: frozenset[str]) -> PostAction:
    is_given = any(compiler.places.is_given(f"{pointer}/{key}") for key in ("log", "api_call"))
    if not is_given:
        compiler.report(pointer, "log or api_call is missing", "MissingKey")
    when = part.when.expression if part.when else None
    call = compiler.call(part.api_call, f"{pointer}/api_call") if part.api_call else None
    return _make_action(
        PostAction(
            name=part.name,
            when=compiler.optional_gate(when, f"{pointer}/when/expression"),
            log=compiler.log(part.log, f"{pointer}/log"),
            call=call,
        ),
        payloads,
    )


def _contract_action(
    part: ContractActionPart, compiler: Compiler, pointer: str, payloads: frozenset[str], name: str
) -> PostAction:
    """Compile an action of the contract: the same call, with other names for its parts."""
    url = compiler.text(part.endpoint, f"{pointer}/endpoint")
    call = compiler.call(ApiCallPart(method=part.method, url="", headers=part.headers, body=part.body), pointer)
    made = ApiCall(method=call.method, url=url, body=call.body, headers=call.headers)
    return _make_action(PostAction(name=part.name or name, call=made), payloads)


def _make_action(action: PostAction, payloads: frozenset[str]) -> PostAction:
    if action.call is None or action.call.body is None:
        return action
    read = frozenset(use.path[0] for use in variables_of(action.call.body)) & payloads
    path = action.call.url.source.partition("?")[0].rstrip("/")
    is_report = bool(read) and action.call.method in ("POST", "PUT") and path.endswith("/statuses")
    return PostAction(
        name=action.name, when=action.when, log=action.log, call=action.call, payloads=read, is_report=is_report
    )
