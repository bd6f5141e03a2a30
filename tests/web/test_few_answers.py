"""A question that few respondents were asked looks the same whatever few of them answered."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import StoredReport, open_store
from tests.conftest import SMALL, TODAY
from tests.store.reports import add, publish_pending
from tests.web.surfaces import Surfaces

ONE_OF_TWO = SMALL.replace(
    'truth_probability = "3/4"', 'truth_probability = "3/4"\nquestions_per_person = 1'
)


@pytest.fixture
def sampled(store):
    """A survey that asks each respondent one of two questions."""
    return publish(store, load(ONE_OF_TWO.encode(), "s.toml", Caps()), TODAY)


def release(store, survey, n_asked: tuple[int, int], stratum: str = "", code: int = 0) -> None:
    """Release reports with the same answer to one question each."""
    first, second = survey.definition.questions
    codes = [first.encode(code) + second.encode(None)] * n_asked[0]
    codes += [first.encode(None) + second.encode(code)] * n_asked[1]
    add(store, survey, [StoredReport(os.urandom(16), stratum, c) for c in codes])
    publish_pending(store, survey, 1)


def readings(surfaces, survey, n_asked, code) -> dict[str, str]:
    """Return what all surfaces state after a release of two groups."""
    release(surfaces.store, survey, (30, 30), "south")
    release(surfaces.store, survey, n_asked, "north", code)
    return surfaces.read(is_complete=True)


@pytest.mark.security
@pytest.mark.web
def test_no_surface_shows_answers_to_a_question_or_their_number_below_25(
    sampled, store, settings, migrated_file, tmp_path
):
    """30 reports of a group, 24 or 6 of them about the first question: nobody sees which."""
    shutil.copy(migrated_file, tmp_path / "other.db")
    other = replace(settings, database=f"sqlite:///{tmp_path / 'other.db'}")
    surfaces = Surfaces(store, settings)
    others = Surfaces(open_store(other.database), other)
    copy = publish(others.store, load(ONE_OF_TWO.encode(), "s.toml", Caps()), TODAY)
    first = readings(surfaces, sampled, (24, 6), 0)
    second = readings(others, copy, (6, 24), 1)
    others.store.close_connections()
    assert sum(text.startswith("200 ") for text in first.values()) >= 30
    assert {name: second[name] for name in first if first[name] != second[name]} == {}
    # From the 25th answer on, all of them are shown.
    release(store, sampled, (1, 0), "north")
    shown = surfaces.read(is_complete=True)
    changed = {name for name in first if first[name] != shown[name]}
    assert {"microdata 1", "parquet 1", "export small"} <= changed
    assert store.tally(sampled.key).n_asked == [55, 30]
