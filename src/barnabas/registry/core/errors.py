"""The errors of the interface, with Confluent's codes and texts."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.web.routing import HttpError

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
INVALID_SCHEMA = 42201
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")


def subject_not_found(subject: str) -> HttpError:
    return HttpError(404, f"Subject '{subject}' not found.", 40401)


def version_not_found(version: int) -> HttpError:
    return HttpError(404, f"Version {version} not found.", 40402)


def schema_not_found(which: object = None) -> HttpError:
    return HttpError(404, "Schema not found" if which is None else f"Schema {which} not found", 40403)


def subject_soft_deleted(subject: str) -> HttpError:
    return HttpError(404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently", 40404)


def subject_not_soft_deleted(subject: str) -> HttpError:
    return HttpError(404, f"Subject '{subject}' was not deleted first before being permanently deleted", 40405)


def version_soft_deleted(subject: str, version: int) -> HttpError:
    text = f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    return HttpError(404, text, 40406)


def version_not_soft_deleted(subject: str, version: int) -> HttpError:
    text = f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    return HttpError(404, text, 40407)


def no_subject_config(subject: str) -> HttpError:
    return HttpError(404, f"Subject '{subject}' does not have subject-level compatibility configured", 40408)


def no_subject_mode(subject: str) -> HttpError:
    return HttpError(404, f"Subject '{subject}' does not have subject-level mode configured", 40409)


def association_not_found(resource: str) -> HttpError:
    return HttpError(404, f"Association for '{resource}' not found.", 40410)


def incompatible(subject: str, messages: Iterable[str]) -> HttpError:
    details = ", ".join(messages)
    text = f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: [{details}]'
    return HttpError(409, text, 40901)


def invalid_schema(text: str) -> HttpError:
    return HttpError(422, text, INVALID_SCHEMA)


def invalid_version(version: str) -> HttpError:
    text = (
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"'
    )
    return HttpError(422, text, 42202)


def invalid_level() -> HttpError:
    text = (
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive"
    )
    return HttpError(422, text, 42203)


def invalid_mode() -> HttpError:
    text = "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, and FORWARD."
    return HttpError(422, text, 42204)


def not_permitted(text: str) -> HttpError:
    return HttpError(422, text, 42205)


def reference_exists(subject: str, version: int) -> HttpError:
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return HttpError(422, f"One or more references exist to the schema {key}.", 42206)


def invalid_subject(subject: str) -> HttpError:
    return HttpError(422, f"The specified subject '{subject}' is not a valid.", 42208)


def schema_too_large() -> HttpError:
    return HttpError(422, "Register operation failed because schema is too large", 42209)


def invalid_rule_set(text: str) -> HttpError:
    return HttpError(422, text, 42210)


def context_not_empty(context: str) -> HttpError:
    return HttpError(422, f"The specified context '{context}' is not empty.", 42211)


def invalid_association(name: str, detail: str) -> HttpError:
    return HttpError(422, f"The association specified an invalid value for property: {name}, detail: {detail}", 42212)


def store_failed(text: str) -> HttpError:
    return HttpError(500, text, 50001)


def timed_out(text: str) -> HttpError:
    return HttpError(500, text, 50002)


def forwarding_failed(text: str) -> HttpError:
    return HttpError(500, text, 50003)


def no_leader() -> HttpError:
    return HttpError(500, "Leader not known.", 50004)
