"""A matrix in the builder, and its rows together on the results page and in the exports."""

from __future__ import annotations

import csv
import io
import re

import pytest

from survey.questionnaire.drafts.conversion import definition_from, draft_from
from survey.questionnaire.loading import source_of
from tests.web.researchers import send, sign_in
from tests.web.test_drafts import DRAFTS, add_question, begin, content_of, do, fields, save

STEM = "How satisfied are you with the following?"
ROWS = {"text": STEM, "id": "work", "rows": "Pay\nWorking hours\nYour boss"}
SCALE = {"low": "1", "high": "5", "low_label": "Not at all", "high_label": "Very"}


@pytest.fixture
def ada(client, researcher):
    assert sign_in(client).status_code == 302
    return client


def test_a_matrix_is_written_once_and_published_with_its_rows(ada, store):
    slug = begin(ada)
    path = add_question(ada, slug, "matrix")
    assert save(ada, path, **ROWS, **SCALE, way="epsilon 1.7").status_code == 302
    assert fields(ada.get(path))["rows"].splitlines() == ["Pay", "Working hours", "Your boss"]
    outline = ada.get(f"{DRAFTS}/{slug}").text
    assert re.search(
        r"A matrix: several rows, one scale, work, moderate protection\s*\(ε 1.7", outline
    )
    for page in ("plan", "languages"):
        assert ada.get(f"{DRAFTS}/{slug}/{page}").status_code == 200, page
    page = ada.get(f"{DRAFTS}/{slug}/publish")
    revision = re.search(r'name="revision"[^>]*value="(\d+)"', page.text)[1]
    send(ada, f"{DRAFTS}/{slug}/publish", agreed="y", revision=revision)
    (survey,) = store.versions("night-work")
    ids = [question.id for question in survey.definition.questions]
    assert ids == ["work_pay", "work_working_hours", "work_your_boss"]
    again = draft_from(source_of(survey.definition))
    assert definition_from(again)["pages"][0]["questions"][0]["type"] == "matrix"


def test_the_builder_says_what_dividing_the_epsilon_among_rows_costs(ada):
    slug = begin(ada)
    path = add_question(ada, slug, "matrix")
    live = save(ada, path, do="look", **ROWS, **SCALE, way="epsilon", value="2.7").json["live"]
    assert live["epsilon"].startswith("Each row: epsilon 0.9")
    assert live["bounds"].startswith("All rows together change the odds of a guess about someone")
    assert "at most 15" in live["bounds"]
    margins = [float(text) for text in re.findall(r"±([\d.]+) points", live["rows"])]
    three_rows, two_rows, alone, sampled = margins
    assert alone < sampled < two_rows < three_rows, live["rows"]
    assert "Weak protection" in live["danger"]


def test_a_mistake_in_the_rows_is_shown_next_to_them(ada):
    slug = begin(ada)
    path = add_question(ada, slug, "matrix")
    errors = save(ada, path, do="look", **{**ROWS, "rows": "Pay"}, **SCALE).json["errors"]
    assert errors == {"rows": "The number of rows is 1; the nearest allowed number is 2"}
    errors = save(ada, path, do="look", **{**ROWS, "rows": "Pay\npay"}, **SCALE).json["errors"]
    assert errors == {"rows": 'Rows must differ: "pay" is the text of two rows'}


def test_a_planned_design_keeps_the_sum_of_the_rows_as_the_epsilon_of_the_matrix(ada, store):
    slug = begin(ada)
    save(ada, add_question(ada, slug, "matrix"), **ROWS, **SCALE, way="epsilon 1.7")
    save(ada, add_question(ada, slug, "yes_no"), text="Old?", id="old")
    assert do(ada, slug, "use-design 0", page="plan").status_code == 302
    matrix, _ = content_of(store, slug).questions
    assert matrix["way"] == "epsilon"
    assert float(matrix["value"]) > 0.9, "the value is that of one row"
    assert content_of(store, slug).survey["together"] == ()


def test_the_rows_of_a_matrix_stand_together_in_results_and_are_questions_in_exports(ada, store):
    slug = begin(ada)
    save(ada, add_question(ada, slug, "matrix"), **ROWS, **SCALE, way="epsilon", value="5")
    path = f"{DRAFTS}/{slug}/try"
    send(ada, f"{path}/make", page=path)
    send(ada, f"{path}/simulate", page=path, n="4000")
    (test_run,) = store.test_runs(slug)
    address = f"/research/surveys/{test_run.slug}/1"
    page = ada.get(address).text
    summary = page[page.index('<section class="question matrix"') :]
    summary = summary[: summary.index("</section>")]
    assert f'<h2 id="m-work" dir="auto">{STEM}</h2>' in summary
    assert re.findall(r'<a href="#(q-\w+)" dir="auto">([^<]*)</a>', summary) == [
        ("q-work_pay", "Pay"),
        ("q-work_working_hours", "Working hours"),
        ("q-work_your_boss", "Your boss"),
    ]
    assert summary.count("<svg") == summary.count("Mean: ") == 3
    ticks = [re.findall(r'y="72">([^<]*)<', part) for part in summary.split("<svg")[1:]]
    assert ticks[0] == ticks[1] == ticks[2], "the bars must have one axis"
    assert page.index("m-work") < page.index('id="q-work_pay"')
    rows = list(csv.DictReader(io.StringIO(ada.get(f"{address}/estimates.csv").text)))
    assert {(row["question_id"], row["question_text"]) for row in rows} == {
        ("work_pay", f"{STEM} Pay"),
        ("work_working_hours", f"{STEM} Working hours"),
        ("work_your_boss", f"{STEM} Your boss"),
    }


def test_placeholders_follow_the_new_id_of_their_question(ada, store):
    slug = begin(ada)
    job = add_question(ada, slug, "yes_no")
    save(ada, job, text="Do you work?", id="job")
    do(ada, slug, "page-add")
    travel = add_question(ada, slug, "yes_no", page=content_of(store, slug).pages[-1].key)
    errors = save(ada, travel, do="look", text="At {job|work}?", id="travel").json["errors"]
    assert "requires “Ask questions only after certain answers" in errors["text"]
    assert "Insert an earlier answer" not in ada.get(travel).text
    save(ada, f"{DRAFTS}/{slug}/texts", allow_skip_logic="y")
    assert "{job|your words}" in ada.get(travel).text
    save(ada, travel, text="At {job|work}?", id="travel")
    save(ada, job, id="works")
    _, changed = content_of(store, slug).questions
    assert changed["text"]["en"] == "At {works|work}?"
