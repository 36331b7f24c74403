"""Builds a changed tree from a tree, part by part. Subclasses change the parts of a kind; scopes are full names."""

from __future__ import annotations

from barnabas.registry.formats.protobuf.tree import (
    Enum,
    Extend,
    Field,
    File,
    Group,
    Message,
    OneOf,
    Option,
    Ranges,
    Rpc,
    Service,
)


class Rewrite:
    """Returns an equal tree; subclasses override the methods of the parts that they change."""

    def file(self, file: File) -> File:
        """A file."""
        return file._replace(
            options=self.options(file.options, file.package),
            messages=tuple(self.message(one, file.package) for one in file.messages),
            enums=tuple(self.enum(one, file.package) for one in file.enums),
            extends=self.extends(file.extends, file.package),
            services=tuple(self.service(one, file.package) for one in file.services),
        )

    def message(self, message: Message, scope: str) -> Message:
        """A message in `scope`."""
        inner = f"{scope}.{message.name}" if scope else message.name
        return message._replace(
            fields=self.fields(message.fields, inner),
            oneofs=self.oneofs(message.oneofs, inner),
            groups=self.groups(message.groups, inner),
            messages=tuple(self.message(one, inner) for one in message.messages),
            enums=tuple(self.enum(one, inner) for one in message.enums),
            options=self.options(message.options, inner),
            reserved=self.reserved(message.reserved),
            extensions=self.extensions(message.extensions),
            extends=self.extends(message.extends, inner),
        )

    def fields(self, fields: tuple[Field, ...], scope: str) -> tuple[Field, ...]:
        """The fields of a message, a oneof or an extension."""
        return tuple(self.field(one, scope) for one in fields)

    def field(self, field: Field, scope: str) -> Field:
        """A field."""
        return field._replace(type=self.type_name(field.type, scope), options=self.options(field.options, scope))

    def oneofs(self, oneofs: tuple[OneOf, ...], scope: str) -> tuple[OneOf, ...]:
        """The oneofs of a message."""
        return tuple(
            one._replace(
                fields=self.fields(one.fields, scope),
                groups=self.groups(one.groups, scope),
                options=self.options(one.options, scope),
            )
            for one in oneofs
        )

    def groups(self, groups: tuple[Group, ...], scope: str) -> tuple[Group, ...]:
        """The groups of a message or a oneof."""
        return tuple(
            one._replace(message=self.message(one.message, scope), options=self.options(one.options, scope)) for one in groups
        )

    def enum(self, enum: Enum, scope: str) -> Enum:
        """An enum."""
        values = tuple(one._replace(options=self.options(one.options, scope)) for one in enum.values)
        return enum._replace(values=values, options=self.options(enum.options, scope), reserved=self.reserved(enum.reserved))

    def service(self, service: Service, scope: str) -> Service:
        """A service."""
        rpcs = tuple(self.rpc(one, scope) for one in service.rpcs)
        return service._replace(rpcs=rpcs, options=self.options(service.options, scope))

    def rpc(self, rpc: Rpc, scope: str) -> Rpc:
        """A method."""
        return rpc._replace(options=self.options(rpc.options, scope))

    def extends(self, extends: tuple[Extend, ...], scope: str) -> tuple[Extend, ...]:
        """Extensions of messages."""
        return tuple(one._replace(fields=self.fields(one.fields, scope)) for one in extends)

    def options(self, options: tuple[Option, ...], scope: str) -> tuple[Option, ...]:
        """The options of one part."""
        return options

    def reserved(self, ranges: tuple[Ranges, ...]) -> tuple[Ranges, ...]:
        """Reserved numbers and names."""
        return ranges

    def extensions(self, ranges: tuple[Ranges, ...]) -> tuple[Ranges, ...]:
        """Ranges of extension numbers."""
        return ranges

    def type_name(self, name: str, scope: str) -> str:
        """The type of a field."""
        return name
