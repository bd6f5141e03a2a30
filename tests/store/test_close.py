"""Closing a survey on both databases, also after an interruption."""

from __future__ import annotations

from datetime import timedelta

import pytest

from survey.collect.publication import close
from survey.collect.release import BLOCK_SIZE, compose_release
from survey.errors import ClosedError, NotFoundError, StoreBusyError
from survey.mechanism import grr
from survey.questionnaire.kinds import PublishedQuestion
from survey.store import N_ASKED, ChosenReports, LastBlock
from tests.conftest import TODAY
from tests.store.reports import add, keeper_at, publish_pending, random_reports, report

OCTET = PublishedQuestion(
    id="q",
    type="single_choice",
    text="Q?",
    options=(),
    grid=None,
    max_ticks=0,
    alone=0,
    opt_out="",
    not_applicable="",
    ask_if=None,
    mechanism="grr",
    stated={},
    channel=grr(256, "3/4"),
    nullable=False,
)
"""A question whose codes fill a byte."""


def test_a_closed_survey_accepts_no_reports_and_the_next_release_includes_the_pending_ones(
    store, small, settings
):
    add(store, small, [report(number) for number in range(40)])
    assert close(store, "small", TODAY)
    with pytest.raises(ClosedError):
        add(store, small, [report(41)])
    add(store, small, [report(3)])  # a resent report is acknowledged
    # Nobody can choose the moment of a release by closing a survey.
    for hour in (0.3, 0.99):
        assert keeper_at(store, settings, hour).work() == 0
    assert store.tally(small.key).n == 0
    assert keeper_at(store, settings, 1).work() == 40
    assert store.tally(small.key).n == 40
    assert not close(store, "small", TODAY)
    assert keeper_at(store, settings, 2).work() == 0
    with pytest.raises(NotFoundError):
        close(store, "nothing", TODAY)


@pytest.mark.web
def test_a_rewriting_that_fails_or_meets_a_reader_is_repeated(store, small, settings, monkeypatch):
    add(store, small, random_reports(3000))
    close(store, "small", TODAY)
    monkeypatch.setattr("survey.collect.release.REWRITE_SECONDS", 0.0)
    keeper = keeper_at(store, settings, 1)
    with monkeypatch.context() as patch:

        def fails():
            raise StoreBusyError("full")

        patch.setattr(store, "vacuum", fails)
        patch.setattr(store, "clean_up_after_release", lambda survey: None)
        assert keeper.work() == 3000
    assert store.has_free_pages()
    with store.snapshot() as snapshot:
        assert snapshot.rows("released_ids", None, 1)
        keeper.work()
    keeper.work()
    assert not store.has_free_pages()


def test_ids_of_long_closed_surveys_are_deleted(store, small, settings):
    add(store, small, [report(1)])
    close(store, "small", TODAY)
    loop = keeper_at(store, settings, 1)
    loop.work()
    loop.clean_up(TODAY + timedelta(days=7))
    assert store.has_report(small.key, report(1).id)
    loop.clean_up(TODAY + timedelta(days=8))
    assert not store.has_report(small.key, report(1).id)


def test_codes_of_a_report_stay_together_through_many_releases(store, small):
    added: list[bytes] = []
    for step in range(4):
        batch = random_reports(25 + 10 * step)
        add(store, small, batch)
        added += [item.codes for item in batch]
        assert publish_pending(store, small, 25) == len(batch)
    released_codes = [
        bytes(pair)
        for columns in store.block_columns(small.key, [0, 1])
        for pair in zip(*(column.data for column in columns), strict=True)
    ]
    # Cross-tabulations are exact only if the codes of each report stay together.
    assert sorted(released_codes) == sorted(added)
    assert released_codes != added


def test_blocks_grow_to_their_size_and_then_a_new_one_begins():
    full = [bytes([1]) * (BLOCK_SIZE - 10)]
    content = compose_release([OCTET], ChosenReports("", "", [b"\x02"] * 30, LastBlock(4, full)))
    assert [(c.block, c.n) for c in content.columns] == [(4, BLOCK_SIZE), (5, 20)]
    assert content.counts == {("", "", 0, N_ASKED): 30, ("", "", 0, 2): 30}
    exact = [bytes([1]) * BLOCK_SIZE]
    (column,) = compose_release(
        [OCTET], ChosenReports("", "", [b"\x02"], LastBlock(4, exact))
    ).columns
    assert column.block == 5
