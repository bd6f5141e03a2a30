"""The builder without a browser: forms create, check, test and publish a survey."""

from __future__ import annotations

import html
import io
import json
import re
from fractions import Fraction
from itertools import combinations
from math import ceil, prod

import pytest

from survey.collect.publication import close, publish
from survey.questionnaire.drafts.check import check_draft
from survey.questionnaire.drafts.conversion import definition_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.kinds import KINDS
from survey.questionnaire.loading import load
from survey.research.builder import publication
from survey.results.charts import PALETTES
from survey.results.plan.chart import SHADES
from survey.settings import Caps
from survey.store import Plan
from tests.conftest import EMAIL, SMALL, TODAY, hashed_password
from tests.web.researchers import send, sign_in, token

DRAFTS = "/research/drafts"
OTHER_EMAIL = "ben@example.org"


@pytest.fixture
def ada(client, researcher):
    assert sign_in(client).status_code == 302
    return client


@pytest.fixture
def ben(app, store):
    """Return the client of a second editor, who has no draft yet."""
    store.add_researcher(OTHER_EMAIL, hashed_password())
    client = app.test_client()
    assert sign_in(client, OTHER_EMAIL).status_code == 302
    return client


def content_of(store, slug: str) -> DraftContent:
    return DraftContent.from_json(store.draft(int(slug.removeprefix("trial-"))).content)


def begin(client, title: str = "Night work") -> str:
    """Create a draft and return its slug."""
    response = send(client, f"{DRAFTS}/new", title=title)
    assert response.status_code == 302, response.text
    return response.location.rpartition("/")[2]


def do(client, slug: str, action: str, **extra):
    page = client.get(f"{DRAFTS}/{slug}")
    revision = re.search(r'name="revision" value="(\d+)"', page.text)[1]
    data = {"csrf_token": token(page), "revision": revision, "do": action, **extra}
    return client.post(f"{DRAFTS}/{slug}/edit", data=data)


def add_question(client, slug: str, kind: str, page: int = 1) -> str:
    """Add a question and return the address of its edit form."""
    response = do(client, slug, f"question-add {page}", type=kind)
    assert response.status_code == 302
    return response.location.partition("?")[0]


def fields(page) -> dict[str, str]:
    """Return the fields that a browser would send if the edit form were unchanged."""
    values: dict[str, str] = {}
    sheet = page.text[page.text.index("data-draft") :]
    for tag in re.findall(r"<input[^>]*>", sheet):
        name, kind = re.search(r'name="([^"]*)"', tag), re.search(r'type="([^"]*)"', tag)
        if not name or (kind and kind[1] == "checkbox" and " checked" not in tag):
            continue
        value = re.search(r'value="([^"]*)"', tag)
        values[name[1]] = value[1] if value else ""
    for name, text in re.findall(
        r'<textarea[^>]*name="([^"]*)"[^>]*>\r?\n?(.*?)</textarea>', sheet, re.S
    ):
        values[name] = text
    for name, options in re.findall(r'<select[^>]*name="([^"]*)"[^>]*>(.*?)</select>', sheet, re.S):
        selection = re.search(r'<option selected value="([^"]*)"', options)
        values[name] = selection[1] if selection else ""
    return {name: html.unescape(text) for name, text in values.items()}


def save(client, path: str, *, do: str = "save", opened=None, **changed):
    """Open an edit form, change some fields and send it."""
    form = {**(opened or fields(client.get(path))), **changed, "do": do}
    return client.post(path, data=form)


def add_two_questions(client, slug: str) -> None:
    """Add two questions that can be published."""
    first = add_question(client, slug, "yes_no")
    assert save(client, first, text="Do you work at night?", id="night").status_code == 302
    second = add_question(client, slug, "single_choice")
    save(client, second, text="How often?", id="often", **rows("Never", "Sometimes", "Always"))


def rows(*labels: str) -> dict[str, str]:
    return {f"options-{i}-label": label for i, label in enumerate(labels)}


def test_a_survey_is_created_and_published_without_scripts(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    page = ada.get(f"{DRAFTS}/{slug}/publish")
    assert "To be mended first" not in page.text
    revision = re.search(r'name="revision"[^>]*value="(\d+)"', page.text)[1]
    response = send(ada, f"{DRAFTS}/{slug}/publish", agreed="y", revision=revision)
    assert response.location == "/research/surveys/night-work/collect"
    (survey,) = store.versions("night-work")
    # The confirmation, with a link to copy and the next step, appears once.
    opened, again = (ada.get(response.location).text for _ in range(2))
    banner = opened[opened.index('<h2 id="published">Published</h2>') :].partition("</section>")[0]
    assert f'value="http://127.0.0.1:8000/s/night-work#d={survey.sha256[:32]}"' in banner
    assert 'data-copy="respondents-link"' in banner
    assert 'href="/research/surveys/night-work/share"' in banner
    assert 'id="published"' not in again
    assert [question.id for question in survey.definition.questions] == ["night", "often"]
    options = [option.id for option in survey.definition.questions[1].options]
    assert options == ["never", "sometimes", "always", "prefer_not_to_say"]
    assert {question.channel.ratio for question in survey.definition.questions} == {3}
    assert store.drafts() == []
    assert store.roles(store.researcher(EMAIL).key) == {"night-work": "owner"}


def button(page, label: str) -> str:
    """Return the action of the button with a label."""
    return html.unescape(re.search(rf'name="do" value="([^"]*)">{re.escape(label)}<', page.text)[1])


def test_a_wrong_range_offers_a_button_with_the_nearest_valid_value(ada, store):
    slug = begin(ada)
    ranges = {
        "number": ({"low": "0", "high": "30", "step": "7"}, "Use 28", ("0", "28", "7")),
        "date": (
            {"low": "2026-10-01", "high": "2026-11-01", "step": "7"},
            "Use 29 October 2026",
            ("2026-10-01", "2026-10-29", "7"),
        ),
    }
    for kind, (typed, label, expected) in ranges.items():
        path = add_question(ada, slug, kind)
        page = ada.get(save(ada, path, text="How many?", **typed).location)
        assert "is not a whole number of steps" in page.text
        assert "nearest allowed value" not in page.text, kind
        looked = save(ada, path, do="look").json
        assert looked["remedies"] == {"high": {"label": label, "action": button(page, label)}}
        assert save(ada, path, do=button(page, label), help="Kept").status_code == 302
        question = list(content_of(store, slug).questions)[-1]
        assert tuple(question[name] for name in ("low", "high", "step")) == expected
        assert question["help"]["en"] == "Kept"
        assert check_draft(content_of(store, slug), Caps()).mistakes == (), kind


def test_a_number_becomes_a_slider_with_labels_and_a_coarser_step_in_one_click(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "number")
    typed = {"low": "0", "high": "200", "step": "1", "slider": "y", "low_label": "Not at all"}
    page = ada.get(save(ada, path, text="How sure are you?", **typed).location)
    assert "untick “Show as a slider” to ask for a typed number" in page.text
    assert save(ada, path, do=button(page, "Use 2")).status_code == 302
    assert check_draft(content_of(store, slug), Caps()).mistakes == ()
    (question,) = definition_from(content_of(store, slug))["pages"][0]["questions"]
    assert (question["slider"], question["low_label"], question["step"]) == (
        True,
        "Not at all",
        "2",
    )
    saved = ada.get(path).text
    assert re.search('name="slider"[^>]* checked', saved) or re.search(
        'checked[^>]* name="slider"', saved
    )
    key = path.rpartition("/")[2]
    preview = ada.get(f"{DRAFTS}/{slug}/preview/page?question={key}")
    assert "Not at all" in html.unescape(preview.text)
    assert 'name="slider"' not in ada.get(add_question(ada, slug, "date")).text


def test_a_value_that_is_too_weak_names_the_maximum_and_the_slider_ends_there(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    page = ada.get(save(ada, path, text="Asleep?", way="epsilon", value="8").location)
    assert "With 3 answers the maximum is 5.288" in page.text
    limits = json.loads(html.unescape(re.search(r'data-limits="([^"]*)"', page.text)[1]))
    assert limits["epsilon"] == [0.001, 5.288]
    assert limits["truth_probability"] == [0.334, 0.99]
    alone = save(ada, path, do="look", prefer_not_to_say="").json
    assert alone["limits"]["epsilon"] == [0.001, 4.595]
    save(ada, path, do=button(page, "Use 5.288"))
    question = next(iter(content_of(store, slug).questions))
    assert (question["way"], question["value"]) == ("epsilon", "5.288")
    # A fabricated button changes no other field.
    save(ada, path, do="nearest type=number text=x low=<b>")
    question = next(iter(content_of(store, slug).questions))
    assert (question["type"], question["text"]["en"]) == ("yes_no", "Asleep?")


def test_publishing_a_draft_twice_publishes_one_survey(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    path = f"{DRAFTS}/{slug}/publish"
    page = ada.get(path)
    data = {
        "csrf_token": token(page),
        "revision": re.search(r'name="revision"[^>]*value="(\d+)"', page.text)[1],
        "agreed": "y",
    }
    assert ada.post(path, data=data).status_code == 302
    again = ada.post(path, data=data)
    assert again.status_code == 302
    assert again.location == "/research/surveys/night-work"
    assert len(store.versions("night-work")) == 1


def test_an_interrupted_publication_is_completed_by_a_second_attempt(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    survey = load(
        json.dumps(definition_from(content_of(store, slug))).encode(), "draft.json", Caps()
    )
    publish(store, survey, TODAY)
    page = ada.get(f"{DRAFTS}/{slug}/publish")
    revision = re.search(r'name="revision"[^>]*value="(\d+)"', page.text)[1]
    response = send(ada, f"{DRAFTS}/{slug}/publish", agreed="y", revision=revision)
    assert response.status_code == 302
    assert len(store.versions("night-work")) == 1
    assert store.drafts() == []


def test_a_draft_changed_by_a_colleague_must_be_reviewed_again_before_publication(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    page = ada.get(f"{DRAFTS}/{slug}/publish")
    revision = re.search(r'name="revision"[^>]*value="(\d+)"', page.text)[1]
    do(ada, slug, "page-add 0")
    do(ada, slug, f"page-remove {content_of(store, slug).pages[1].key}")
    response = send(ada, f"{DRAFTS}/{slug}/publish", agreed="y", revision=revision)
    assert response.status_code == 422
    assert f"{EMAIL} changed the draft after you opened this page" in response.text
    assert store.versions("night-work") == []


def test_every_error_appears_beside_its_field_and_on_the_checklist(ada):
    slug = begin(ada)
    path = add_question(ada, slug, "scale")
    save(ada, path, text="", low="7", high="x", id="A b", way="epsilon", value="99")
    page = ada.get(path).text
    for name in ("text", "id", "high"):
        assert f'id="{name}-error"' in page
    checklist = ada.get(f"{DRAFTS}/{slug}/publish").text
    assert f"{path}#text" in checklist
    assert "Publish night-work" not in checklist
    assert "Question is missing" in checklist


def test_weak_protection_is_rejected_with_the_maximum(ada):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    save(ada, path, text="Do you?", way="epsilon", value="99")
    page = ada.get(path).text
    assert 'id="value-error"' in page
    assert re.search(r"With 3 answers the maximum is \d\.\d+<", page)


def test_a_page_without_questions_has_a_clear_error_message(ada):
    slug = begin(ada)
    do(ada, slug, "page-add 0")
    assert "This page has no questions; add one or remove" in ada.get(f"{DRAFTS}/{slug}").text


def test_invalid_text_is_saved_in_the_draft(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "number")
    save(ada, path, text="How many?", low="many", high="", step="0")
    question = next(content_of(store, slug).questions)
    assert (question["low"], question["step"]) == ("many", "0")


def test_feedback_shows_margin_privacy_and_total_without_saving(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    messages = save(ada, path, do="look", text="Do you?", way="truth_probability", value="3/4").json
    assert messages["errors"] == {}
    live = messages["live"]
    assert "epsilon 1.792 = ln(6), truth probability 0.750" in live["epsilon"]
    assert (
        "about 75 responses say “Yes”. If 100 people have another answer, about 12.5 do"
        in live["chance"]
    )
    assert "10% becomes at most 40%" in live["bounds"]
    assert "With 1,000 responses, the margin of error is ±" in live["margins"]
    assert "For ±5.0 points, about" in live["reports"]
    assert "Total epsilon 1.792; the maximum on this server is 20." in live["extent"]
    assert live["chart"].startswith(f"{DRAFTS}/{slug}/tradeoff.svg?")
    assert next(content_of(store, slug).questions)["value"] == ""
    chart = ada.get(live["chart"])
    assert chart.content_type == "image/svg+xml"
    assert "What privacy costs" in chart.text
    small = {look: ada.get(f"{live['chart']}&look={look}").text for look in PALETTES}
    for look, text in small.items():
        assert "What privacy costs" not in text
        assert all(shade in text for shade in SHADES[look][::5]), look
        assert PALETTES[look].ink in text, look


@pytest.mark.parametrize(
    ("kind", "design"),
    [
        ("number", {"low": "0", "high": "40"}),
        ("date", {"low": "2020-01-01", "high": "2020-03-01"}),
        ("multiple_choice", {"options-0-label": "A", "options-1-label": "B"}),
        ("scale", {"low": "0", "high": "9", "mechanism": "geometric"}),
    ],
)
def test_every_design_with_an_epsilon_has_a_trade_off_chart(ada, kind, design):
    slug = begin(ada)
    path = add_question(ada, slug, kind)
    save(ada, path, text="How?", **design)
    messages = save(ada, path, do="look").json
    assert messages["errors"] == {}
    chart = ada.get(messages["live"]["chart"])
    assert chart.content_type == "image/svg+xml"
    assert "What privacy costs" in chart.text
    assert chart.text.count("1,000 reports") > 0


def test_two_questions_are_declared_to_belong_together_and_randomized_as_one(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    first, second = content_of(store, slug).questions
    path = ada.get(f"{DRAFTS}/{slug}").text
    path = re.findall(rf'href="({DRAFTS}/{slug}/[^"]*{second["key"]})"', path)[0]
    save(ada, path, together_with=first["id"])
    page = ada.get(path).text
    assert "Each person is then asked both or neither" in page
    assert "would give a margin of error of" in page
    save(ada, path, together_with=first["id"], joint="y")
    assert " gives a margin of error of" in ada.get(path).text
    outline = ada.get(f"{DRAFTS}/{slug}").text
    assert f"randomized jointly with {first['id']}" in " ".join(outline.split())
    survey = check_draft(content_of(store, slug), Caps()).survey
    assert all(question.joint for question in survey.questions)


def test_feedback_reports_errors_while_a_question_is_edited(ada):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    messages = save(ada, path, do="look", text="").json
    assert messages["errors"] == {"text": "Question is missing"}
    assert messages["live"]["epsilon"] == ""


def test_autosave_saves_a_draft_and_returns_its_revision(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    messages = save(ada, path, do="autosave", text="Do you?").json
    draft = store.draft(int(slug.removeprefix("trial-")))
    assert messages["revision"] == draft.revision
    assert messages["clashes"] == []
    assert next(content_of(store, slug).questions)["text"] == {"en": "Do you?"}


def test_nonresponse_options_can_be_removed_and_added(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    opened = fields(ada.get(path))
    assert opened.pop("prefer_not_to_say") == "y"
    save(ada, path, opened=opened, text="Do you?", does_not_apply="y", does_not_apply_label="None")
    question = definition_from(content_of(store, slug))["pages"][0]["questions"][0]
    assert (question["prefer_not_to_say"], question["does_not_apply"]) == (False, "None")
    assert 'class="mistakes none"' in ada.get(path).text


def test_an_autosaved_partial_word_does_not_become_an_option_id(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "single_choice")
    save(ada, path, do="autosave", **rows("Som"))
    assert [item["id"] for item in next(content_of(store, slug).questions)["options"]] == [""]
    save(ada, path, **rows("Sometimes"))
    assert [item["id"] for item in next(content_of(store, slug).questions)["options"]] == [
        "sometimes"
    ]


def test_buttons_add_move_and_remove_options(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "single_choice")
    save(ada, path, **rows("A", "B", "C"))

    def labels():
        options = next(content_of(store, slug).questions)["options"]
        return [item["label"].get("en", "") for item in options]

    assert "did=option-down&place=1" in save(ada, path, do="option-down 0").location
    assert labels() == ["B", "A", "C"]
    save(ada, path, do="option-up 2")
    assert labels() == ["B", "C", "A"]
    save(ada, path, do="option-remove 0")
    assert labels() == ["C", "A"]
    save(ada, path, do="option-add")
    assert labels() == ["C", "A", ""]
    assert [item["id"] for item in next(content_of(store, slug).questions)["options"]][:2] == [
        "c",
        "a",
    ]


def write_questions(client, slug: str, text: str, page: int = 1):
    outline = client.get(f"{DRAFTS}/{slug}")
    revision = re.search(r'name="revision" value="(\d+)"', outline.text)[1]
    data = {"csrf_token": token(outline), "revision": revision, "written": text}
    return client.post(f"{DRAFTS}/{slug}/pages/{page}/questions", data=data), data


def test_several_questions_are_written_at_once_and_undone_together(ada, store):
    slug = begin(ada)
    text = "Hurt <b>at work</b>?\r\nHow often?\r\n- Never\r\n  * Once \r\n\r\n–\r\nهل تنام؟\r\n"
    response, data = write_questions(ada, slug, text)
    questions = list(content_of(store, slug).questions)
    assert [question["text"]["en"] for question in questions] == [
        *("Hurt <b>at work</b>?", "How often?", "هل تنام؟")
    ]
    assert [KINDS[question["type"]].label for question in questions] == [
        *("Yes or no", "One of several answers", "Yes or no")
    ]
    labels = [[option["label"]["en"] for option in question["options"]] for question in questions]
    assert labels == [[], ["Never", "Once"], []]
    assert [option["id"] for option in questions[1]["options"]] == ["never", "once"]
    assert len({question["id"] for question in questions}) == 3
    page = ada.get(response.location)
    assert "<b>at work</b>" not in page.text
    # Pressed twice, the form adds nothing, and the text stays.
    again = ada.post(f"{DRAFTS}/{slug}/pages/1/questions", data=data)
    assert again.status_code == 422
    assert "check it, then press the button again" in again.text
    assert "* Once" in again.text
    assert len(list(content_of(store, slug).questions)) == 3
    press_undo(ada, page)
    assert not list(content_of(store, slug).questions)


def test_a_list_of_questions_that_cannot_be_added_says_why_and_keeps_the_text(ada, store):
    slug = begin(ada)
    for text, message in (
        ("\n- Never\nHow often?", "Line 1 is an answer: write its question on the line above"),
        (" \n", "Write at least one question"),
        ("Why?\n" * 201, "The draft would have 201 questions; at most 200"),
    ):
        response, _ = write_questions(ada, slug, text)
        assert response.status_code == 422
        assert message in html.unescape(response.text), text
        assert text.strip() in response.text
        assert not list(content_of(store, slug).questions), text
    assert write_questions(ada, slug, "Why?", page=99)[0].status_code == 422


def test_saving_a_question_leads_to_a_next_one_of_its_type_once(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "scale")
    opened = fields(ada.get(path))
    response = save(ada, path, do="next", text="How well?")
    first, second = content_of(store, slug).questions
    assert first["text"] == {"en": "How well?"}
    assert second["type"] == "scale"
    assert f"/questions/{second['key']}?" in response.location
    page = ada.get(response.location)
    assert "Question added." in page.text
    assert re.search(r"<textarea[^>]* autofocus[^>]* name=\"text\"", page.text)
    # Pressed twice, the button leads to the question that is not written yet.
    save(ada, path, do="next", opened=opened, text="How well?")
    assert len(list(content_of(store, slug).questions)) == 2


def test_pasted_lines_become_answers(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "single_choice")

    def labels():
        options = next(content_of(store, slug).questions)["options"]
        return [item["label"].get("en", "") for item in options]

    pasted = "Never\r\n  Once or twice \r\n\r\nغالبًا\r\n"
    page = ada.get(save(ada, path, do="option-paste", pasted=pasted, **rows("Daily")).location)
    assert labels() == ["Daily", "Never", "Once or twice", "غالبًا"]
    assert "pasted" not in {name for name, text in fields(page).items() if text}
    press_undo(ada, page)
    assert labels() == ["Daily"]
    # Saving the question adds them too; saving automatically must not add them again and again.
    save(ada, path, do="autosave", pasted="Weekly")
    assert labels() == ["Daily"]
    save(ada, path, pasted="Weekly")
    assert labels() == ["Daily", "Weekly"]


def test_a_new_draft_and_a_new_question_show_no_errors(ada):
    slug = begin(ada)
    outline = ada.get(f"{DRAFTS}/{slug}").text
    assert "This survey has no questions yet." in outline
    assert 'class="error"' not in outline
    path = add_question(ada, slug, "single_choice")
    question = ada.get(path).text
    assert 'class="error"' not in question
    assert 'class="mistakes none"' in question
    outline = ada.get(f"{DRAFTS}/{slug}").text
    assert "Not written yet" in outline
    assert 'class="error"' not in outline
    # The checklist before publication still lists what is missing.
    assert "Question is missing" in ada.get(f"{DRAFTS}/{slug}/publish").text
    assert save(ada, path, do="autosave", text="How often?").json["elsewhere"]


@pytest.mark.parametrize(
    ("epsilon", "caution"),
    [
        ("1", ""),
        ("0.3", "Too wide: above ±15 points."),
        ("0.05", "Impossible to estimate with 500 "),
    ],
)
def test_margins_without_use_are_flagged(ada, epsilon, caution):
    slug = begin(ada)
    save(ada, f"{DRAFTS}/{slug}/plan", n="500")
    path = add_question(ada, slug, "yes_no")
    texts = {"text": "Do you?", "way": "epsilon", "value": epsilon}
    live = save(ada, path, do="autosave", **texts).json["live"]
    assert live["caution"].startswith(caution)
    assert bool(live["caution"]) == bool(caution)
    assert bool(live["margins"]) == (not caution.startswith("Impossible"))
    plan = ada.get(f"{DRAFTS}/{slug}/plan").text
    flags = re.findall(r'<span class="error">([^<]*)</span>', plan)
    assert flags == [live["caution"]] * bool(caution)


@pytest.mark.parametrize(("level", "suspicion"), [("0.5", 16), ("0.8", 20), ("1.7", 38)])
def test_a_named_privacy_level_states_its_risk_and_its_cost(ada, store, level, suspicion):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    # A value that belongs to the way chosen before does not count.
    save(ada, path, text="Do you?", way="truth_probability", value="3/4", prefer_not_to_say="")
    live = save(ada, path, do="autosave", way=f"epsilon {level}").json["live"]
    question = next(content_of(store, slug).questions)
    assert (question["way"], question["value"]) == ("epsilon", level)
    assert f"a suspicion of 10% becomes at most {suspicion}%" in live["bounds"]
    assert live["reports"].endswith("; without randomization, 385.")
    assert fields(ada.get(path))["way"] == f"epsilon {level}"
    # A value typed beside the level is exact.
    save(ada, path, value="1.25")
    assert fields(ada.get(path))["way"] == "epsilon"
    assert next(content_of(store, slug).questions)["value"] == "1.25"


def press_undo(client, page):
    """Press the Undo button of a page, and return the page that follows."""
    form = page.text[page.text.index('<form class="undo"') :].partition("</form>")[0]
    data = dict(re.findall(r'name="(\w+)"[^>]*? value="([^"]*)"', form))
    action = re.search(r'action="([^"]*)"', form)[1]
    return client.post(action, data=data, follow_redirects=True)


@pytest.mark.parametrize(
    ("action", "notice"),
    [
        ("question-add 1", "Question added."),
        ("question-copy {0}", "Question duplicated."),
        ("question-remove {0}", "Question removed."),
        ("question-down {0}", "Question moved."),
        ("question-down {1}", "Question moved."),
        ("question-move {2}", "Question moved."),
        ("page-add 0", "Page added."),
        ("page-up {page}", "Page moved."),
        ("page-remove {page}", "Page removed."),
    ],
)
def test_every_change_of_the_outline_can_be_undone(ada, store, action, notice):
    slug = begin(ada)
    add_two_questions(ada, slug)
    do(ada, slug, "page-add 0")
    last_page = content_of(store, slug).pages[-1].key
    add_question(ada, slug, "number", last_page)
    before = content_of(store, slug)
    keys = [question["key"] for question in before.questions]
    response = do(ada, slug, action.format(*keys, page=last_page), type="yes_no", place="1")
    page = ada.get(response.location)
    assert notice in page.text
    assert content_of(store, slug).pages != before.pages
    assert "The change was undone." in press_undo(ada, page).text
    assert content_of(store, slug).pages == before.pages
    # Pressed twice, it undoes nothing else.
    assert "have changed again" in press_undo(ada, page).text
    assert content_of(store, slug).pages == before.pages


def test_the_outline_marks_mistakes_and_shows_each_question_s_share_of_epsilon(ada, store):
    slug = begin(ada)
    for text, epsilon in (("First?", "0.5"), ("Second?", "1.5"), ("Third?", "99")):
        path = add_question(ada, slug, "yes_no")
        save(ada, path, text=text, way="epsilon", value=epsilon)
    page = ada.get(f"{DRAFTS}/{slug}").text
    rows = re.findall(r'<li id="question-.*?</li>', page, re.S)
    shares = [re.findall(r"(\d+)%<span", row) for row in rows]
    assert shares == [["25"], ["75"], []]
    assert ["Has mistakes: " in row for row in rows] == [False, False, True]
    assert all(KINDS["yes_no"].icon in row for row in rows)
    assert len({kind.icon for kind in KINDS.values()}) == len(KINDS)


def test_undoing_an_addition_deletes_nothing_that_was_written_since(ada, store):
    slug = begin(ada)
    added = do(ada, slug, "question-add 1", type="yes_no")
    path, page = added.location, ada.get(added.location)
    assert "Question added." in page.text
    save(ada, path.partition("?")[0], text="Written by somebody else?")
    refused = press_undo(ada, page).text
    assert "an added question has been edited since then: remove it instead" in refused
    (question,) = content_of(store, slug).questions
    assert question["text"] == {"en": "Written by somebody else?"}
    path = add_question(ada, slug, "single_choice")
    save(ada, path, text="How often?", **{"options-0-label": "Never"})
    page = ada.get(save(ada, path, do="option-paste", pasted="Often\nAlways").location)
    row = next(name for name, text in fields(ada.get(path)).items() if text == "Often")
    save(ada, path, **{row: "Very often"})
    assert "an added answer has been edited since then" in press_undo(ada, page).text
    assert fields(ada.get(path))[row] == "Very often"
    page = ada.get(do(ada, slug, "page-add 0").location)
    key = content_of(store, slug).pages[-1].key
    outline, prefix = f"{DRAFTS}/{slug}", f"p{key}-"
    form = ada.get(outline).text.partition(f'name="{prefix}revision"')[2]
    revision = re.search(r'value="(\d+)"', form)[1]
    titled = {f"{prefix}title": "Second page", f"{prefix}revision": revision}
    titled[f"{prefix}csrf_token"] = token(ada.get(outline))
    ada.post(f"{outline}/pages/{key}", data=titled)
    assert content_of(store, slug).pages[-1].title == {"en": "Second page"}
    assert "an added page has been edited since then" in press_undo(ada, page).text


def test_a_link_from_another_person_claims_no_change(ada, ben, store):
    slug = begin(ada)
    store.set_role(slug, store.researcher(OTHER_EMAIL).key, "editor")
    added = do(ada, slug, "question-add 1", type="yes_no").location
    address = f"{DRAFTS}/{slug}?{added.partition('?')[2].partition('#')[0]}"
    assert "Question added." in ada.get(address).text
    assert 'class="undo"' not in ben.get(address).text
    assert 'class="undo"' not in ada.get(re.sub(r"undo=\d+", "undo=99", address)).text


def test_a_setting_that_has_changed_again_is_not_undone(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    save(ada, path, text="Hurt?", way="truth_probability", value="0.95")
    page = ada.get(do(ada, slug, f"recommended-level {path.rpartition('/')[2]}").location)
    save(ada, path, way="epsilon", value="1.25")
    assert "Nothing was changed: the same setting has changed" in press_undo(ada, page).text
    assert fields(ada.get(path))["value"] == "1.25"


def level_of(store, slug: str) -> tuple[str, str]:
    """Return how the last question of a draft states its privacy."""
    *_, question = content_of(store, slug).questions
    return question["way"], question["value"]


def test_a_weak_question_warns_beside_it_and_one_click_sets_the_standard_level(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    key = path.rpartition("/")[2]
    weak = {"text": "Drugs?", "way": "truth_probability", "value": "0.95"}
    live = save(ada, path, do="look", **weak).json["live"]
    assert live["danger"].startswith("Weak protection: a suspicion of 10% becomes at most 81%.")
    assert live["level"] == "Use the standard privacy level"
    save(ada, path, **weak)
    assert "becomes at most 81%" in ada.get(path).text
    opened = ada.get(do(ada, slug, f"recommended-level {key}", question=key).location)
    assert "Recommended privacy level set." in opened.text
    assert level_of(store, slug) == ("", "")
    assert re.search(r'id="live-danger"></p>', opened.text)
    press_undo(ada, opened)
    assert level_of(store, slug) == ("truth_probability", "0.95")


def test_a_question_that_is_too_imprecise_gets_the_strongest_useful_level(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    for n, level, way in ((50_000, "", ""), (800, "standard", ""), (200, "moderate", "epsilon")):
        save(ada, f"{DRAFTS}/{slug}/plan", n=str(n))
        live = save(ada, path, do="look", text="?", way="epsilon", value="0.2").json["live"]
        assert live["level"] == (f"Use the {level} privacy level" if level else ""), (n, live)
        assert bool(live["caution"]) == bool(level)
        save(ada, path, text="?", way="epsilon", value="0.2")
        do(ada, slug, "recommended-level 0")
        assert level_of(store, slug)[0] == (way if level else "epsilon")
    # No level is precise enough: none is recommended.
    save(ada, f"{DRAFTS}/{slug}/plan", n="10")
    live = save(ada, path, do="look", text="?", way="epsilon", value="0.2").json["live"]
    assert (live["level"], bool(live["caution"])) == ("", True)
    assert '<tr class="too-wide">' in ada.get(f"{DRAFTS}/{slug}/plan").text
    save(ada, f"{DRAFTS}/{slug}/plan", n="50000")
    assert '<tr class="too-wide">' not in ada.get(f"{DRAFTS}/{slug}/plan").text


def test_a_question_moves_to_any_place_on_any_page(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    do(ada, slug, "page-add 0")
    do(ada, slug, "page-add 0")
    first, second = (question["key"] for question in content_of(store, slug).questions)
    _, middle, last = (page.key for page in content_of(store, slug).pages)

    def order() -> list[list[int]]:
        pages = content_of(store, slug).pages
        return [[question["key"] for question in page.questions] for page in pages]

    do(ada, slug, f"question-move {first}", place=f"page {last}")
    assert order() == [[second], [], [first]]
    do(ada, slug, f"question-move {second}", place="2")
    assert order() == [[], [], [first, second]]
    do(ada, slug, f"question-move {second}", place="1")
    assert order() == [[], [], [second, first]]
    for place in ("", "0", "3", "page 77", f"page {last}", "9" * 5000):
        refused = do(ada, slug, f"question-move {first}", place=place)
        assert "choose a place from 1 to 2" in ada.get(refused.location).text
    do(ada, slug, f"question-move {second}", place=f"page {middle}")
    assert order() == [[], [second], [first]]


def test_undo_restores_translations_and_keeps_texts_written_since(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    questions = list(content_of(store, slug).questions)
    night, often = (f"{DRAFTS}/{slug}/questions/{question['key']}" for question in questions)
    translation = send(
        ada, f"{DRAFTS}/{slug}/languages", page=f"{DRAFTS}/{slug}/languages", language="es"
    )
    name = f"question-{questions[1]['key']}-option-{questions[1]['options'][0]['key']}"
    save(ada, translation.location, **{name: "Nunca"})
    page = ada.get(save(ada, often, do="option-remove 0", text="How often now?").location)
    assert "Answer removed." in page.text
    save(ada, often, help="In the last month")
    press_undo(ada, page)
    restored = list(content_of(store, slug).questions)[1]
    assert restored["options"][0]["label"] == {"en": "Never", "es": "Nunca"}
    assert [option["id"] for option in restored["options"]] == ["never", "sometimes", "always"]
    assert (restored["text"]["en"], restored["help"]["en"]) == (
        "How often now?",
        "In the last month",
    )
    page = ada.get(do(ada, slug, f"question-remove {questions[1]['key']}").location)
    save(ada, night, text="Do you work at all?")
    press_undo(ada, page)
    first, second = content_of(store, slug).questions
    assert first["text"] == {"en": "Do you work at all?"}
    assert second == restored


def test_the_second_of_two_editors_sees_the_conflict_and_loses_nothing(ada, ben, store):
    slug = begin(ada)
    store.set_role(slug, store.researcher(OTHER_EMAIL).key, "editor")
    path = add_question(ada, slug, "yes_no")
    save(ada, path, text="Old")
    opened = fields(ada.get(path))
    save(ben, path, text="Ben's words", help="Ben's help")
    response = save(ada, path, opened=opened, text="Ada's words")
    assert response.status_code == 409
    assert f"{OTHER_EMAIL} changed the same fields" in response.text
    assert "Ben&#39;s words" in response.text
    assert "Ada&#39;s words</textarea>" in response.text
    assert next(content_of(store, slug).questions)["text"] == {"en": "Ben's words"}
    resubmitted = save(ada, path, opened=fields(response), text="Both words")
    assert resubmitted.status_code == 302
    question = next(content_of(store, slug).questions)
    assert (question["text"], question["help"]) == ({"en": "Both words"}, {"en": "Ben's help"})


def test_concurrent_changes_to_different_fields_are_merged(ada, ben, store):
    slug = begin(ada)
    store.set_role(slug, store.researcher(OTHER_EMAIL).key, "editor")
    path = add_question(ada, slug, "yes_no")
    opened = fields(ada.get(path))
    save(ben, path, help="Ben's help")
    response = save(ada, path, opened=opened, text="Ada's words")
    assert response.status_code == 302
    question = next(content_of(store, slug).questions)
    assert (question["text"], question["help"]) == ({"en": "Ada's words"}, {"en": "Ben's help"})
    assert "Someone else changed at the same time: Help below the question" in ada.get(path).text


def test_autosave_never_overwrites_a_change_by_a_colleague(ada, ben, store):
    slug = begin(ada)
    store.set_role(slug, store.researcher(OTHER_EMAIL).key, "editor")
    path = add_question(ada, slug, "yes_no")
    opened = fields(ada.get(path))
    save(ben, path, text="Ben's words")
    messages = save(ada, path, do="autosave", opened=opened, text="Ada's words").json
    assert messages["revision"] == 0
    assert messages["clashes"] == ["Question"]
    assert messages["who"] == OTHER_EMAIL
    assert next(content_of(store, slug).questions)["text"] == {"en": "Ben's words"}


def test_saving_a_removed_question_restores_it(ada, ben, store):
    slug = begin(ada)
    store.set_role(slug, store.researcher(OTHER_EMAIL).key, "editor")
    path = add_question(ada, slug, "yes_no")
    save(ada, path, text="Do you?")
    opened = fields(ada.get(path))
    do(ben, slug, f"question-remove {path.rpartition('/')[2]}")
    assert list(content_of(store, slug).questions) == []
    assert save(ada, path, opened=opened, text="Do you still?").status_code == 302
    assert next(content_of(store, slug).questions)["text"] == {"en": "Do you still?"}


def test_unsaved_text_is_returned_after_the_session_expires(ada, app, store):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    opened = fields(ada.get(path))
    for session in store.sessions(store.researcher(EMAIL).key):
        store.end_session(session.token_hash)
    response = save(ada, path, opened=opened, text="A long text\nof two lines")
    assert response.status_code == 401
    assert "You are signed out" in response.text
    assert "A long text\nof two lines</textarea>" in response.text
    sign_in(ada)
    stale = re.findall(
        r'<textarea name="([^"]+)" hidden>\r?\n(.*?)</textarea>', response.text, re.S
    )
    again = ada.post(path, data={**dict(stale), "csrf_token": token(response)})
    assert again.status_code == 409
    assert "before you signed in again" in again.text
    resubmitted = ada.post(path, data={**dict(stale), "csrf_token": token(again)})
    assert resubmitted.status_code == 302
    assert next(content_of(store, slug).questions)["text"] == {"en": "A long text\nof two lines"}


def test_unsaved_text_is_never_returned_to_a_form_of_another_site(ada):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    response = ada.post(path, data={"text": "evil"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 400
    assert "evil" not in response.text


def test_an_expired_session_is_reported_to_the_page_script(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    opened = fields(ada.get(path))
    for session in store.sessions(store.researcher(EMAIL).key):
        store.end_session(session.token_hash)
    response = save(ada, path, do="autosave", opened=opened, text="x")
    assert response.status_code == 401
    assert "you are signed out" in response.json["not_saved"]


def test_pasted_html_is_shown_as_text(ada):
    slug = begin(ada, "<b>Bold</b>")
    path = add_question(ada, slug, "yes_no")
    save(ada, path, text="<script>alert(1)</script>", help="&lt;")
    page = ada.get(path).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<b>Bold" not in ada.get(f"{DRAFTS}/{slug}").text


def test_text_too_long_to_publish_is_reported_and_saved(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    save(ada, path, text="long " * 300)
    assert len(next(content_of(store, slug).questions)["text"]["en"]) == 1_499
    assert "has 1,499 characters; at most 1,000 fit" in ada.get(path).text


def test_texts_and_settings_are_saved_and_a_taken_slug_is_rejected(ada, store, small):
    slug = begin(ada)
    path = f"{DRAFTS}/{slug}/texts"
    response = save(ada, path, title="Nights", slug="nights", contact="Team", access="invitation")
    assert response.status_code == 302
    survey = content_of(store, slug).survey
    assert (survey["slug"], survey["access"]) == ("nights", "invitation")
    assert (survey["title"], survey["contact"]) == ({"en": "Nights"}, {"en": "Team"})
    save(ada, path, slug="Not an address", quick_exit="http://example.org")
    page = ada.get(path).text
    assert 'id="slug-error"' in page
    assert "begin with https://" in page


def test_a_draft_never_replaces_a_survey_of_another_team(researcher, ben, store, small):
    slug = begin(ben, "Small")
    add_two_questions(ben, slug)
    save(ben, f"{DRAFTS}/{slug}/texts", slug="small")
    page = ben.get(f"{DRAFTS}/{slug}/publish").text
    assert "which you cannot edit" in page
    response = send(
        ben, f"{DRAFTS}/{slug}/publish", page=f"{DRAFTS}/{slug}/texts", agreed="y", revision="9"
    )
    assert response.status_code in (200, 422)
    assert len(store.versions("small")) == 1


def test_every_error_in_a_plan_is_reported(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    path = f"{DRAFTS}/{slug}/plan"
    save(ada, path, n="many", margin="0", opens="soon", closes="2020-01-01", strata="North 3")
    page = ada.get(path).text
    for phrase in ("whole number", "points above 0", "such as 2027-01-31", "has passed", "25 are"):
        assert phrase in page
    assert "2020-01-01 has passed" in ada.get(f"{DRAFTS}/{slug}/publish").text
    save(ada, path, n="2,000", margin="3", opens="2020-01-01", closes="", strata="")
    assert "2020-01-01 has passed; leave it blank" in ada.get(path).text
    save(ada, path, n="2,000", margin="3", opens="2030-02-01", closes="2030-01-01", strata="")
    assert "before it opens" in ada.get(path).text
    save(ada, path, closes="2030-03-01", most="500", strata="North 40\nSüd Ost 25")
    assert 'id="mistakes" role="status"' in ada.get(path).text
    page = ada.get(f"{DRAFTS}/{slug}/publish")
    revision = re.search(r'name="revision"[^>]*value="(\d+)"', page.text)[1]
    send(ada, f"{DRAFTS}/{slug}/publish", agreed="y", revision=revision)
    (survey,) = store.versions("night-work")
    assert store.plan(survey.key) == Plan(2_000, {"North": 40, "Süd Ost": 25})
    assert str(survey.schedule.opens) == "2030-02-01"
    assert survey.schedule.maximum == 500
    collect = ada.get("/research/surveys/night-work/collect").text
    assert "Süd Ost</th>" in collect


def test_every_text_of_a_survey_can_be_translated(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    added = send(ada, f"{DRAFTS}/{slug}/languages", language="es")
    assert added.location == f"{DRAFTS}/{slug}/languages/es"
    opened = fields(ada.get(added.location))
    name = next(n for n in opened if n.endswith("-text"))
    save(ada, added.location, opened=opened, **{"survey-title": "De noche", name: "¿De noche?"})
    definition = definition_from(content_of(store, slug))
    assert definition["title"] == {"en": "Night work", "es": "De noche"}
    assert definition["pages"][0]["questions"][0]["text"]["es"] == "¿De noche?"
    page = ada.get(f"{DRAFTS}/{slug}/languages").text
    assert "5 of 9" in page
    assert "4 of 9 texts are not translated into es" in ada.get(f"{DRAFTS}/{slug}/publish").text
    translated = content_of(store, slug)
    response = send(ada, f"{DRAFTS}/{slug}/languages/es/remove", page=f"{DRAFTS}/{slug}/languages")
    assert definition_from(content_of(store, slug))["title"] == "Night work"
    page = ada.get(response.location)
    assert "Language and its texts removed." in page.text
    assert "<h1>Languages</h1>" in press_undo(ada, page).text
    assert content_of(store, slug) == translated


def test_the_usual_labels_of_a_language_can_be_reworded_once_for_all_questions(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    send(ada, f"{DRAFTS}/{slug}/languages", language="de")
    translation = f"{DRAFTS}/{slug}/languages/de"
    opened = fields(ada.get(translation))
    usual = {name: label for name, label in opened.items() if name.startswith("usual-")}
    assert usual == {
        "usual-yes": "Ja",
        "usual-no": "Nein",
        "usual-prefer_not_to_say": "Möchte ich nicht sagen",
    }
    save(ada, translation, opened=opened, **{"usual-prefer_not_to_say": "Keine Angabe"})
    questions = definition_from(content_of(store, slug))["pages"][0]["questions"]
    assert [question["prefer_not_to_say"]["de"] for question in questions] == ["Keine Angabe"] * 2
    assert [option["label"]["de"] for option in questions[0]["options"]] == ["Ja", "Nein"]


@pytest.mark.parametrize("language", ["Spanish", "en", "../x", "e", ""])
def test_an_invalid_language_is_rejected_beside_its_field(ada, language):
    slug = begin(ada)
    response = send(ada, f"{DRAFTS}/{slug}/languages", language=language)
    assert response.status_code == 422
    assert 'id="language-error"' in response.text


def test_simulated_respondents_answer_a_test_run_and_the_dashboard_says_test(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    path = f"{DRAFTS}/{slug}/try"
    send(ada, f"{path}/make", page=path)
    assert "Open the survey as a respondent" in ada.get(path).text
    response = send(
        ada,
        f"{path}/simulate",
        page=path,
        n="800",
        **{"share-night-0": "30", "share-night-1": "70", "share-night-2": "0"},
    )
    assert response.status_code == 302
    (test_run,) = store.test_runs(slug)
    assert store.n_released(test_run.key) == 800
    page = ada.get(f"/research/surveys/{test_run.slug}/1").text
    assert f'href="{path}"' in page
    assert f"/research/surveys/{test_run.slug}" in ada.get(path).text
    assert "<b>TEST.</b>" in page
    assert "Do you work at night?" in page
    listed = ada.get("/research/").text
    assert f"/research/surveys/{slug}" not in listed
    assert f"{DRAFTS}/{slug}" in listed


def test_true_shares_stay_in_the_form_and_appear_beside_the_estimates(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    path = f"{DRAFTS}/{slug}/try"
    send(ada, f"{path}/make", page=path)
    # With this many respondents and these shares, no random draw suppresses a question.
    first = {"share-night-0": "26", "share-night-1": "52", "share-night-2": "22"}
    first |= {f"share-often-{option}": "25" for option in range(4)}
    send(ada, f"{path}/simulate", page=path, n="5000", **first)
    page_text = ada.get(path).text
    for name, value in first.items():
        assert f'name="{name}" value="{value}"' in page_text
    (test_run,) = store.test_runs(slug)
    page = ada.get(f"/research/surveys/{test_run.slug}/1").text
    assert page.count(">True value you set</th>") == 2
    typed = re.findall(r'<td class="number">(\d+%)</td>\s*<td class="number answered">', page)
    assert typed[:3] == ["26%", "52%", "22%"]
    alone = ada.get(f"/research/surveys/{test_run.slug}/1/questions/night").text
    assert alone.count(">True value you set</th>") == 1
    # The row without a share of those who answered says why.
    assert alone.count(">left out<") == 1
    assert "counts “<bdi>Prefer not to say</bdi>” as an answer" in " ".join(alone.split())


def dashboard(client, store, slug: str) -> str:
    """Return the dashboard of a draft's test run, at its current address."""
    (test_run,) = store.test_runs(slug)
    return client.get(f"/research/surveys/{test_run.slug}/1").text


def test_different_simulations_have_no_common_truth_until_the_test_run_is_recreated(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    path = f"{DRAFTS}/{slug}/try"
    send(ada, f"{path}/make", page=path)
    for share in ("10", "80"):
        send(ada, f"{path}/simulate", page=path, n="1500", **{"share-night-0": share})
    page = dashboard(ada, store, slug)
    assert "had different true shares" in page
    assert ">True value you set</th>" not in page
    send(ada, f"{path}/make", page=path)
    assert 'name="share-night-0" value="80"' in ada.get(path).text
    assert "true shares" not in dashboard(ada, store, slug)
    send(ada, f"{path}/simulate", page=path, n="5000")
    assert ">True value you set</th>" in dashboard(ada, store, slug)


def test_files_and_figures_of_a_test_run_are_marked_as_test(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    path = f"{DRAFTS}/{slug}/try"
    send(ada, f"{path}/make", page=path)
    # With this many respondents, no random draw suppresses an answer.
    send(ada, f"{path}/simulate", page=path, n="5000")
    (test_run,) = store.test_runs(slug)
    of = f"/research/surveys/{test_run.slug}"
    files = ["1/estimates.csv", "1/estimates.xlsx", "explore/crosstab.csv?first=night&second=often"]
    files += [f"1/figures/night-shares.{kind}" for kind in ("svg", "png", "pdf", "json")]
    for file in files:
        response = ada.get(f"{of}/{file}")
        assert response.status_code == 200, file
        assert 'filename="TEST-' in response.headers["Content-Disposition"]
        if file.endswith(("svg", "json")):
            assert "TEST: reports of a test run" in response.text


@pytest.mark.parametrize(
    "typed",
    [
        {"n": "0"},
        {"n": "99999999"},
        {"n": "9" * 400},
        {"share-night-0": "150"},
        {"share-night-0": "x"},
    ],
)
def test_an_invalid_simulation_is_rejected_with_the_reason(ada, typed):
    slug = begin(ada)
    add_two_questions(ada, slug)
    path = f"{DRAFTS}/{slug}/try"
    send(ada, f"{path}/make", page=path)
    response = send(ada, f"{path}/simulate", page=path, **{"n": "30", **typed})
    assert response.status_code == 422
    assert 'role="alert"' in response.text


def test_publishing_a_draft_deletes_its_test_run(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    path = f"{DRAFTS}/{slug}/try"
    send(ada, f"{path}/make", page=path)
    send(ada, f"{path}/simulate", page=path, n="50")
    page = ada.get(f"{DRAFTS}/{slug}/publish")
    revision = re.search(r'name="revision"[^>]*value="(\d+)"', page.text)[1]
    send(ada, f"{DRAFTS}/{slug}/publish", agreed="y", revision=revision)
    (survey,) = store.surveys()
    assert survey.slug == "night-work"
    assert store.n_released(survey.key) == store.n_pending(survey.key) == 0


def test_a_closed_test_run_accepts_no_responses_and_can_be_recreated(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    path = f"{DRAFTS}/{slug}/try"
    send(ada, f"{path}/make", page=path)
    close(store, store.test_runs(slug)[0].slug, TODAY)
    response = send(ada, f"{path}/simulate", page=path, n="50")
    assert response.status_code == 422
    assert "The test run is closed" in response.text
    send(ada, f"{path}/make", page=path)
    send(ada, f"{path}/simulate", page=path, n="50")
    (test_run,) = store.test_runs(slug)
    assert (test_run.state, store.n_released(test_run.key)) == ("open", 50)


@pytest.mark.security
def test_the_builder_says_why_shared_devices_exclude_invitations(ada):
    slug = begin(ada)
    save(ada, add_question(ada, slug, "yes_no"), text="Did you sleep?")
    path = f"{DRAFTS}/{slug}/texts"
    reason = "is for surveys that everyone with the link can answer: an invitation belongs to one"
    save(ada, path, access="open", kiosk="y")
    assert reason not in ada.get(path).text
    save(ada, path, access="invitation", kiosk="y")
    assert reason in ada.get(path).text
    assert reason in ada.get(f"{DRAFTS}/{slug}/publish").text


def test_a_definition_file_becomes_a_draft_or_its_errors_are_listed(ada, store):
    def upload(text: str):
        page = ada.get(f"{DRAFTS}/new")
        file = (io.BytesIO(text.encode()), "s.toml")
        data = {"csrf_token": token(page), "file": file}
        return ada.post(f"{DRAFTS}/file", data=data)

    response = upload(SMALL)
    assert response.status_code == 302
    assert content_of(store, response.location.rpartition("/")[2]).title == "A small survey"
    wrong = upload(SMALL.replace('"3/4"', "0.2").replace('"often"', '"once"'))
    assert wrong.status_code == 422
    assert "No draft was made: 2 mistakes" in wrong.text or "mistake" in wrong.text
    assert len(store.drafts()) == 1


def test_new_versions_and_copies_start_as_drafts_of_the_published_survey(ada, store, small):
    collect = "/research/surveys/small/collect"
    version = send(ada, f"{DRAFTS}/of/small", page=collect)
    copy = send(ada, f"{DRAFTS}/of/small", page=collect, copy="1")
    slugs = [response.location.rpartition("/")[2] for response in (version, copy)]
    assert [content_of(store, slug).survey["slug"] for slug in slugs] == ["small", "small-2"]
    path = f"{DRAFTS}/{slugs[0]}/questions/2"
    save(ada, path, text="Did you ever fall asleep at work?")
    page = ada.get(f"{DRAFTS}/{slugs[0]}/publish")
    assert "Publish small, version 2" in page.text
    revision = re.search(r'name="revision"[^>]*value="(\d+)"', page.text)[1]
    send(ada, f"{DRAFTS}/{slugs[0]}/publish", agreed="y", revision=revision)
    assert [survey.version for survey in store.versions("small")] == [2, 1]


def test_a_draft_is_deleted_after_its_title_is_typed(ada, store):
    slug = begin(ada)
    path = f"{DRAFTS}/{slug}/delete"
    send(ada, path, page=f"{DRAFTS}/{slug}", title="Something")
    assert len(store.drafts()) == 1
    send(ada, path, page=f"{DRAFTS}/{slug}", title="Night work")
    assert store.drafts() == []


def test_a_survey_is_archived_and_restored(ada, store, small):
    collect = "/research/surveys/small/collect"
    send(ada, "/research/surveys/small/archive", page=collect)
    assert "A small survey" not in ada.get("/research/").text
    assert "A small survey" in ada.get("/research/?state=archived").text
    send(ada, "/research/surveys/small/archive", page=collect)
    assert "A small survey" in ada.get("/research/").text


def test_an_archived_survey_that_gets_a_new_version_is_listed_again(ada, store, small):
    collect = "/research/surveys/small/collect"
    send(ada, "/research/surveys/small/archive", page=collect)
    slug = send(ada, f"{DRAFTS}/of/small", page=collect).location.rpartition("/")[2]
    save(ada, f"{DRAFTS}/{slug}/questions/2", text="Did you ever fall asleep at work?")
    page = ada.get(f"{DRAFTS}/{slug}/publish")
    revision = re.search(r'name="revision"[^>]*value="(\d+)"', page.text)[1]
    send(ada, f"{DRAFTS}/{slug}/publish", agreed="y", revision=revision)
    assert store.versions("small")[0].version == 2
    assert "A small survey" in ada.get("/research/").text


def test_a_closed_survey_is_deleted_after_its_slug_is_typed(ada, store, small):
    collect, path = "/research/surveys/small/collect", "/research/surveys/small/delete"
    response = send(ada, path, page=collect, typed="small")
    assert "still accepts reports" in ada.get(response.location).text
    close(store, "small", TODAY)
    send(ada, path, page=collect, typed="smal")
    assert len(store.versions("small")) == 1
    send(ada, path, page=collect, typed="small")
    assert store.versions("small") == []
    assert ada.get(collect).status_code == 404
    assert store.actions("small", 9) == []
    assert store.actions(None, 1)[0].event == "deleted a survey"


def test_the_header_of_a_draft_names_the_author_of_its_latest_revision(ada):
    page = ada.get(f"{DRAFTS}/{begin(ada)}").text
    assert re.search(rf"saved [-0-9: ]+ UTC by {re.escape(EMAIL)}<", page)


def test_a_viewer_can_read_but_not_change_a_draft(ada, ben, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    store.set_role(slug, store.researcher(OTHER_EMAIL).key, "viewer")
    page = ben.get(f"{DRAFTS}/{slug}")
    assert page.status_code == 200
    assert "Duplicate" not in page.text
    path = f"{DRAFTS}/{slug}/questions/{next(content_of(store, slug).questions)['key']}"
    assert ben.get(path).status_code == 403
    home = token(ben.get("/research/account"))
    assert ben.post(path, data={"csrf_token": home, "text": "x"}).status_code == 403


@pytest.mark.web
def test_sixty_questions_in_four_languages_are_edited(ada, store):
    slug = begin(ada)
    first = add_question(ada, slug, "single_choice")
    save(
        ada,
        first,
        text="How often?",
        **rows("Never", "Sometimes", "Always"),
        way="epsilon",
        value="0.3",
    )
    key = first.rpartition("/")[2]
    for _ in range(59):
        do(ada, slug, f"question-copy {key}")
    for language in ("es", "pt", "ar"):
        send(ada, f"{DRAFTS}/{slug}/languages", language=language)
    opened = fields(ada.get(f"{DRAFTS}/{slug}/languages/ar"))
    assert len([name for name in opened if name.endswith("-text")]) == 60
    translated = {name: "نص" if name.endswith("-text") else value for name, value in opened.items()}
    response = save(ada, f"{DRAFTS}/{slug}/languages/ar", opened=translated)
    assert response.status_code == 302
    outline = ada.get(f"{DRAFTS}/{slug}").text
    assert "60 complete questions; each person is asked 9 of 60" in outline
    assert "change the odds by a factor of up to 65,488,559. However, each" in outline  # e^17.998
    assert do(ada, slug, "ask-all 0").status_code == 302
    assert "Total epsilon 17.998; the maximum on this" in ada.get(f"{DRAFTS}/{slug}").text
    outline = ada.get(f"{DRAFTS}/{slug}").text
    assert "Weak protection: one complete response" in outline
    assert "“How often?”, “How often?” and 57 more. Together they change" in html.unescape(outline)


def test_one_click_asks_each_person_as_many_questions_as_stay_below_a_factor_of_20(ada, store):
    slug = begin(ada)
    do(ada, slug, "ask-all 0")
    for n, text in enumerate(("Asleep?", "Hurt?", "Bullied?", "Robbed?")):
        path = add_question(ada, slug, "yes_no")
        response = save(ada, path, text=text, do="look")
        # The third question at the standard level would reach 27.
        assert ("Ask each person 2 questions" in response.json["live"]["warning"]) == (n >= 2)
        save(ada, path, text=text)
    assert "factor of at most 81" in ada.get(f"{DRAFTS}/{slug}/publish").text
    page = ada.get(do(ada, slug, "ask-some 2").location).text
    assert "Questions per person: 2." in page
    assert "Privacy loss of one complete response: ε 2.198 (moderate)." in page
    assert "Weak protection" not in page
    assert definition_from(content_of(store, slug))["questions_per_person"] == 2
    # One click asks everybody all questions again, with a warning and the proposal.
    assert "Ask each person all questions" in page
    page = ada.get(do(ada, slug, "ask-all 0").location)
    assert press_undo(ada, page).status_code == 200
    assert content_of(store, slug).survey["questions_per_person"] == "2"
    page = ada.get(do(ada, slug, "ask-all 0").location).text
    assert "Each person is now asked all questions." in page
    assert "Ask each person 2 of 4 questions" in page
    do(ada, slug, "ask-some 0")
    assert "Nothing was changed: each respondent must be asked" in ada.get(f"{DRAFTS}/{slug}").text
    do(ada, slug, "ask-some 5")
    assert "the survey has 4 questions, fewer than 5" in ada.get(f"{DRAFTS}/{slug}").text
    assert content_of(store, slug).survey["questions_per_person"] == ""


def test_a_viewer_of_a_draft_gets_no_links_to_pages_for_editors(ada, ben, store):
    slug = begin(ada)
    do(ada, slug, "ask-all 0")
    for text in ("Asleep?", "Hurt?", "Bullied?", "Robbed?"):
        save(ada, add_question(ada, slug, "yes_no"), text=text)
    plan = f'href="{DRAFTS}/{slug}/plan'
    assert f"{plan}#strata" in ada.get(f"{DRAFTS}/{slug}").text
    store.set_role(slug, store.researcher(OTHER_EMAIL).key, "viewer")
    page = ben.get(f"{DRAFTS}/{slug}").text
    assert "group with its own invitations" in page
    assert plan not in page


def test_the_number_of_questions_is_merged_like_other_fields(ada, ben, store):
    slug = begin(ada)
    store.set_role(slug, store.researcher(OTHER_EMAIL).key, "editor")
    add_two_questions(ada, slug)
    texts = f"{DRAFTS}/{slug}/texts"

    def number() -> str:
        return content_of(store, slug).survey["questions_per_person"]

    opened = fields(ada.get(texts))
    assert opened["questions_per_person"] == "auto"
    assert ben.post(f"{DRAFTS}/{slug}/edit", data={"do": "ask-some 1"}).status_code >= 400
    assert number() == "auto"  # without the token of its page, the button changes nothing
    do(ben, slug, "ask-some 1")
    save(ada, texts, opened=opened, title="Nights")
    assert (number(), content_of(store, slug).title) == ("1", "Nights")
    clash = save(ada, texts, opened=opened, questions_per_person="")
    assert clash.status_code == 409
    assert "wrote in the meantime:</b>" in clash.text
    assert '<q dir="auto">1 of 2, factor 3 (strong)</q>' in clash.text
    assert number() == "1"
    # A number that no longer fits stays in the form and is reported.
    save(ada, texts, questions_per_person="2")
    page = ada.get(texts).text
    assert '<option selected value="2">2</option>' in page
    assert "is not fewer than the 2 questions" in page


@pytest.mark.web
def test_a_survey_of_default_questions_never_exceeds_a_factor_of_20_unannounced(ada, store):
    """Each type of question, added as the builder adds it; then one that is weak alone."""
    slug = begin(ada)
    for n, kind in enumerate((*KINDS, *KINDS)):
        path = add_question(ada, slug, kind)
        options = rows("Never", "Once", "Often") if "options" in KINDS[kind].fields else {}
        ends = {"date": ("2020-01-01", "2020-12-31"), "number": ("0", "40")}.get(kind)
        limits = {"low": ends[0], "high": ends[1]} if ends else {}
        live = save(ada, path, text=f"{n + 1}?", do="look", **options, **limits).json["live"]
        assert live["warning"] == ""
        assert "(moderate)" in live["total"] or n == 0, live["total"]
        save(ada, path, text=f"{n + 1}?", **options, **limits)
        assert factor_shown(ada.get(f"{DRAFTS}/{slug}").text) <= 20
    page = ada.get(f"{DRAFTS}/{slug}").text
    asked = f"Each person is asked 2 of {2 * len(KINDS)} questions"
    assert f"{asked}, drawn at random on the device." in page
    assert f"each question gets about {1_000 // len(KINDS)} of 1,000 responses" in page
    plan = words_of(ada.get(f"{DRAFTS}/{slug}/plan").text)
    now = rf"2 of {2 * len(KINDS)} questions Now ±\S+"
    row = rf"{now} strong, factor 3 moderate, factor 9 {1_000 // len(KINDS)}"
    assert re.search(row, plan)
    assert "A suspicion of 10% becomes at most 50%, one of 50%" in plan
    do(ada, slug, "ask-all 0")
    plan = words_of(ada.get(f"{DRAFTS}/{slug}/plan").text)
    survey = check_draft(content_of(store, slug), Caps()).survey
    assert survey.drawn == len([*survey.questions]) == 2 * len(KINDS)
    assert f"strong, factor 3 weak, factor {ceil(brute_force_ratio(survey)):,} 1,000" in plan
    assert "A suspicion of 10% can become more than 99%" in plan
    save(ada, f"{DRAFTS}/{slug}/texts", questions_per_person="auto")
    survey = check_draft(content_of(store, slug), Caps()).survey
    assert survey.questions_per_person == 2
    assert brute_force_ratio(survey) == survey.total_ratio <= 20
    # Weak alone, so that even one question is too many: asked as little as possible, and announced.
    save(ada, path, way="epsilon", value="3.5")
    page = ada.get(f"{DRAFTS}/{slug}").text
    assert factor_shown(page) == 34
    assert "Weak protection: one complete response" in page
    assert check_draft(content_of(store, slug), Caps()).survey.questions_per_person == 1
    # One click returns it to the standard level, and only it.
    before = list(content_of(store, slug).questions)
    assert do(ada, slug, f"recommended-level {before[-1]['key']}").status_code == 302
    page = ada.get(f"{DRAFTS}/{slug}").text
    assert asked in page
    assert "weak" not in page.partition("Page 1")[0]
    after = list(content_of(store, slug).questions)
    assert [q for q in after if q["key"] != before[-1]["key"]] == before[:-1]


def test_the_languages_page_marks_machine_translations_of_the_interface(ada):
    slug = begin(ada)
    for language in ("nl", "es"):
        send(ada, f"{DRAFTS}/{slug}/languages", language=language)
    page = words_of(ada.get(f"{DRAFTS}/{slug}/languages").text)
    assert page.count("Buttons and explanations are in English") == 1
    assert page.count("machine translation, not reviewed by a native speaker") == 1


def words_of(page: str) -> str:
    """Return the text of a page without tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def factor_shown(page: str) -> int:
    """Return the factor of the whole report that a page leads with."""
    match = re.search(
        r"changes the odds of a guess about someone by a factor of at most (\d+)", page
    )
    assert match, page
    return int(match[1])


def brute_force_ratio(survey) -> Fraction:
    """Return the largest product over all draws of the questions of a survey without conditions."""
    ratios = [question.channel.ratio for question in survey.questions]
    return max(map(prod, combinations(ratios, survey.drawn)))


def test_nearly_equal_questions_are_named_before_publication_until_they_share_a_topic(ada, store):
    slug = begin(ada)
    paths = []
    for text in ("Did you fall asleep at work?", "Did you ever fall asleep at work?"):
        paths.append(add_question(ada, slug, "yes_no"))
        save(ada, paths[-1], text=text)
    for page in ("", "/publish"):
        shown = html.unescape(ada.get(f"{DRAFTS}/{slug}{page}").text)
        assert "“Did you fall asleep at work?” and “Did you ever fall asleep at work?”" in shown
        assert "groups of three letters" in shown
    for path in paths:
        save(ada, path, topic="Sleep")
    assert "nearly equal. Together" not in ada.get(f"{DRAFTS}/{slug}/publish").text
    send(ada, f"{DRAFTS}/{slug}/languages", language="es")
    translation = f"{DRAFTS}/{slug}/languages/es"
    opened = fields(ada.get(translation))
    (name,) = [name for name in opened if name.endswith("-topic")]
    save(ada, translation, opened=opened, **{name: "Sueño"})
    questions = definition_from(content_of(store, slug))["pages"][0]["questions"]
    assert [question["topic"]["es"] for question in questions] == ["Sueño", "Sueño"]
    # Deleted once, the translation does not come back from the other question.
    save(ada, translation, opened=fields(ada.get(translation)), **{name: ""})
    questions = definition_from(content_of(store, slug))["pages"][0]["questions"]
    assert [question["topic"] for question in questions] == ["Sleep", "Sleep"]


def test_only_surveys_of_ones_own_team_are_compared(ada, ben, researcher, store, small):
    store.set_role("small", store.researcher(researcher).key, "owner")
    slugs = {}
    for client in (ada, ben):
        slugs[client] = begin(client, "Nights")
        path = add_question(client, slugs[client], "yes_no")
        save(client, path, text="Did you ever fall asleep at work?")
    assert "in the survey “A small survey”" in ada.get(f"{DRAFTS}/{slugs[ada]}/publish").text
    assert "A small survey" not in ben.get(f"{DRAFTS}/{slugs[ben]}/publish").text


# -- defects that a security review found


def test_publishing_gives_the_publisher_no_new_role(ada, ben, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    store.set_role(slug, store.researcher(OTHER_EMAIL).key, "editor")
    assert publish_draft(ben, slug).status_code == 302
    assert {member.email: member.role for member in store.members("night-work")} == {
        EMAIL: "owner",
        OTHER_EMAIL: "editor",
    }


def publish_draft(client, slug: str):
    page = client.get(f"{DRAFTS}/{slug}/publish")
    revision = re.search(r'name="revision"[^>]*value="(\d+)"', page.text)[1]
    data = {"csrf_token": token(page), "revision": revision, "agreed": "y"}
    return client.post(f"{DRAFTS}/{slug}/publish", data=data)


def test_a_slug_taken_in_the_meantime_is_not_overwritten(ada, store, monkeypatch):
    slug = begin(ada)
    add_two_questions(ada, slug)
    competing = load(SMALL.replace('"small"', '"night-work"').encode(), "s.toml", Caps())
    original = publication._PublicationPages._obstacles
    path = f"{DRAFTS}/{slug}/publish"
    page = ada.get(path)
    revision = re.search(r'name="revision"[^>]*value="(\d+)"', page.text)[1]

    def publish_during_check(pages, *requested):
        obstacles = original(pages, *requested)
        if not store.versions("night-work"):
            publish(store, competing, TODAY)
        return obstacles

    monkeypatch.setattr(publication._PublicationPages, "_obstacles", publish_during_check)
    data = {"csrf_token": token(page), "revision": revision, "agreed": "y"}
    response = ada.post(path, data=data)
    assert response.status_code == 422
    assert "somebody has published under the name night-work meanwhile" in response.text
    assert [survey.state for survey in store.versions("night-work")] == ["open"]
    assert len(store.drafts()) == 1


def test_a_survey_with_the_slug_of_a_deleted_one_has_an_empty_log(ada, ben, store, small):
    close(store, "small", TODAY)
    collect = "/research/surveys/small/collect"
    send(ada, "/research/surveys/small/delete", page=collect, typed="small")
    slug = begin(ben, "Small")
    add_two_questions(ben, slug)
    publish_draft(ben, slug)
    log = ben.get("/research/surveys/small/team/log").text
    assert EMAIL not in log
    assert "began a draft" in log
    assert "published" in log
    assert "small" in ada.get("/research/people/log").text


def test_changing_the_main_language_keeps_translations(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    send(ada, f"{DRAFTS}/{slug}/languages", language="es")
    path = f"{DRAFTS}/{slug}/languages/es"
    opened = fields(ada.get(path))
    name = next(n for n in opened if n.endswith("-text"))
    save(ada, path, opened=opened, **{"survey-title": "De noche", name: "¿De noche?"})
    save(ada, f"{DRAFTS}/{slug}/texts", do="autosave", language="e")
    assert content_of(store, slug).own_language == "en"
    save(ada, f"{DRAFTS}/{slug}/texts", language="es")
    content = content_of(store, slug)
    assert (content.own_language, content.languages) == ("es", ("en",))
    assert content.survey["title"] == {"en": "Night work", "es": "De noche"}
    response = send(ada, f"{DRAFTS}/{slug}/languages/es/remove", page=f"{DRAFTS}/{slug}/languages")
    assert response.status_code == 302
    assert content_of(store, slug).survey["title"]["es"] == "De noche"


def test_conditions_follow_a_renamed_question(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    save(ada, f"{DRAFTS}/{slug}/texts", allow_skip_logic="y")
    first, second = (question["key"] for question in content_of(store, slug).questions)
    path = f"{DRAFTS}/{slug}/questions/{second}"
    save(ada, path, ask_question="night", ask_options="yes")
    save(ada, f"{DRAFTS}/{slug}/questions/{first}", id="at_night")
    save(ada, path, help="Still asked after it")
    question = content_of(store, slug).question(second)
    assert (question["ask_question"], question["ask_options"]) == ("at_night", ("yes",))


def depending(client, store) -> tuple[str, str]:
    """Return a draft whose second page has a question that depends on the first page's."""
    slug = begin(client)
    save(client, f"{DRAFTS}/{slug}/texts", allow_skip_logic="y")
    add_path = add_question(client, slug, "yes_no")
    save(client, add_path, text="Have you work?", id="work")
    do(client, slug, "page-add")
    page = content_of(store, slug).pages[1].key
    path = add_question(client, slug, "yes_no", page)
    save(client, path, text="At night?", id="night", does_not_apply="y", ask_question="work")
    save(client, path, ask_options="yes")
    assert condition(store, slug) == ("work", ("yes",))
    return slug, path


def test_the_outline_says_that_a_grade_covers_linked_questions(ada, store):
    slug, _ = depending(ada, store)
    outline = " ".join(ada.get(f"{DRAFTS}/{slug}").text.split())
    grades = re.findall(
        r"(\w+) protection together with the linked questions \(this question alone: ε ([\d.]+)\)",
        outline,
    )
    assert grades == [("moderate", "1.099"), ("moderate", "1.099")]  # 3 · 3 = 9


def condition(store, slug: str) -> tuple[str, tuple[str, ...]]:
    night = next(item for item in content_of(store, slug).questions if item["id"] == "night")
    return night["ask_question"], night["ask_options"]


@pytest.mark.parametrize("how", ["save", "autosave"])
def test_a_condition_is_saved_while_its_question_comes_later(ada, store, how):
    slug, path = depending(ada, store)
    page = content_of(store, slug).pages[1].key
    do(ada, slug, f"page-up {page}")
    sheet = ada.get(path)
    assert "Have you work? (no longer an earlier question" in sheet.text
    field = sheet.text[sheet.text.index('for="ask_question"') :]
    assert "is not a question with options on an earlier page" in field[: field.index("<select")]
    messages = save(ada, path, do=how, help="Paid or not")
    if how == "autosave":
        assert "is not a question with options" in messages.json["errors"]["ask_question"]
        assert messages.json["elsewhere"] == []
    assert condition(store, slug) == ("work", ("yes",))
    do(ada, slug, f"page-down {page}")
    assert condition(store, slug) == ("work", ("yes",))
    assert "no longer an earlier question" not in ada.get(path).text


def test_a_condition_is_saved_while_its_question_is_invalid_or_missing(ada, store):
    slug, path = depending(ada, store)
    first = next(content_of(store, slug).questions)["key"]
    save(ada, f"{DRAFTS}/{slug}/questions/{first}", way="epsilon", value="none")
    save(ada, path, help="Paid or not")
    assert condition(store, slug) == ("work", ("yes",))
    do(ada, slug, f"question-remove {first}")
    save(ada, path, help="Or so")
    assert condition(store, slug) == ("work", ("yes",))
    assert "work (no longer an earlier question" in ada.get(path).text


def test_answers_of_the_previous_condition_are_not_selected_for_another_question(ada, store):
    slug, path = depending(ada, store)
    other_path = add_question(ada, slug, "single_choice")
    save(ada, other_path, text="How often?", id="often", **rows("Never", "Always"))
    save(ada, path, ask_question="often", ask_options="yes")
    assert condition(store, slug) == ("often", ())


def test_unsaved_text_for_a_deleted_draft_is_returned_with_the_reason(ada, ben, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    key = store.researcher(OTHER_EMAIL).key
    store.set_role(slug, key, "editor")
    path = f"{DRAFTS}/{slug}/questions/{next(content_of(store, slug).questions)['key']}"
    opened = fields(ben.get(path))
    store.set_role(slug, key, "viewer")
    response = save(ben, path, opened=opened, help="Ben's long work")
    assert "Your role in this draft has changed" in response.text
    assert "Ben&#39;s long work" in response.text
    store.set_role(slug, key, "editor")
    publish_draft(ada, slug)
    response = save(ben, path, opened=opened, help="Ben's long work")
    assert "was published as night-work in the meantime" in response.text
    assert "Ben&#39;s long work" in response.text
    messages = save(ben, path, do="autosave", opened=opened, help="x").json
    assert "published as night-work in the meantime" in messages["not_saved"]


def test_translations_of_new_answers_are_kept(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "single_choice")
    send(ada, f"{DRAFTS}/{slug}/languages", language="es")
    opened = fields(ada.get(path))
    messages = save(ada, path, do="autosave", opened=opened, **rows("Never", "Often")).json
    translation = f"{DRAFTS}/{slug}/languages/es"
    sheet = fields(ada.get(translation))
    names = [name for name in sheet if "-option-" in name]
    save(ada, translation, opened=sheet, **dict(zip(names, ("Nunca", "Mucho"), strict=True)))
    again = {**opened, "revision": str(messages["revision"]), **rows("Never", "Often")}
    save(ada, path, do="autosave", opened=again, help="More")
    labels = [item["label"] for item in next(content_of(store, slug).questions)["options"]]
    assert labels == [{"en": "Never", "es": "Nunca"}, {"en": "Often", "es": "Mucho"}]


def test_signing_in_again_returns_to_the_page_of_the_form(ada, store, small):
    collect = "/research/surveys/small/collect"
    form = {"csrf_token": token(ada.get(collect)), "name": "small"}
    for session in store.sessions(store.researcher(EMAIL).key):
        store.end_session(session.token_hash)
    response = ada.post(f"{collect}/close", data=form)
    assert response.location == f"/research/sign-in?next={collect}"


def test_copies_get_new_slugs_and_a_new_version_keeps_the_plan(ada, store, small):
    collect = "/research/surveys/small/collect"
    store.set_plan(small.key, Plan(500, {"North": 200}))
    drafts = [send(ada, f"{DRAFTS}/of/small", page=collect, copy="1") for _ in range(2)]
    slugs = [response.location.rpartition("/")[2] for response in drafts]
    assert [content_of(store, slug).survey["slug"] for slug in slugs] == ["small-2", "small-3"]
    version = send(ada, f"{DRAFTS}/of/small", page=collect).location.rpartition("/")[2]
    plan = content_of(store, version).plan
    assert (plan["n"], plan["strata"]) == ("500", "North 200")
    page = ada.get(f"{DRAFTS}/{version}/publish").text
    assert "What happens to version 1" in page


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("questions/2", {"do": "option-up " + "9" * 5000}),
        ("questions/2", {"options-" + "9" * 3 + "-key": "9" * 5000}),
        ("edit", {"do": "question-up " + "9" * 5000}),
    ],
)
def test_numbers_with_thousands_of_digits_cause_no_server_error(ada, path, data):
    slug = begin(ada)
    add_question(ada, slug, "single_choice")
    form = {"csrf_token": token(ada.get(f"{DRAFTS}/{slug}/questions/2")), **data}
    assert ada.post(f"{DRAFTS}/{slug}/{path}", data=form).status_code < 500
    explore = f"/research/surveys/{slug}/explore?version=" + "9" * 5000
    assert ada.get(explore).status_code == 404


def test_too_many_answers_are_reported_and_saved(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "single_choice")
    save(ada, path, text="Which?", **rows(*(f"Answer {n}" for n in range(130))))
    assert len(next(content_of(store, slug).questions)["options"]) == 130
    assert "The number of answers is 130; the nearest allowed number is 100" in ada.get(path).text


def test_answers_with_a_repeated_number_become_new_answers(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "single_choice")
    save(ada, path, **rows("A", "B"))
    keys = {"options-0-key": "3", "options-1-key": "3", "options-2-key": "999999"}
    save(ada, path, **keys, **rows("A", "B", "C"), way="text", do="save")
    question = next(content_of(store, slug).questions)
    numbers = [item["key"] for item in question["options"]]
    assert len(set(numbers)) == 3
    assert max(numbers) < 999_999
    assert question["way"] == ""


def test_a_new_question_type_starts_at_the_standard_privacy(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "yes_no")
    save(ada, path, way="truth_probability", value="0.7")
    save(ada, path, type="number", low="0", high="10")
    question = next(content_of(store, slug).questions)
    assert (question["type"], question["way"], question["value"]) == ("number", "", "")


def test_a_test_run_has_no_collection_pages(ada, store):
    slug = begin(ada)
    add_two_questions(ada, slug)
    send(ada, f"{DRAFTS}/{slug}/try/make", page=f"{DRAFTS}/{slug}/try")
    (test_run,) = store.test_runs(slug)
    for name in (slug, test_run.slug):
        assert ada.get(f"/research/surveys/{name}/collect").status_code == 404
    page = ada.get(f"/research/surveys/{test_run.slug}/1").text
    assert "/collect" not in page
    assert ada.get(f"/research/surveys/{test_run.slug}/1/report").text.count("TEST: Night work") > 0


def test_control_characters_are_removed_from_a_title(ada, store):
    slug = begin(ada, "a\0b")
    assert content_of(store, slug).title == "ab"
    assert send(ada, f"{DRAFTS}/new", title="   ").status_code == 422


def test_a_button_creates_the_links_of_planned_groups(ada, store, small):
    store.set_plan(small.key, Plan(500, {"North": 40}))
    collect = "/research/surveys/small/collect"
    assert 'name="stratum" value="North"' in ada.get(collect).text
    links = send(ada, f"{collect}/invite", page=collect, count="40", stratum="North")
    assert links.text.count("North") >= 40


def test_a_button_pressed_twice_adds_one_item(ada, store):
    page = ada.get(f"{DRAFTS}/new")
    data = {"csrf_token": token(page), "title": "Once"}
    first, second = (ada.post(f"{DRAFTS}/new", data=data) for _ in range(2))
    assert first.location == second.location
    assert len(store.drafts()) == 1
    slug = first.location.rpartition("/")[2]
    page = ada.get(f"{DRAFTS}/{slug}")
    data = {"csrf_token": token(page), "revision": "1", "do": "question-add 1", "type": "yes_no"}
    for _ in range(2):
        assert ada.post(f"{DRAFTS}/{slug}/edit", data=data).status_code == 302
    assert len(list(content_of(store, slug).questions)) == 1
    assert "changed after you opened this page" in ada.get(f"{DRAFTS}/{slug}").text


def test_the_second_editor_of_a_page_title_sees_the_current_title(ada, ben, store):
    slug = begin(ada)
    store.set_role(slug, store.researcher(OTHER_EMAIL).key, "editor")
    path = f"{DRAFTS}/{slug}/pages/1"
    pages = [client.get(f"{DRAFTS}/{slug}") for client in (ada, ben)]
    for client, page, title in zip((ben, ada), reversed(pages), ("Ben's", "Ada's"), strict=True):
        data = {"csrf_token": token(page), "p1-revision": "1", "p1-title": title}
        data["p1-csrf_token"] = data["csrf_token"]
        client.post(path, data=data)
    assert content_of(store, slug).pages[0].title == {"en": "Ben's"}
    assert "renamed this page to “Ben&#39;s” in the meantime" in ada.get(f"{DRAFTS}/{slug}").text
