"""The tables of all routes."""

from __future__ import annotations

from barnabas.registry.http import associations, schemas, settings, subjects

TABLES = (subjects.TABLE, schemas.TABLE, settings.TABLE, associations.TABLE)
DOCUMENT = "/openapi.json"  # path of the description of all routes; no table contains it
