"""The keeper reports damaged pending rows and failing surveys, and releases all others."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.utils import floatToGoString

from survey.archive import check
from survey.collect.publication import close, overdue, validate_schedule
from survey.errors import DamagedSurveyError, DesignError
from survey.ops.health import Check, Gauges, _releases
from survey.ops.logs import Lines
from survey.store import Schedule, database_file
from tests.conftest import TODAY
from tests.store.reports import NOON, add, keeper_at, random_reports, report
from tests.store.test_keeper import publish_copy

DAMAGES: dict[str, object] = {
    "box": bytes([1]) * 90,
    "digest": bytes(16),
    "batch": bytes(16),
}
"""Columns without which a batch cannot be recovered, and a wrong value of each."""

RECOVERED: dict[str, object] = {
    "ids": bytes([255]) * 800,
    "invitations": bytes([255]) * 1600,
    "period": 129,
    "stratum": "south",
    "is_resealed": 1,
}
"""Columns that the box and the digest show, and a wrong value of each."""


def damage(direct_access, survey, column: str) -> str:
    """Damage one pending row; return its key in hex."""
    rows = direct_access.run("SELECT batch FROM pending WHERE survey = ?", [survey.key])
    batch = bytes(rows[0][0])
    direct_access.run(
        f"UPDATE pending SET {column} = ? WHERE survey = ? AND batch = ?",
        [(DAMAGES | RECOVERED)[column], survey.key, batch],
    )
    return (DAMAGES["batch"] if column == "batch" else batch).hex()


@pytest.fixture
def lines(caplog):
    """Return a function that returns the lines of the log."""
    return lambda: [json.loads(Lines().format(record)) for record in caplog.records]


@pytest.mark.parametrize("column", DAMAGES)
def test_a_damaged_row_is_named_and_set_aside_and_the_other_reports_are_released(
    store, settings, small, direct_access, lines, column
):
    intact = publish_copy(store, "zzz")
    add(store, small, [report(1)])
    row = damage(direct_access, small, column)
    for survey in (small, intact):
        add(store, survey, random_reports(60))
    assert keeper_at(store, settings, 1).work() == 50
    assert [(line["survey"], line["row"]) for line in lines()] == [("small", row)]
    assert store.n_damaged() == {small.key: 1}
    assert [store.n_pending(survey.key) for survey in (small, intact)] == [35, 35]
    with store.snapshot() as snapshot:
        mistakes = check(snapshot).mistakes
    assert mistakes == ()


@pytest.mark.parametrize("column", RECOVERED)
@pytest.mark.parametrize("closes", [False, True])
def test_a_damaged_row_is_repaired_and_released_if_its_box_and_its_digest_are_intact(
    store, settings, small, direct_access, lines, column, closes
):
    store.add_invitations(small.key, "north", tokens := [bytes([n]) * 32 for n in range(50)])
    add(store, small, [report(n, stratum="north", invitation=tokens[n]) for n in range(50)])
    row = damage(direct_access, small, column)
    if closes:
        close(store, "small", TODAY)
    assert keeper_at(store, settings, 1).work() == (50 if closes else 25)
    assert [(line["event"], line["survey"], line["row"]) for line in lines()] == [
        ("a damaged batch was repaired", "small", row)
    ]
    assert store.n_damaged() == {}
    assert {stratum for stratum, _ in store.tallies(small.key)} == {"north"}


@pytest.mark.parametrize("closes", [False, True])
def test_a_batch_whose_ids_and_box_are_damaged_leaves_no_ids_and_stops_no_backup(
    store, settings, small, direct_access, closes
):
    add(store, small, [report(1)])
    damage(direct_access, small, "ids")
    damage(direct_access, small, "box")
    damage(direct_access, small, "period")
    add(store, small, random_reports(60))
    if closes:
        close(store, "small", TODAY)
    keeper_at(store, settings, 1).work()
    assert store.n_damaged() == {small.key: 1}
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()


def test_a_survey_with_a_damaged_row_closes_and_publishes_all_other_reports(
    store, settings, small, direct_access
):
    add(store, small, [report(1)])
    damage(direct_access, small, "box")
    add(store, small, random_reports(40))
    close(store, "small", TODAY)
    assert keeper_at(store, settings, 1).work() == 40
    assert store.n_pending(small.key) == 0
    store.delete_survey("small", TODAY)
    assert store.n_damaged() == {}


@pytest.mark.security
def test_a_group_that_a_damaged_row_makes_too_small_is_not_published(
    store, settings, small, direct_access
):
    add(store, small, [report(1)])
    damage(direct_access, small, "box")
    add(store, small, random_reports(24))
    close(store, "small", TODAY)
    assert keeper_at(store, settings, 1).work() == 0
    assert store.n_released(small.key) == 0


def test_a_lost_report_and_its_invitation_can_be_sent_again(store, settings, small, direct_access):
    tokens = [bytes([n]) * 32 for n in range(30)]
    store.add_invitations(small.key, "north", tokens)
    lost = report(1, stratum="north", invitation=tokens[1])
    add(store, small, [lost])
    damage(direct_access, small, "box")
    keeper = keeper_at(store, settings, 1)
    keeper.work()
    assert not store.has_report(small.key, lost.id)
    add(store, small, [lost])
    assert store.n_pending(small.key) == 1


def test_readiness_metrics_and_log_name_a_failing_survey_until_it_is_served_again(
    store, settings, small, lines, monkeypatch
):
    intact = publish_copy(store, "zzz")
    for survey in (small, intact):
        add(store, survey, random_reports(60))
    keeper, sizes = keeper_at(store, settings, 1), store.pending_sizes
    monkeypatch.setattr(
        store, "pending_sizes", lambda key: 1 // 0 if key == small.key else sizes(key)
    )
    registry = CollectorRegistry()
    registry.register(Gauges(store, "0" * 64, dict))
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            keeper.work()
    assert store.n_released(intact.key) == 25
    # The log does not repeat it each second.
    assert [(line["survey"], line["errors"]) for line in lines()] == [
        ("small", ["ZeroDivisionError"])
    ]
    releases = _releases(store, settings)
    assert not releases.required
    assert releases.why.endswith("failing: small version 1")
    metrics = generate_latest(registry).decode()
    since = floatToGoString(NOON + 3600)
    assert f'failing_since_seconds{{survey="small version 1"}} {since}' in metrics
    assert "zzz" not in metrics
    # A new keeper reads the failure and deletes it.
    monkeypatch.undo()
    keeper_at(store, settings, 1).work()
    assert store.failures() == {}
    assert "failing_since_seconds{" not in generate_latest(registry).decode()


def test_metrics_and_readiness_show_when_the_last_release_was(store, settings, small):
    keeper_at(store, settings, 1).work()
    registry = CollectorRegistry()
    registry.register(Gauges(store, "0" * 64, dict))
    time = floatToGoString(NOON + 3600)
    assert f"survey_release_time_seconds {time}" in generate_latest(registry).decode()
    late = _releases(store, settings)
    assert (late.ok, late.why.startswith("last release ")) == (False, True)


def test_readiness_shows_a_keeper_that_stopped_although_no_survey_is_open(
    store, settings, small, monkeypatch
):
    monkeypatch.setattr("survey.ops.health.time.time", lambda: NOON)
    assert _releases(store, settings).ok
    monkeypatch.setattr("survey.ops.health.time.time", lambda: NOON + 2 * 86_400)
    never_served = _releases(store, settings)
    assert not never_served.ok
    assert never_served.why.endswith("the keeper has not served: small version 1")
    close(store, "small", TODAY)
    for hours in (48, 49, 50):
        keeper = keeper_at(store, settings, hours)
        keeper.work()
        keeper.work()
    monkeypatch.setattr("survey.ops.health.time.time", lambda: NOON + 50 * 3600)
    assert _releases(store, settings) == Check(
        ok=True, why="last release 0 seconds ago", required=False
    )
    monkeypatch.setattr("survey.ops.health.time.time", lambda: NOON + 53 * 3600)
    assert not _releases(store, settings).ok


def test_a_log_line_contains_no_names_except_those_of_surveys():
    record = logging.LogRecord("survey.x", logging.ERROR, "x.py", 1, "x", (), None)
    record.survey, record.row = "Secret answer", "203.0.113.7"
    line = json.loads(Lines().format(record))
    assert (line["survey"], line["row"]) == ("", "")


@pytest.mark.parametrize(
    ("table", "column", "key", "day"),
    [
        ("survey", "changed", "key", b"2026-1q-21"),
        ("schedule", "opens", "survey", b"2026-11-99"),
        # On SQLite also a text that is not UTF-8, which Python refuses to read.
        ("schedule", "closes", "survey", b"2026\xad12-01"),
    ],
)
def test_a_survey_with_a_damaged_day_is_named_and_all_others_are_served(
    store, settings, small, client, direct_access, lines, table, column, key, day
):
    intact = publish_copy(store, "zzz")
    days = Schedule(TODAY, TODAY + timedelta(days=3650))
    store.set_schedule(small.key, days)
    for survey in (small, intact):
        add(store, survey, random_reports(60))
    sql = f"UPDATE {table} SET {column} = {{}} WHERE {key} = ?"
    if database_file(settings.database):
        direct_access.run(sql.format("CAST(? AS TEXT)"), [day, small.key])
    else:
        direct_access.run(sql.format("?"), [day.decode(errors="replace"), small.key])
    keeper = keeper_at(store, settings, 1)
    with pytest.raises(DamagedSurveyError, match="small version 1"):
        keeper.work()
    assert (store.n_released(small.key), store.n_released(intact.key)) == (0, 25)
    assert [(line["survey"], line["errors"]) for line in lines()] == [
        ("small", ["DamagedSurveyError"])
    ]
    assert _releases(store, settings).why.endswith("failing: small version 1")
    answers = [client.get(f"/s/{slug}/definition.json") for slug in ("small", "zzz")]
    assert [answer.status_code for answer in answers] == [503, 200]
    assert {head.slug for head in store.survey_heads()} == {"small", "zzz"}
    # Nothing is deleted because of a damaged day.
    close(store, "zzz", TODAY)
    direct_access.run("UPDATE survey SET state = 'closed' WHERE key = ?", [small.key])
    assert "small" not in overdue(store, 0, TODAY) or table == "schedule"
    direct_access.run("UPDATE survey SET state = 'open' WHERE key = ?", [small.key])
    if table == "schedule":
        with pytest.raises(DesignError, match="damaged"):
            validate_schedule(store.versions("small")[0].schedule)
        store.set_schedule(small.key, days)
        keeper_at(store, settings, 2).work()
        assert store.n_released(small.key) == 25


def test_a_damaged_block_of_released_reports_is_named_and_not_written_again(
    store, settings, small, direct_access
):
    intact = publish_copy(store, "zzz")
    for survey in (small, intact):
        add(store, survey, random_reports(60))
    keeper_at(store, settings, 1).work()
    ((data,),) = direct_access.run(
        "SELECT data FROM block WHERE survey = ? AND question = 1", [small.key]
    )
    changed = bytes([(data[0] + 1) % 3, *data[1:]])
    direct_access.run(
        "UPDATE block SET data = ? WHERE survey = ? AND question = 1", [changed, small.key]
    )
    for survey in (small, intact):
        add(store, survey, random_reports(60))
    keeper = keeper_at(store, settings, 2)
    for _ in range(2):
        with pytest.raises(DamagedSurveyError, match="question number 1 differs"):
            keeper.work()
        assert _releases(store, settings).why.endswith("failing: small version 1")
    close(store, "small", TODAY)
    with pytest.raises(DamagedSurveyError):
        keeper_at(store, settings, 3).work()
    assert (store.n_released(small.key), store.n_released(intact.key)) == (25, 75)
    with store.snapshot() as snapshot:
        assert "block 0 differs from its digest" in check(snapshot).mistakes[0]


@pytest.mark.parametrize("damaged", ["survey = 2", "survey = 99", "survey = 0", "period = 7"])
def test_the_damaged_row_of_a_key_is_repaired_and_destroys_no_report(
    store, settings, small, direct_access, damaged
):
    intact = publish_copy(store, "zzz")
    for survey in (small, intact):
        add(store, survey, random_reports(60))
    direct_access.run(f"UPDATE sealing_key SET {damaged} WHERE survey = ?", [small.key])
    keeper_at(store, settings, 1).work()
    assert [store.n_released(survey.key) for survey in (small, intact)] == [25, 25]
    assert [store.n_pending(survey.key) for survey in (small, intact)] == [35, 35]
    close(store, "small", TODAY)
    keeper_at(store, settings, 2).work()
    assert (store.n_released(small.key), store.n_damaged()) == (60, {})


def test_a_takeover_deletes_no_report_whose_key_only_has_a_wrong_survey(
    store, settings, small, direct_access
):
    add(store, small, random_reports(60))
    direct_access.run("UPDATE sealing_key SET survey = 99 WHERE survey = ?", [small.key])
    assert keeper_at(store, settings).take_over() == 0
    assert keeper_at(store, settings, 1).work() == 25


def test_two_keys_of_one_period_are_reported_and_cause_no_endless_loop(
    store, settings, small, direct_access
):
    intact = publish_copy(store, "zzz")
    add(store, intact, random_reports(60))
    direct_access.run("UPDATE sealing_key SET survey = ? WHERE survey = ?", [intact.key, small.key])
    with pytest.raises(DamagedSurveyError, match="same period"):
        keeper_at(store, settings, 1).work()
    assert (store.n_released(small.key), store.n_pending(intact.key)) == (0, 60)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize("n_copy", [0, 1])
def test_a_flipped_bit_in_a_row_or_in_the_index_of_pending_batches_stops_no_release(
    store, settings, small, n_copy
):
    intact = publish_copy(store, "zzz")
    for _ in range(3):
        add(store, small, random_reports(30))
    add(store, intact, random_reports(60))
    store.vacuum()
    store.close_connections()
    file = database_file(settings.database)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        rows = connection.execute("SELECT batch FROM pending WHERE survey = 1 ORDER BY batch")
        batch = rows.fetchall()[1][0]
    content = bytearray(file.read_bytes())
    # The table and its index contain the random key of each batch.
    place = [i for i in range(len(content)) if content.startswith(batch, i)][n_copy]
    content[place] ^= 0x80
    file.write_bytes(content)
    keeper_at(store, settings, 1).work()
    # The row whose random key is damaged is lost; nothing is lost with the index.
    assert [store.n_released(survey.key) for survey in (small, intact)] == [50 * n_copy or 25, 25]
    assert store.n_damaged() == ({} if n_copy else {small.key: 1})
    assert store.find_damage() == []
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
