"""UpdateFeatures (KIP-584, KIP-1022): changes of levels that come to nothing, for a broker keeps the one it has."""

from __future__ import annotations

from barnabas.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.differential.talk import Talk

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
TRANSACTIONS, UNKNOWN = "transaction.version", "no.such.feature"


def _request(
    *levels: tuple[str, int], upgrade_type: int = UPGRADE, allow_downgrade: bool = False, validate_only: bool = False
) -> UpdateFeaturesRequest:
    updates = [
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type, allow_downgrade=allow_downgrade)
        for name, level in levels
    ]
    return UpdateFeaturesRequest(timeout_ms=30_000, feature_updates=updates, validate_only=validate_only)


def update_features(talk: Talk) -> None:
    for version in talk.versions_of("UpdateFeatures"):
        talk.ask("nothing", _request(), version)
        talk.ask("an unknown one", _request((UNKNOWN, 1)), version)
        talk.ask("an unknown one without a level", _request((UNKNOWN, 0)), version)
        talk.ask("the level that there is", _request((TRANSACTIONS, 2)), version)
        talk.ask("a level above", _request((TRANSACTIONS, 3)), version)
        talk.ask("a level below", _request((TRANSACTIONS, 1)), version)
        talk.ask("a level below zero", _request((TRANSACTIONS, -1)), version)
        talk.ask("one of two is unknown", _request((TRANSACTIONS, 2), (UNKNOWN, 1)), version)
        talk.ask("an empty name", _request(("", 1)), version)


def update_features_checked(talk: Talk) -> None:
    """Requests that would change something are only validated."""
    for version in talk.versions_of("UpdateFeatures")[1:]:
        for name, kind in (
            ("upgrade", UPGRADE),
            ("safe", SAFE_DOWNGRADE),
            ("unsafe", UNSAFE_DOWNGRADE),
            ("unknown", 9),
            ("none", 0),
        ):
            talk.ask(f"{name}: the same", _request((TRANSACTIONS, 2), upgrade_type=kind, validate_only=True), version)
            talk.ask(f"{name}: lower", _request((TRANSACTIONS, 1), upgrade_type=kind, validate_only=True), version)
            talk.ask(f"{name}: none", _request((TRANSACTIONS, 0), upgrade_type=kind, validate_only=True), version)
            talk.ask(f"{name}: higher", _request((TRANSACTIONS, 3), upgrade_type=kind, validate_only=True), version)
            talk.ask(f"{name}: an unknown one", _request((UNKNOWN, 1), upgrade_type=kind, validate_only=True), version)
