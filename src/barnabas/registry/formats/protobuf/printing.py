"""Prints a syntax tree in the layout of Confluent's registry; texts are stored and compared in this layout.

Messages come before enums, fields before oneofs, and nested types last. Blank lines inside a nested type have its indentation.
Confluent's registry prints the same, and only equal texts have equal ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.registry.formats.protobuf.tree import (
    MAX_FIELD_NUMBER,
    Aggregate,
    Enum,
    EnumValue,
    Extend,
    Field,
    File,
    Group,
    Message,
    OneOf,
    Option,
    Range,
    Ranges,
    Rpc,
    Service,
    Text,
    Value,
    Word,
)

_ESCAPES = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        "'": "\\'",
        '"': '\\"',
    }
)


def print_file(file: File) -> str:
    """The text of a file."""
    editions = file.syntax.isdigit()
    head = f'{"edition" if editions else "syntax"} = "{file.syntax}";\n' if file.syntax else ""
    if file.package:
        head += f"package {file.package};\n"
    sections = [
        [
            f'import {"weak " if one.kind == "weak" else ""}"{_escape(one.path)}";\n'
            for one in file.imports
            if one.kind != "public"
        ]
        + [f'import public "{_escape(one.path)}";\n' for one in file.imports if one.kind == "public"],
        [_statement(option) for option in file.options],
        [_message(one, editions) for one in file.messages] + [_enum(one, editions) for one in file.enums],
        [_extend(one) for one in file.extends],
        [_service(one) for one in file.services],
    ]
    return head + "".join("\n" + "".join(section) for section in sections if section)


def _indent(text: str) -> str:
    """Indent every line by two columns; `text` ends with a line feed."""
    return "  " + text[:-1].replace("\n", "\n  ") + "\n"


def _body(head: str, sections: Iterable[Sequence[str]]) -> str:
    text = "".join("\n" + "".join(map(_indent, section)) for section in sections if section)
    return f"{head} {{{text}}}\n"


def _message(message: Message, editions: bool) -> str:
    return _body(f"message {message.name}", _sections(message, editions))


def _sections(message: Message, editions: bool) -> list[list[str]]:
    return [
        [_ranges("reserved", one, editions) for one in message.reserved],
        [_statement(option) for option in message.options],
        [_field(field) for field in message.fields],
        [_oneof(one, editions) for one in message.oneofs],
        [_group(group, editions) for group in message.groups],
        [_ranges("extensions", one, editions) for one in message.extensions],
        [_extend(one) for one in message.extends],
        [_message(one, editions) for one in message.messages] + [_enum(one, editions) for one in message.enums],
    ]


def _enum(enum: Enum, editions: bool) -> str:
    lines = [_ranges("reserved", one, editions) for one in enum.reserved]
    lines += [_statement(option) for option in enum.options]
    return _body(f"enum {enum.name}", [lines + [_enum_value(value) for value in enum.values]])


def _enum_value(value: EnumValue) -> str:
    return f"{value.name} = {value.number}{_bracketed(value.options)};\n"


def _ranges(word: str, ranges: Ranges, editions: bool) -> str:
    return f"{word} {', '.join(_range(value, editions) for value in ranges.values)};\n"


def _range(value: int | Range | str, editions: bool) -> str:
    if isinstance(value, Range):
        return f"{value.first} to {value.last if value.last < MAX_FIELD_NUMBER else 'max'}"
    if isinstance(value, str) and not editions:
        return f'"{_escape(value)}"'
    return str(value)


def _oneof(oneof: OneOf, editions: bool) -> str:
    sections = [[_statement(option) for option in oneof.options]]
    sections += [[_field(field) for field in oneof.fields], [_group(group, editions) for group in oneof.groups]]
    return _body(f"oneof {oneof.name}", sections)


def _group(group: Group, editions: bool) -> str:
    label = group.label + " " if group.label else ""
    head = f"{label}group {group.message.name} = {group.number}{_bracketed(group.options)}"
    return _body(head, _sections(group.message, editions))


def _extend(extend: Extend) -> str:
    return _body(f"extend {extend.name}", [[_field(field) for field in extend.fields]])


def field_type(field: Field) -> str:
    """The type of a field as text."""
    return f"map<{field.map_key}, {field.type}>" if field.map_key else field.type


def _field(field: Field) -> str:
    label = field.label + " " if field.label else ""
    options = _bracketed(field.options) if field.options else ""
    return f"{label}{field_type(field)} {field.name} = {field.number}{options};\n"


def _service(service: Service) -> str:
    return _body(
        f"service {service.name}",
        [[_statement(option) for option in service.options], [_rpc(rpc) for rpc in service.rpcs]],
    )


def _rpc(rpc: Rpc) -> str:
    request = f"{'stream ' if rpc.request_streams else ''}{rpc.request}"
    response = f"{'stream ' if rpc.response_streams else ''}{rpc.response}"
    options = ""
    if rpc.options:
        options = " {\n" + "".join(_indent(_statement(option)) for option in rpc.options) + "}"
    return f"rpc {rpc.name} ({request}) returns ({response}){options};\n"


def _statement(option: Option) -> str:
    return f"option {_option(option)};\n"


def _bracketed(options: tuple[Option, ...]) -> str:
    """The options after a field or value. The default and the JSON name come last, because Confluent's registry keeps them
    separately."""
    if not options:
        return ""
    ordered = sorted(options, key=lambda option: ("default", "json_name").index(option.name) if _is_special(option) else -1)
    return " " + _list([_option(option) for option in ordered])


def _is_special(option: Option) -> bool:
    return not option.custom and option.name in ("default", "json_name")


def _list(items: Sequence[str]) -> str:
    if len(items) == 1:
        return f"[{items[0]}]"
    return "[\n" + _lines(items) + "]"


def _lines(items: Sequence[str]) -> str:
    return "".join(_indent(item + ("," if index < len(items) - 1 else "") + "\n") for index, item in enumerate(items))


def _option(option: Option) -> str:
    value = option.value
    if isinstance(value, Text | Word | Aggregate):
        return f"{option.full_name} = {_value(value)}"
    return f"{option.full_name} = {_list([_value(item) for item in value.items])}"


def _value(value: Value) -> str:
    if isinstance(value, Text):
        return f'"{_escape(value.value)}"'
    if isinstance(value, Word):
        return value.value
    if isinstance(value, Aggregate):
        return "{\n" + _lines([f"{key}: {_value(item)}" for key, item in value.entries]) + "}"
    return "[\n" + _lines([_value(item) for item in value.items]) + "]"


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)
