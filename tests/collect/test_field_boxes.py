"""Field mode on the server: boxes are stored once, and only the keeper opens them."""

from __future__ import annotations

import base64
import json
import os
from datetime import date, timedelta

import pytest

from survey.collect.incoming_reports import Intake
from survey.collect.publication import close, publish
from survey.collect.release import Keeper
from survey.errors import (
    ClosedError,
    ConflictError,
    DefinitionError,
    DesignError,
    LateBoxesError,
    NotFoundError,
    ReportError,
    StoreBusyError,
    StoreError,
)
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load, source_of
from survey.settings import Caps
from survey.store import FieldKeys, PrivateKeys, Schedule
from survey.store.field_boxes import box_bytes, seal_box
from tests.conftest import SMALL, TODAY

HOUR = 3600
UNTIL = TODAY + timedelta(days=30)
FIELD = f'kiosk = true\nfield_until = "{UNTIL}"\n{SMALL}'


class Clock:
    now = 1_795_000_000.0 // HOUR * HOUR

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def keys(tmp_path):
    return PrivateKeys(tmp_path / "keys")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keeper(store, keys, clock):
    keeper = Keeper(store, keys, HOUR, clock=clock)
    with keys.lock():
        keeper.work()
        yield keeper


@pytest.fixture
def survey(store, keeper):
    published = publish(store, load(FIELD.encode(), "s.toml", Caps()), TODAY)
    keeper.work()
    return published


def body(survey, first=0, second=1):
    report_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
    length = survey.definition.report_bytes
    return report_body(survey.sha256, report_id, [first, second], length=length)


def boxes(survey, n, **codes):
    return [seal_box(survey.definition, body(survey, **codes)) for _ in range(n)]


def dummy(survey):
    return seal_box(survey.definition, bytes(survey.definition.report_bytes))


def upload(store, survey, parts, today=TODAY):
    Intake(store).receive_boxes(survey.slug, survey.sha256, b"".join(parts), today)


def released(store, survey):
    return store.n_released(survey.key)


def next_release(keeper, clock):
    clock.now += HOUR
    keeper.work()


def test_the_keeper_opens_boxes_counts_each_once_and_drops_dummies_and_forgeries(
    store, survey, keeper, clock
):
    sent = boxes(survey, 60)
    forged = [seal_box(survey.definition, body(survey, first=77)), os.urandom(len(sent[0]))]
    upload(store, survey, [*sent[:40], dummy(survey), *forged])
    upload(store, survey, [*sent[20:], dummy(survey)])
    assert store.n_pending(survey.key) == 60 + 4
    next_release(keeper, clock)
    assert released(store, survey) == 25
    assert store.n_pending(survey.key) == 35
    # A tablet that gets no response uploads everything again.
    upload(store, survey, sent)
    next_release(keeper, clock)
    close(store, survey.slug, TODAY)
    next_release(keeper, clock)
    assert released(store, survey) == 60
    tallies = store.tallies(survey.key)
    assert tallies


def test_a_report_that_arrives_without_a_tablet_is_counted_as_well(store, survey, keeper, clock):
    intake = Intake(store)
    for _ in range(50):
        intake.receive(survey.slug, body(survey), TODAY)
    upload(store, survey, boxes(survey, 50))
    next_release(keeper, clock)
    assert released(store, survey) == 75


def test_a_box_of_another_definition_cannot_be_opened(store, survey, keeper, clock):
    second = publish(
        store, load(FIELD.replace("A small", "Another").encode(), "s.toml", Caps()), TODAY
    )
    keeper.work()
    assert second.definition.field.key != survey.definition.field.key
    upload(store, survey, boxes(second, 30))
    upload(store, second, boxes(second, 50))
    close(store, survey.slug, TODAY)
    next_release(keeper, clock)
    assert (released(store, survey), released(store, second)) == (0, 50)


def test_the_error_after_the_last_day_lists_the_boxes_that_came_in_time(
    store, survey, keeper, clock
):
    early, late = boxes(survey, 2), boxes(survey, 1)
    upload(store, survey, early, UNTIL)
    upload(store, survey, early, UNTIL + timedelta(days=1))
    with pytest.raises(LateBoxesError) as caught:
        upload(store, survey, [late[0], *early], UNTIL + timedelta(days=1))
    assert caught.value.stored == [1, 2]
    # Without boxes, a tablet asks whether it may start another interview.
    upload(store, survey, [], UNTIL)
    with pytest.raises(LateBoxesError):
        upload(store, survey, [], UNTIL + timedelta(days=1))
    close(store, survey.slug, TODAY)
    with pytest.raises(ClosedError):
        upload(store, survey, late)
    upload(store, survey, early)


def test_after_the_last_day_nothing_shows_which_boxes_contained_reports(
    store, survey, keeper, clock
):
    sent = [box for _ in range(60) for box in (*boxes(survey, 1), dummy(survey))]
    forged = os.urandom(len(sent[0]))
    upload(store, survey, [*sent, forged], UNTIL)
    next_release(keeper, clock)
    assert released(store, survey) == 25
    new = dummy(survey)
    with pytest.raises(LateBoxesError) as caught:
        upload(store, survey, [new, *sent, forged], UNTIL + timedelta(days=1))
    assert caught.value.stored == [*range(1, 122)]


def test_uploads_of_a_wrong_length_or_survey_are_refused(store, survey, small):
    box = boxes(survey, 1)[0]
    for parts in ([box[:-1]], [box, b"x"]):
        with pytest.raises(ReportError, match=f"{box_bytes(survey.definition):,} bytes each"):
            upload(store, survey, parts)
    with pytest.raises(NotFoundError, match="no field mode"):
        upload(store, small, [box])


def test_the_private_key_exists_from_before_publication_until_the_last_release(
    store, survey, keeper, keys, clock
):
    field_keys = FieldKeys(keys.directory)
    key = survey.definition.field.key
    assert field_keys.find_field_key(key)
    assert key not in [spare.public_key for spare in store.spare_field_keys()]
    upload(store, survey, boxes(survey, 30))
    close(store, survey.slug, TODAY)
    keeper.work()
    assert field_keys.find_field_key(key)
    next_release(keeper, clock)
    keeper.work()
    assert released(store, survey) == 30
    assert field_keys.find_field_key(key) is None
    assert len(field_keys.public_keys()) == 2


def test_a_lost_key_stops_releases_until_the_operator_gives_up_its_boxes(
    store, survey, keeper, keys, clock
):
    upload(store, survey, boxes(survey, 30))
    FieldKeys(keys.directory).destroy(survey.definition.field.key)
    with pytest.raises(StoreError, match="field mode is missing"):
        next_release(keeper, clock)
    assert keeper.take_over() == 30
    assert store.n_pending(survey.key) == 0
    next_release(keeper, clock)


def test_only_surveys_with_field_mode_have_its_key_and_day(survey, small):
    form = json.loads(survey.canonical)
    assert form["field"]["until"] == str(UNTIL)
    assert len(base64.urlsafe_b64decode(form["field"]["key"] + "=")) == 65
    assert "field" not in json.loads(small.canonical)
    assert survey.definition.field.until == date.fromisoformat(form["field"]["until"])


def file_of(survey, parts):
    return f"survey-field 1 {survey.slug} {survey.sha256}\n".encode() + b"".join(parts)


def test_a_tablets_file_and_its_uploads_count_each_report_once(store, survey, keeper, clock):
    intake, sent = Intake(store), boxes(survey, 40)
    upload(store, survey, sent[:20])
    content = file_of(survey, [*sent, dummy(survey)])
    for _ in range(2):
        assert intake.receive_file(survey.slug, content, TODAY) == 41
    upload(store, survey, sent[20:])
    close(store, survey.slug, TODAY)
    next_release(keeper, clock)
    assert released(store, survey) == 40


def test_files_that_no_tablet_saved_for_this_survey_are_refused(store, survey):
    intake, content = Intake(store), file_of(survey, boxes(survey, 1))
    other = content.replace(b"1 small", b"1 other")
    for wrong, words in [
        (b"", "the first line of the file is truncated"),
        (b"survey-fi", "the first line of the file is truncated"),
        (content[:40], "the first line of the file is truncated"),
        (content.partition(b"\n")[0], "truncated or altered: 0 bytes"),
        (content[:-1], "truncated or altered"),
        (b"GIF89a\n", "not a file"),
        (content.replace(survey.sha256.encode(), b"0" * 64), "a version of small"),
        (other, "belongs to the survey other"),
        (content + b"x", "boxes of"),
    ]:
        with pytest.raises(ReportError, match=words):
            intake.receive_file(survey.slug, wrong, TODAY)


def test_field_mode_needs_shared_devices_a_future_day_and_a_key_from_the_keeper(store, keeper):
    with pytest.raises(DefinitionError, match="field_until: needs kiosk = true"):
        load(FIELD.replace("kiosk = true", "kiosk = false").encode(), "s.toml", Caps())
    with pytest.raises(DefinitionError, match="field_until: must be a day such as 2026-12-31"):
        load(FIELD.replace(str(UNTIL), "3 May").encode(), "s.toml", Caps())
    survey = load(FIELD.encode(), "s.toml", Caps())
    with pytest.raises(DesignError, match="a day in the past"):
        publish(store, survey, UNTIL + timedelta(days=1))
    with pytest.raises(DesignError, match="its tablets may upload responses until"):
        publish(store, survey, TODAY, Schedule(closes=UNTIL - timedelta(days=1)))
    for spare in store.spare_field_keys():
        store.delete_keys([spare])
    with pytest.raises(StoreBusyError, match="needs a key from the keeper"):
        publish(store, survey, TODAY)
    keeper.work()
    published = publish(store, survey, TODAY)
    with pytest.raises(ConflictError, match="same content"):
        publish(store, survey, TODAY)
    assert source_of(published.definition)["field_until"] == str(UNTIL)


def test_tablets_can_upload_after_a_newer_version_and_above_the_response_limit(
    store, survey, keeper, clock
):
    text = FIELD.replace("A small", "A newer").encode()
    newer = publish(store, load(text, "s.toml", Caps()), TODAY, Schedule(maximum=25))
    keeper.work()
    for version in (survey, newer):
        for _ in range(2):
            upload(store, version, boxes(version, 60), UNTIL)
            next_release(keeper, clock)
    close(store, survey.slug, TODAY)
    next_release(keeper, clock)
    assert (released(store, survey), released(store, newer)) == (120, 120)
