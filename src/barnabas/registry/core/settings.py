"""Changes configs and modes of everything, of a context or of a subject."""

from __future__ import annotations

from barnabas.registry.core import errors, names, records, rule_sets
from barnabas.registry.core.commands import DeleteConfig, DeleteMode, Outcome, SetConfig, SetMode
from barnabas.registry.core.drafts import metadata_of, rule_set_of
from barnabas.registry.core.entities import Json
from barnabas.registry.core.registration import check_writable
from barnabas.registry.core.state import State

FIELDS = (
    "alias",
    "normalize",
    "validateFields",
    "validateNames",
    "compatibility",
    "compatibilityPolicy",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)
POLICIES = frozenset({"STRICT", "LENIENT"})


def set_config(state: State, command: SetConfig) -> Outcome:
    """Change a config; the answer is the whole config, with the names of requests."""
    _check_subject(command.subject)
    check_writable(state, command.subject)
    config: Json = dict(state.configs.get(command.subject) or {})
    for name in FIELDS:
        if name not in command.changes:
            continue
        value = _checked(name, command.changes[name])
        stored = _stored(name)
        config.pop(stored, None)
        if value is not None:
            config[stored] = value
    answer = {name: config[_stored(name)] for name in FIELDS if _stored(name) in config}
    return Outcome((records.config_record(command.subject, config),), answer)


def delete_config(state: State, command: DeleteConfig) -> Outcome:
    """Remove a config; the answer is the removed config."""
    config = state.config(command.subject)
    if config is None:
        raise errors.subject_not_found(command.subject or "")
    check_writable(state, command.subject)
    written = (records.config_record(command.subject, None),) if command.subject in state.configs else ()
    return Outcome(written, config or {"compatibilityLevel": state.default_level})


def set_mode(state: State, command: SetMode) -> Outcome:
    """Set a mode, or remove it. For the mode IMPORT, a subject or context must have no versions; its deleted versions are then
    removed permanently."""
    subject = command.subject
    _check_subject(subject)
    if command.mode is None:
        return Outcome((records.mode_record(subject, None),), {})
    mode = command.mode.upper()
    if mode not in errors.MODES:
        raise errors.invalid_mode()
    written = []
    if mode == "IMPORT" and state.mode_in_scope(subject) != "IMPORT" and not command.force:
        if state.matching(subject):
            raise errors.not_permitted("Cannot import since found existing subjects")
        for name in state.matching(subject, deleted=True):
            for version in state.versions(name, deleted=True):
                if state.users(name, version.version):
                    raise errors.reference_exists(name, version.version)
                written.append(records.schema_tombstone(name, version.version))
        if written:
            written.append(records.clear_subject_record(subject))
    written.append(records.mode_record(subject, mode))
    return Outcome(tuple(written), {} if mode is None else {"mode": mode})


def delete_mode(state: State, command: DeleteMode) -> Outcome:
    """Remove a mode; the answer is the removed mode."""
    mode = state.mode(command.subject)
    if mode is None and not command.recursive:
        raise errors.subject_not_found(command.subject or "")
    removed = [command.subject] if command.subject in state.modes else []
    if command.recursive:
        below = names.parse(command.subject or "")
        removed += [
            each
            for each in state.modes
            if each is not None
            and each != command.subject
            and (command.subject is None or (not below.subject and names.context_of(each) == below.context))
        ]
    return Outcome(tuple(records.mode_record(each, None) for each in removed), {} if mode is None else {"mode": mode})


def _stored(name: str) -> str:
    """The name in the topic of a request's field."""
    return "compatibilityLevel" if name == "compatibility" else name


def _check_subject(subject: str | None) -> None:
    if subject is not None and not names.is_valid(subject, for_settings=True):
        raise errors.invalid_subject(subject)


def _checked(name: str, value: object) -> object:
    """The stored form of a field's value."""
    if value is None:
        return None
    if name == "compatibility":
        level = str(value).upper()
        if level not in errors.LEVELS:
            raise errors.invalid_level()
        return level
    if name == "compatibilityPolicy":
        if str(value).upper() not in POLICIES:
            raise errors.invalid_level()
        return str(value).upper()
    if name in {"normalize", "validateFields", "validateNames"}:
        return value is True or str(value).lower() == "true"
    if name.endswith("Metadata"):
        return metadata_of({name: value}, name)
    if name.endswith("RuleSet"):
        rule_set = rule_set_of({name: value}, name)
        rule_sets.check(rule_set)
        return rule_set
    return value
