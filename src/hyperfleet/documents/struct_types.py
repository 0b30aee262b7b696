"""Bind mappings to structs, and choose the type of a union. Only the binder uses this."""

from __future__ import annotations

from typing import Any, Final

from msgspec import inspect

from hyperfleet.documents.binding import INVALID, Binding, Slot, scalar_of
from hyperfleet.documents.nodes import ListNode, MappingNode, Node, ScalarNode, to_plain
from hyperfleet.documents.pointer import join
from hyperfleet.documents.wording import describe_found, list_choices, quote, suggest


def bind_metadata(run: Binding, info: inspect.Metadata, slot: Slot) -> Any:
    """Bind the annotated type, with the description of the annotation."""
    return run.bind(info.type, slot.node, slot.path, slot.expected)


def bind_struct(run: Binding, info: inspect.StructType, slot: Slot) -> Any:
    """Accept a mapping whose keys are the fields of a struct."""
    if not isinstance(slot.node, MappingNode):
        return run.reject(slot)
    before = len(run.problems)
    _check_keys(run, info, slot.node, slot.path)
    fields = {field.encode_name: field for field in info.fields}
    values = {}
    for entry in slot.node.entries:
        field = fields.get(entry.key.name)
        if field is not None:
            path = join(slot.path, entry.key.name)
            values[field.name] = run.bind(field.type, entry.value, path)
    if run.is_salvaging:
        values = {name: value for name, value in values.items() if value is not INVALID}
        values = {**{field.name: None for field in info.fields if field.required}, **values}
    elif len(run.problems) > before:
        return INVALID
    return _construct(run, info, values, slot)


def _construct(run: Binding, info: inspect.StructType, values: dict[str, Any], slot: Slot) -> Any:
    try:
        return info.cls(**values)
    except (ValueError, TypeError) as error:  # the errors that msgspec, too, allows in `__post_init__`
        return run.report(slot.node, slot.path, "NotAllowed", str(error))


def _check_keys(run: Binding, info: inspect.StructType, node: MappingNode, path: str) -> None:
    """Report unknown keys, missing keys and a tag that is not this struct's."""
    required = [field.encode_name for field in info.fields if field.required]
    allowed = [field.encode_name for field in info.fields]
    if info.tag_field is not None:
        required, allowed = [info.tag_field, *required], [info.tag_field, *allowed]
        _check_tag(run, info.tag_field, info.tag, node, path)
    for entry in node.entries if info.forbid_unknown_fields else ():
        if entry.key.name not in allowed:
            _report_unknown(run, entry.key, path, allowed)
    for name in required:
        if node.find(name) is None:
            run.report(node, join(path, name), "MissingKey", f"the key {quote(name)} is missing")


def _report_unknown(run: Binding, key: ScalarNode, path: str, allowed: list[str]) -> None:
    listed = f"Allowed here: {', '.join(allowed)}" if allowed else "No key is allowed here"
    message = f"unknown key {quote(key.name)}{suggest(key.name, tuple(allowed)) or '.'} {listed}"
    run.report(key, join(path, key.name), "UnknownKey", message)


def _check_tag(run: Binding, tag_field: str, tag: object, node: MappingNode, path: str) -> None:
    entry = node.find(tag_field)
    if entry is not None and to_plain(entry.value) != tag:
        run.reject(Slot(entry.value, join(path, tag_field), list_choices([tag])), code="NotAllowed")


def bind_union(run: Binding, info: inspect.UnionType, slot: Slot) -> Any:
    """Accept a value of any of several types; msgspec allows one type for each kind of node."""
    node = slot.node
    is_empty = scalar_of(node) is None
    options = [option for option in info.types if not isinstance(option, inspect.NoneType)]
    if is_empty and len(options) < len(info.types):
        return None
    if len(options) == 1 and not is_empty:
        # An optional value: its own function gives better advice than "X or nothing".
        return run.bind(options[0], node, slot.path)
    fitting = [option for option in options if _fits(option, node)]
    if len(fitting) > 1 and isinstance(node, MappingNode):
        return _bind_tagged(run, fitting, node, slot.path)
    return run.bind(fitting[0], node, slot.path) if fitting else run.reject(slot)


def _bind_tagged(run: Binding, options: list[inspect.Type], node: MappingNode, path: str) -> Any:
    """Choose among tagged structs by the tag that the mapping carries."""
    structs = [option for option in map(_unwrap, options) if isinstance(option, inspect.StructType)]
    tag_field, tags = str(structs[0].tag_field), list_choices(struct.tag for struct in structs)
    entry = node.find(tag_field)
    inner = join(path, tag_field)
    if entry is None:
        message = f"the key {quote(tag_field)} is missing, expected one of {tags}"
        return run.report(node, inner, "MissingKey", message)
    for struct in structs:
        if struct.tag == to_plain(entry.value):
            return run.bind(struct, node, path)
    message = f"expected one of {tags}, found {describe_found(entry.value)}"
    return run.report(entry.value, inner, "NotAllowed", message)


def _fits(info: inspect.Type, node: Node) -> bool:
    """Tell whether a type accepts nodes of this kind."""
    kind = type(node.value) if isinstance(node, ScalarNode) else type(node)
    return kind in _KINDS.get(type(_unwrap(info)), ())


def _unwrap(info: inspect.Type) -> inspect.Type:
    return _unwrap(info.type) if isinstance(info, inspect.Metadata) else info


_KINDS: Final[dict[type[inspect.Type], tuple[type, ...]]] = {
    inspect.BoolType: (bool,),
    inspect.IntType: (int,),
    inspect.FloatType: (float, int),
    inspect.StrType: (str,),
    inspect.TimeDeltaType: (str,),
    inspect.LiteralType: (str, int, bool),
    inspect.EnumType: (str, int),
    inspect.ListType: (ListNode,),
    inspect.VarTupleType: (ListNode,),
    inspect.TupleType: (ListNode,),
    inspect.SetType: (ListNode,),
    inspect.FrozenSetType: (ListNode,),
    inspect.DictType: (MappingNode,),
    inspect.StructType: (MappingNode,),
}
