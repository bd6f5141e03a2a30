"""Field mode: people answer without a network, and every report arrives exactly once."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from survey.collect.incoming_reports import Intake
from tests.browser.accessible import RULES, VIOLATIONS
from tests.browser.respondent import answer, answer_and_send, heading, press, wait_sent
from tests.browser.tablet import arrived_bodies, check_all_arrived
from tests.browser.test_looks import TOO_SMALL
from tests.conftest import SMALL, TODAY
from tests.pictures import PETS, add_picture, webp

pytestmark = [pytest.mark.web]

LATER = datetime.now(UTC).date() + timedelta(days=40)
SLOTS, UPLOADED_SLOTS = 600, 25


@pytest.fixture
def survey(field_survey):
    return field_survey


def waiting(page, n):
    words = {0: "No answers are waiting", 1: "Answers from 1 person are waiting"}
    expect(page.get_by_text(words.get(n, f"Answers from {n} people are waiting"))).to_be_visible()


@pytest.mark.security
def test_reports_are_stored_without_a_network_survive_restarts_and_arrive_once(
    field_site, network, survey, tablet
):
    tablet.prepare(survey)
    network.mode = "off"
    tablet.interview()
    for day in ("2031-05-06", "1999-12-31"):
        tablet.restart(f"{day}T23:59:59Z")
        heading(tablet.page, "A small survey")
        tablet.interview()
    tablet.open_desk()
    waiting(tablet.page, 3)
    assert tablet.upload() == "There is no network. The tablet will try again."
    for mode in ("busy", "half", "cut"):
        network.mode = mode
        assert "will try again" in tablet.upload()
        waiting(tablet.page, 3)
    # The server stored what it did not acknowledge.
    assert arrived_bodies(field_site, survey) == sorted(tablet.bodies)
    network.mode = "on"
    assert tablet.upload() == "All answers are uploaded."
    waiting(tablet.page, 0)
    check_all_arrived(field_site, survey, tablet)
    assert field_site.store.n_pending(survey.key) == UPLOADED_SLOTS


def boxes_of(survey, upload):
    """Return the boxes in the body of an upload, which begins with the definition's hash."""
    length = survey.definition.report_bytes + 65 + 16
    assert len(upload) == 32 + UPLOADED_SLOTS * length
    return {upload[start : start + length] for start in range(32, len(upload), length)}


@pytest.mark.security
def test_an_interrupted_upload_is_sent_again_unchanged_until_it_is_confirmed(
    field_site, network, survey, tablet
):
    tablet.prepare(survey)
    network.mode = "off"
    tablet.interview()
    tablet.interview()
    tablet.open_desk()
    tablet.upload()
    # Without a network nothing is drawn: the first person's report would stay alone in its upload.
    assert not any(tablet.stored()["drawn"])
    assert tablet.uploads == []
    for mode in ("cut", "busy"):
        network.mode = mode
        tablet.upload()
    assert arrived_bodies(field_site, survey) == sorted(tablet.bodies)
    network.mode = "off"
    press(tablet.page, "Start an interview")
    # This report waits for the next upload.
    tablet.interview()
    tablet.restart()
    tablet.open_desk()
    network.mode = "half"
    tablet.upload()
    network.mode = "on"
    assert tablet.upload() == "All answers are uploaded."
    check_all_arrived(field_site, survey, tablet)
    *interrupted, last = tablet.uploads
    assert len(interrupted) > 3
    assert len({*interrupted}) == 1
    assert boxes_of(survey, interrupted[0]).isdisjoint(boxes_of(survey, last))


HELD_ANSWERS = """() => {
const { fetch } = window;
window.fetch = async (...request) => {
  const response = await fetch(...request);
  const isUpload = request[1].body?.length > 32;
  if (isUpload) await new Promise((run) => { window.release = run; });
  return response;
};
}"""


@pytest.mark.security
def test_two_windows_that_upload_lose_nothing_and_draw_no_upload_twice(
    field_site, network, survey, tablet
):
    tablet.prepare(survey)
    network.mode = "off"
    tablet.interview()
    slow = tablet.open_window()
    slow.evaluate(HELD_ANSWERS)
    press(slow, "For the interviewer")
    tablet.open_desk()
    network.mode = "on"
    press(slow, "Upload now")
    slow.wait_for_function("() => window.release")
    assert tablet.upload() == "All answers are uploaded."
    network.mode = "off"
    press(tablet.page, "Start an interview")
    tablet.interview()
    network.mode = "cut"
    tablet.open_desk()
    tablet.upload()
    # The slow window confirms the first upload now, while the second one is not confirmed.
    network.mode = "on"
    slow.evaluate("() => { const { release } = window; delete window.release; release(); }")
    slow.wait_for_function("() => window.release")
    slow.evaluate("release()")
    waiting(slow, 0)
    check_all_arrived(field_site, survey, tablet)
    assert len({*tablet.uploads}) == 2
    assert len(tablet.uploads) > 3


def test_pictures_are_on_the_tablet_before_the_first_interview(field_site, network, tablet):
    sha256 = add_picture(field_site.store, webp())
    text = PETS.replace("CAT", sha256)
    survey = field_site.publish_as("pets", f'kiosk = true\nfield_until = "{LATER}"\n{text}')
    page = tablet.page
    page.goto(tablet.link(survey))
    # A preparation whose pictures do not load leaves no survey on the tablet.
    page.route("**/pictures/*", lambda route: route.fulfill(status=404, body="no picture"))
    press(page, "Prepare this tablet")
    expect(page.get_by_text("The tablet is not ready.")).to_be_visible()
    page.unroute("**/pictures/*")
    press(page, "Try again")
    press(page, "Prepare this tablet")
    heading(page, "Pets")
    network.mode = "off"
    tablet.restart()
    press(tablet.page, "Start")
    image = tablet.page.get_by_role("img", name="A grey cat")
    expect(image).to_have_attribute("src", re.compile("^data:image/webp;base64,"))
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 64


@pytest.mark.security
def test_a_lost_tablet_contains_no_readable_report(network, survey, tablet, tmp_path):
    tablet.prepare(survey)
    before = tablet.stored()
    network.mode = "off"
    for _ in range(3):
        tablet.interview()
    after = tablet.stored()
    assert after["names"] == ["survey-field"]
    assert after["keys"] == ["queue", "survey"]
    assert after["fields"] == ["boxes", "drawn", "late", "used"]
    assert after["survey"] == ["bytes", "pictures", "server", "slug"]
    assert after["local"] == after["session"] == {}
    assert len(after["caches"]) == 1
    check_slots(before, after, survey)
    tablet.close()
    ids = {re.search(rb'"report_id":"([^"]+)"', body)[1] for body in tablet.bodies}
    texts = [b"report_id", b'"codes"', *ids]
    wide = [text.decode().encode("utf-16-le") for text in texts]
    pattern = re.compile(b"|".join(map(re.escape, [*texts, *wide])))
    for file in (tmp_path / "profile").rglob("*"):
        # The client's own code contains the names of the fields of a report.
        is_code = {"Cache", "CacheStorage", "Code Cache", "Cache_Data"} & {*file.parts}
        if file.is_file() and not is_code:
            assert not pattern.search(file.read_bytes()), file
    tablet.start()


def check_slots(before, after, survey):
    """Check that all slots have the same length and structure, and are in a new random order."""
    length = survey.definition.report_bytes + 65 + 16
    for state in (before, after):
        assert len(state["boxes"]) == len(state["used"]) == SLOTS
        assert {len(box) for box in state["boxes"]} == {length}
        # An uncompressed point of P-256, and bytes that look random.
        assert {box[0] for box in state["boxes"]} == {4}
        assert len({tuple(box) for box in state["boxes"]}) == SLOTS
    assert (sum(before["used"]), sum(after["used"])) == (0, 3)
    positions = {tuple(box): place for place, box in enumerate(before["boxes"])}
    kept = [
        (positions[tuple(box)], i)
        for i, box in enumerate(after["boxes"])
        if tuple(box) in positions
    ]
    assert len(kept) == SLOTS - 3
    # After a random permutation, one slot is expected to keep its place.
    assert sum(old == new for old, new in kept) < 12
    for kind in (0, 1):
        octets = [
            octet
            for box, used in zip(after["boxes"], after["used"], strict=True)
            if used == kind
            for octet in box[65:]
        ]
        mean = sum(octets) / len(octets)
        # The standard deviation of a uniform byte is 73.9.
        assert abs(mean - 127.5) < 5 * 73.9 / len(octets) ** 0.5


def test_a_full_tablet_says_so_before_anybody_answers(network, survey, tablet):
    tablet.prepare(survey)
    tablet.change_queue("queue.used.fill(1, 0, 591)")
    network.mode = "off"
    tablet.page.reload()
    heading(tablet.page, "For the interviewer")
    expect(tablet.page.get_by_text("This tablet cannot store more answers.")).to_be_visible()
    expect(tablet.page.get_by_role("button", name="Start an interview")).to_have_count(0)
    network.mode = "on"
    assert tablet.upload() == "All answers are uploaded."
    press(tablet.page, "Start an interview")
    heading(tablet.page, "A small survey")


FAILING_PUT = """() => {
const { put } = IDBObjectStore.prototype;
let failures = 2;
IDBObjectStore.prototype.put = function (...values) {
  failures -= 1;
  if (failures >= 0) throw new DOMException("full", "QuotaExceededError");
  return put.apply(this, values);
};
}"""


@pytest.mark.security
def test_a_report_that_cannot_be_stored_is_tried_again_and_never_randomized_again(
    field_site, survey, tablet
):
    tablet.prepare(survey)
    tablet.page.evaluate(FAILING_PUT)
    answer_and_send(tablet.page)
    for _ in range(2):
        heading(tablet.page, "Not stored yet")
        # Leaving would lose the report.
        press(tablet.page, "Leave now")
        press(tablet.page, "Try again")
    heading(tablet.page, "Stored. Thank you.")
    tablet.bodies.append(tablet.page.locator("pre").text_content().encode())
    assert sum(tablet.stored()["used"]) == 1
    press(tablet.page, "Start for the next person")
    tablet.open_desk()
    expect(tablet.page.get_by_text("All answers are uploaded.")).to_be_visible()
    check_all_arrived(field_site, survey, tablet)


@pytest.mark.security
def test_the_browser_asks_before_it_loses_answers_or_a_report_that_is_not_stored(survey, tablet):
    tablet.prepare(survey)
    page, questions = tablet.page, []

    def stay(dialog):
        questions.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    press(page, "Start")
    page.reload()
    heading(page, "A small survey")
    assert questions == []
    page.evaluate(FAILING_PUT)
    answer(page, ["Yes", "Never"])
    with page.expect_event("dialog"):
        page.evaluate("setTimeout(() => location.reload())")
    press(page, "Send")
    heading(page, "Not stored yet")
    with page.expect_event("dialog"):
        page.evaluate("setTimeout(() => location.reload())")
    assert questions == ["beforeunload"] * 2
    for _ in range(2):
        heading(page, "Not stored yet")
        press(page, "Try again")
    heading(page, "Stored. Thank you.")
    press(page, "Start for the next person")
    heading(page, "A small survey")
    answer(page, ["Yes", "Never"])
    press(page, "Leave now")
    heading(page, "A small survey")
    assert questions == ["beforeunload"] * 2


def test_after_the_last_day_a_tablet_removes_uploaded_reports_and_starts_no_interview(
    field_site, network, survey, tablet
):
    tablet.prepare(survey)
    network.mode = "off"
    tablet.interview()
    network.mode = "cut"
    tablet.open_desk()
    tablet.upload()
    network.mode = "off"
    press(tablet.page, "Start an interview")
    tablet.interview()
    field_site.store.close_survey(survey.slug, TODAY)
    tablet.open_desk()
    waiting(tablet.page, 2)
    network.mode = "on"
    assert "The survey has ended." in tablet.upload()
    waiting(tablet.page, 1)
    expect(tablet.page.get_by_role("button", name="Start an interview")).to_have_count(0)
    network.mode = "off"
    tablet.page.reload()
    heading(tablet.page, "For the interviewer")
    press(tablet.page, "Remove this survey from the tablet")
    expect(tablet.page.get_by_text("they are lost")).to_be_visible()
    press(tablet.page, "Keep it")
    waiting(tablet.page, 1)
    press(tablet.page, "Remove this survey from the tablet")
    network.mode = "on"
    press(tablet.page, "Remove it")
    expect(tablet.page.get_by_text("This tablet is not ready yet.")).to_be_visible()


def test_the_start_page_gives_way_when_the_server_says_that_the_survey_has_ended(
    field_site, survey, tablet
):
    tablet.prepare(survey)
    field_site.store.close_survey(survey.slug, TODAY)
    tablet.page.reload()
    heading(tablet.page, "For the interviewer")
    expect(tablet.page.get_by_role("status")).to_contain_text("The survey has ended.")


def test_after_the_last_day_a_tablet_starts_no_interview_and_no_tablet_is_prepared(survey, tablet):
    tablet.prepare(survey)
    # The server's answer from the day after: its clock cannot be moved here.
    answer_ = {"type": "urn:survey:late-boxes", "stored": []}
    tablet.context.route("**/s/*/field", lambda route: route.fulfill(status=410, json=answer_))
    tablet.page.reload()
    heading(tablet.page, "For the interviewer")
    expect(tablet.page.get_by_role("button", name="Start an interview")).to_have_count(0)
    press(tablet.page, "Remove this survey from the tablet")
    press(tablet.page, "Remove it")
    expect(tablet.page.get_by_text("This tablet is not ready yet.")).to_be_visible()
    tablet.page.goto(tablet.link(survey))
    heading(tablet.page, "This survey is closed")


@pytest.mark.security
def test_an_upload_that_the_tablet_cannot_mark_or_remove_is_repeated_and_counts_once(
    field_site, network, survey, tablet
):
    tablet.prepare(survey)
    network.mode = "off"
    tablet.interview()
    tablet.open_desk()
    network.mode = "on"
    tablet.page.evaluate(FAILING_PUT)
    for _ in range(2):
        assert "cannot use its storage" in tablet.upload()
    assert tablet.uploads == []
    network.mode = "cut"
    tablet.upload()
    network.mode = "on"
    tablet.page.evaluate(FAILING_PUT)
    for _ in range(2):
        assert "cannot use its storage" in tablet.upload()
        waiting(tablet.page, 1)
    assert tablet.upload() == "All answers are uploaded."
    waiting(tablet.page, 0)
    check_all_arrived(field_site, survey, tablet)
    assert len({*tablet.uploads}) == 1


LOST_CONNECTION = """() => {
const { transaction } = IDBDatabase.prototype;
IDBDatabase.prototype.transaction = function (...values) {
  this.close();
  IDBDatabase.prototype.transaction = transaction;
  return this.transaction(...values);
};
}"""
"""The next connection to the database is lost, as on tablets that were asleep."""


def test_a_report_is_stored_after_the_browser_has_lost_its_connection_to_the_database(
    survey, tablet
):
    tablet.prepare(survey)
    answer(tablet.page, ["Yes", "Never"])
    tablet.page.evaluate(LOST_CONNECTION)
    press(tablet.page, "Send")
    heading(tablet.page, "Not stored yet")
    press(tablet.page, "Try again")
    heading(tablet.page, "Stored. Thank you.")


def test_after_the_end_a_tablet_drops_all_answers_that_were_imported_from_its_file(
    field_site, network, survey, tablet
):
    tablet.prepare(survey)
    # More reports than one upload contains.
    tablet.change_queue("queue.used.fill(1, 0, 60)")
    network.mode = "off"
    tablet.page.reload()
    heading(tablet.page, "A small survey")
    tablet.open_desk()
    waiting(tablet.page, 60)
    content = save_file(tablet, survey)
    Intake(field_site.store).receive_file(survey.slug, content, datetime.now(UTC).date())
    press(tablet.page, "Start an interview")
    tablet.interview()
    field_site.store.close_survey(survey.slug, TODAY)
    network.mode = "on"
    tablet.open_desk()
    assert "The survey has ended." in tablet.upload()
    waiting(tablet.page, 1)
    n = len(tablet.uploads)
    tablet.page.reload()
    heading(tablet.page, "For the interviewer")
    expect(tablet.page.get_by_role("status")).to_contain_text("The survey has ended.")
    assert len(tablet.uploads) == n


def save_file(tablet, survey):
    with tablet.page.expect_download() as download:
        press(tablet.page, "Save the answers as a file")
    assert download.value.suggested_filename == f"field-{survey.slug}.queue"
    return download.value.path().read_bytes()


def interview_elsewhere(tablet):
    """Interview one person in another window, and close it."""
    desk, tablet.page = tablet.page, tablet.open_window()
    tablet.interview()
    tablet.page.close()
    tablet.page = desk


def test_a_survey_is_not_removed_with_answers_that_another_window_has_stored(
    network, survey, tablet
):
    tablet.prepare(survey)
    network.mode = "off"
    desk = tablet.page
    tablet.open_desk()
    waiting(desk, 0)
    press(desk, "Remove this survey from the tablet")
    heading(desk, "Remove this survey?")
    interview_elsewhere(tablet)
    press(desk, "Remove it")
    waiting(desk, 1)
    expect(desk.get_by_text("they are lost")).to_be_visible()
    heading(desk, "Remove this survey?")
    press(desk, "Keep it")
    waiting(desk, 1)
    interview_elsewhere(tablet)
    # Headless windows are always visible.
    desk.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    waiting(desk, 2)
    press(desk, "Remove this survey from the tablet")
    press(desk, "Remove it")
    desk.wait_for_function("async () => (await caches.keys()).length === 0")


@pytest.mark.security
def test_a_survey_is_not_removed_while_it_is_open_in_another_window(
    field_site, network, survey, tablet
):
    tablet.prepare(survey)
    desk = tablet.page
    tablet.open_desk()
    press(desk, "Remove this survey from the tablet")
    expect(desk.get_by_role("button", name="Remove it")).to_be_visible()
    other = tablet.open_window()
    answer(other, ["Yes", "Never"])
    press(desk, "Remove it")
    for _ in range(2):
        expect(desk.get_by_text("This survey is open in another window.")).to_be_visible()
        expect(desk.get_by_role("button", name="Remove it")).to_have_count(0)
        press(desk, "Keep it")
        press(desk, "Remove this survey from the tablet")
    press(other, "Send")
    heading(other, "Stored. Thank you.")
    other.close()
    press(desk, "Keep it")
    press(desk, "Remove this survey from the tablet")
    press(desk, "Remove it")
    expect(desk.get_by_text("This tablet is not ready yet.")).to_be_visible()


@pytest.mark.security
def test_a_window_whose_survey_was_removed_says_so_and_leaves_the_next_survey_alone(
    field_site, network, survey, tablet
):
    # Safari 15.0 has no locks.
    tablet.context.add_init_script(
        "Object.defineProperty(Navigator.prototype, 'locks', { value: undefined })"
    )
    tablet.prepare(survey)
    other, old = tablet.open_window(), tablet.open_window()
    answer(other, ["Yes", "Never"])
    press(old, "For the interviewer")
    tablet.open_desk()
    press(tablet.page, "Remove this survey from the tablet")
    press(tablet.page, "Remove it")
    expect(tablet.page.get_by_text("This tablet is not ready yet.")).to_be_visible()
    text = SMALL.replace("A small survey", "The next survey")
    tablet.page.goto(
        tablet.link(field_site.publish(f'kiosk = true\nfield_until = "{LATER}"\n{text}'))
    )
    press(tablet.page, "Prepare this tablet")
    heading(tablet.page, "The next survey")
    before = tablet.stored()
    press(other, "Send")
    expect(other.get_by_text("Your answers were not stored.")).to_be_visible()
    assert tablet.stored() == before
    press(other, "Leave now")
    heading(other, "The next survey")
    old.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    heading(old, "The next survey")


def test_a_saved_file_replaces_an_upload_and_hides_the_number_of_reports(
    field_site, network, survey, tablet
):
    tablet.prepare(survey)
    network.mode = "off"
    sizes = set()
    for _ in range(2):
        tablet.interview()
        tablet.open_desk()
        content = save_file(tablet, survey)
        sizes.add(len(content))
        Intake(field_site.store).receive_file(survey.slug, content, datetime.now(UTC).date())
        press(tablet.page, "Start an interview")
    assert len(sizes) == 1
    check_all_arrived(field_site, survey, tablet)
    network.mode = "on"
    tablet.open_desk()
    assert tablet.upload() == "All answers are uploaded."
    check_all_arrived(field_site, survey, tablet)


def test_another_survey_on_the_same_tablet_leaves_the_queue_and_the_files_alone(
    field_site, network, survey, tablet
):
    tablet.prepare(survey)
    network.mode = "off"
    tablet.interview()
    before = tablet.stored()
    network.mode = "on"
    other = field_site.publish()
    tablet.page.goto(f"{tablet.url}/s/{other.slug}#d={other.sha256[:32]}")
    answer_and_send(tablet.page)
    # The server then asks the browser to clear its cache.
    wait_sent(tablet.page)
    network.mode = "off"
    tablet.restart()
    heading(tablet.page, "A small survey")
    after = tablet.stored()
    assert (after["boxes"], after["caches"]) == (before["boxes"], before["caches"])
    another = field_site.publish(f'kiosk = true\nfield_until = "{LATER}"\n{SMALL}')
    tablet.page.goto(tablet.link(another))
    expect(tablet.page.get_by_text("You opened the link to another survey")).to_be_visible()
    waiting(tablet.page, 1)


def test_no_answer_of_one_person_remains_for_the_next_one(survey, tablet):
    tablet.prepare(survey)
    answer(tablet.page, ["Yes", "Never"])
    press(tablet.page, "Leave now")
    heading(tablet.page, "A small survey")
    press(tablet.page, "Start")
    assert tablet.page.locator("input:checked").count() == 0
    tablet.page.reload()
    tablet.interview()
    assert tablet.page.locator("pre").count() == 0
    assert tablet.page.evaluate("history.state") is None


def test_pressing_shift_three_times_on_a_tablet_works_like_leave_now(survey, tablet):
    tablet.prepare(survey)
    page = tablet.page
    answer(page, ["Yes", "Never"])
    for key in ("Shift", "Shift", "a", "Shift"):
        page.keyboard.press(key)
    heading(page, "Check your answers")
    for _ in range(2):
        page.keyboard.press("Shift")
    heading(page, "A small survey")
    page.evaluate(FAILING_PUT)
    answer_and_send(page)
    heading(page, "Not stored yet")
    # Leaving would lose the report.
    for _ in range(3):
        page.keyboard.press("Shift")
    for _ in range(2):
        press(page, "Try again")
    heading(page, "Stored. Thank you.")
    for _ in range(3):
        page.keyboard.press("Shift")
    heading(page, "A small survey")


IN_ARABIC = SMALL.replace(
    'title = "A small survey"', 'title = { en = "A small survey", ar = "استبيان قصير" }'
)


def field_states(tablet, network, survey):
    """Walk through the states of field mode; yield the name of each."""
    page = tablet.page
    page.goto(tablet.link(survey))
    heading(page, "Get this tablet ready")
    yield "prepare"
    press(page, "Prepare this tablet")
    heading(page, "A small survey")
    network.mode = "off"
    yield "start"
    answer_and_send(page)
    heading(page, "Stored. Thank you.")
    yield "stored"
    press(page, "Start for the next person")
    tablet.open_desk()
    yield "desk"
    press(page, "Remove this survey from the tablet")
    yield "remove"
    tablet.change_queue("queue.late = true")
    page.reload()
    heading(page, "For the interviewer")
    yield "late"


def test_every_state_is_accessible_in_light_dark_and_right_to_left(field_site, network, tablet):
    survey = field_site.publish(f'kiosk = true\nfield_until = "{LATER}"\n{IN_ARABIC}')
    tablet.context.add_init_script(AXE_SCRIPT)
    page, faults = tablet.page, {}
    for state in field_states(tablet, network, survey):
        for language, scheme in (("ar", "dark"), ("en", "light")):
            page.emulate_media(color_scheme=scheme)
            page.locator("#tools select").select_option(language)
            found = [*page.evaluate(VIOLATIONS, RULES), *page.evaluate(TOO_SMALL)]
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append("scrolls sideways")
            if found:
                faults[state, language] = found
    assert faults == {}
