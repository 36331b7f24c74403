"""Deletes versions, subjects and contexts: first a soft delete, which keeps ids, numbers and settings, then a permanent one."""

from __future__ import annotations

from barnabas.registry.core import errors, names, records
from barnabas.registry.core.commands import DeleteContext, DeleteSubject, DeleteVersion, Outcome
from barnabas.registry.core.records import Record
from barnabas.registry.core.registration import check_writable
from barnabas.registry.core.state import State


def delete_version(state: State, command: DeleteVersion) -> Outcome:
    """Delete one version; the answer is its number."""
    subject = command.subject
    version = state.version(subject, command.version, deleted=True)
    if version is None:
        if not state.has(subject, deleted=True):
            raise errors.subject_not_found(subject)
        raise errors.version_not_found(command.version)
    number = version.version
    if not command.permanent and version.deleted:
        raise errors.version_soft_deleted(subject, number)
    check_writable(state, subject)
    _check_unused(state, subject, number)
    if not command.permanent:
        return Outcome((records.schema_record(version, deleted=True),), number)
    if not version.deleted:
        raise errors.version_not_soft_deleted(subject, number)
    written = [records.schema_tombstone(subject, number)]
    if len(state.versions(subject, deleted=True)) == 1:
        written += _settings_of(state, subject)
    return Outcome(tuple(written), number)


def delete_subject(state: State, command: DeleteSubject) -> Outcome:
    """Delete all versions; the answer is their numbers."""
    subject = command.subject
    if not state.has(subject, deleted=True):
        raise errors.subject_not_found(subject)
    if not command.permanent and not state.has(subject):
        raise errors.subject_soft_deleted(subject)
    check_writable(state, subject)
    versions = state.versions(subject, deleted=command.permanent)
    for version in versions:
        _check_unused(state, subject, version.version)
        if command.permanent and not version.deleted:
            raise errors.subject_not_soft_deleted(subject)
    numbers = [version.version for version in versions]
    if not command.permanent:
        return Outcome((records.delete_subject_record(subject, numbers[-1]),), numbers)
    gone = (records.schema_tombstone(subject, number) for number in numbers)
    return Outcome((*gone, *_settings_of(state, subject)), numbers)


def delete_context(state: State, command: DeleteContext) -> Outcome:
    """Forget an empty context."""
    name = names.parse(command.context)
    if name.context == names.DEFAULT_CONTEXT or state.matching(name.prefix, deleted=True):
        raise errors.context_not_empty(name.context)
    written = (records.context_record(name.context, deleted=True), *_settings_of(state, name.prefix))
    return Outcome(written if name.context in state.named_contexts else (), None)


def _check_unused(state: State, subject: str, number: int) -> None:
    if state.users(subject, number):
        raise errors.reference_exists(subject, number)


def _settings_of(state: State, subject: str) -> list[Record]:
    """The records that remove the settings of a subject."""
    written = []
    if subject in state.modes:
        written.append(records.mode_record(subject, None))
    if subject in state.configs:
        written.append(records.config_record(subject, None))
    return written
