"""A survey with field mode for tests without a keeper."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import FieldKeys, PublishedSurvey, Store
from survey.store.sealed_reports import UNASSIGNED_FIELD
from tests.conftest import SMALL, TODAY


def publish_for_tablets(store: Store, directory: Path) -> PublishedSurvey:
    """Publish the small survey with field mode, and keep its private key in `directory`."""
    keys = FieldKeys(directory / "field-keys")
    keys.directory.mkdir(mode=0o700)
    store.add_spare_key(keys.create(), UNASSIGNED_FIELD)
    until = datetime.now(UTC).date() + timedelta(days=20)
    text = f'kiosk = true\nfield_until = "{until}"\n{SMALL}'
    return publish(store, load(text.encode(), "s.toml", Caps()), TODAY)
