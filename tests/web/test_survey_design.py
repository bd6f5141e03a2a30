"""The builder proposes the design of a whole survey, and applies it to the draft."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from fractions import Fraction

import pytest

from survey.questionnaire.drafts.check import check_draft
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.loading import parse
from survey.questionnaire.privacy_loss import odds_in_words
from survey.results.plan.compute import planned_margin, to_published
from survey.results.plan.survey_design import present_design, survey_plan
from survey.settings import Caps
from tests.conftest import EMAIL
from tests.web.researchers import sign_in

DRAFTS = "/research/drafts"

WARDS = f"""
slug = "wards"
title = "Wards"
prefer_not_to_say = false
truth_probability = "0.75"
[[pages]]
[[pages.questions]]
id = "hurt"
type = "yes_no"
text = "Were you hurt?"
[[pages.questions]]
id = "bullied"
type = "yes_no"
text = "Were you bullied?"
[[pages.questions]]
id = "leaving"
type = "yes_no"
text = "Are you leaving?"
[[pages.questions]]
id = "ward"
type = "single_choice"
text = "Which ward?"
truth_probability = "0.25"
options = [{", ".join(f'{{ id = "w{i}", label = "Ward {i}" }}' for i in range(12))}]
[[pages.questions]]
id = "hours"
type = "number"
text = "How many hours?"
low = 0
high = 12
unit = "hours"
truth_probability = false
epsilon = "1"
""".replace("truth_probability = false\n", "")


@pytest.fixture
def ada(client, researcher):
    assert sign_in(client).status_code == 302
    return client


@pytest.fixture
def begin(store, ada):
    """Return a function that stores the draft of the wards with a plan, and returns its slug."""

    def add(text: str = WARDS, **plan: str) -> str:
        content = draft_from(parse(text.encode(), "wards.toml"))
        content = replace(content, plan={**content.plan, "n": "2000", **plan})
        owner = store.researcher(EMAIL).key
        return store.add_draft(content.to_json(), EMAIL, 1, {owner: "owner"}).slug

    return add


def content_of(store, slug: str) -> DraftContent:
    return DraftContent.from_json(store.draft(int(slug.removeprefix("trial-"))).content)


def design_section(page: str) -> str:
    """Return the words of the panel, with one space between them."""
    section = re.search(r'<section class="part" id="design".*?</section>', page, re.S)[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", section)).split())


def press(client, slug: str, name: str, page: str = "", came_from: str = ""):
    """Press a button of the plan page by its value."""
    page = client.get(page or f"{DRAFTS}/{slug}/plan").text
    assert f'value="{name}"' in page, re.findall(r'value="(use-[^"]*)"', page)
    form = {
        field: re.search(rf'name="{field}"[^>]*value="([^"]*)"', page)[1]
        for field in ("csrf_token", "revision")
    }
    data = {**form, "do": name, "page": came_from}
    return client.post(f"{DRAFTS}/{slug}/edit", data=data), form


def recommended_button(client, slug: str) -> str:
    page = client.get(f"{DRAFTS}/{slug}/plan").text
    return re.search(r'value="(use-design \d+)">Use the recommended design', page)[1]


@pytest.mark.web
def test_the_plan_page_compares_the_present_design_with_the_recommended_one(ada, store, begin):
    slug = begin(total="3.2")
    draft_check = check_draft(content_of(store, slug), Caps())
    listed = list(draft_check.questions.values())
    best = survey_plan(listed, Fraction("3.2"), 2_000).recommended
    now = present_design(listed, draft_check.asked.groups, 5, 2_000)
    words = design_section(ada.get(f"{DRAFTS}/{slug}/plan").text)
    assert "limited to epsilon 3.2, a factor of 25." in words
    assert f"Ask each person {best.drawn} of 5 questions" in words
    margins = [f"±{100 * design.typical_margin:.1f}" for design in (best, now)]
    assert f"typical margin becomes {margins[0]} points instead of {margins[1]}. The" in words
    assert f"{best.drawn} of 5 questions recommended Use" in words
    assert "All 5 questions Now" in words
    assert "Which ward? epsilon 3.2 (now 1.3" in words
    assert (
        "mechanism “Optimal piecewise: for the mean above epsilon 1.5”: intervals narrower by a "
        "factor of 1." in words
    )
    chart = ada.get(f"{DRAFTS}/{slug}/design.svg?look=dark")
    assert chart.content_type == "image/svg+xml"
    assert "Questions per person" in chart.text


def test_the_recommended_design_is_applied_to_the_draft(ada, store, begin):
    slug = begin(total="4")
    listed = list(check_draft(content_of(store, slug), Caps()).questions.values())
    best = survey_plan(listed, Fraction(4), 2_000).recommended
    response, _ = press(ada, slug, recommended_button(ada, slug))
    assert re.search(r"/plan\?did=use-design&.*#design$", response.location)
    page = ada.get(response.location).text
    assert "The draft now uses this design." in page
    survey = check_draft(content_of(store, slug), Caps()).survey
    assert survey.questions_per_person == best.drawn
    assert survey.total_ratio == best.ratio
    for question, item in zip(survey.questions, best.questions, strict=True):
        assert question.channel == item.question.channel, question.id
        assert (question.design, question.epsilon) == (item.question.mechanism, item.epsilon)
    assert "No other design with this privacy loss has clearly smaller margins" in design_section(
        page
    )
    assert "Use the recommended design" not in page


def test_crossed_questions_become_one_group_that_is_randomized_jointly(ada, store, begin):
    slug = begin(crossings="bullied, leaving", total="2.9")
    words = design_section(ada.get(f"{DRAFTS}/{slug}/plan").text)
    assert "all or none of: bullied, leaving. Their answers are randomized jointly." in words
    assert press(ada, slug, recommended_button(ada, slug))[0].status_code == 302
    survey = check_draft(content_of(store, slug), Caps()).survey
    assert ["bullied", "leaving"] in survey.groups
    joint = {question.id: question.joint for question in survey.questions}
    assert joint["bullied"] == joint["leaving"]
    assert joint["bullied"].questions == ("bullied", "leaving")
    # A report of at most this factor is not weak, so neither is one answer.
    assert survey.total_ratio <= 20
    assert joint["bullied"].channel.ratio <= 9


ITEMS = "".join(
    f'[[questions]]\nid = "i{i}"\ntype = "yes_no"\ntext = "Item {i}?"\n' for i in range(6)
)
GRID = f"""
slug = "grid"
title = "Grid"
prefer_not_to_say = false
epsilon = "0.5"
{ITEMS}
[[together]]
questions = ["i0", "i1", "i2", "i3", "i4"]
"""


def test_yes_no_questions_that_belong_together_are_put_into_a_half_space(ada, store, begin):
    slug = begin(GRID, total="4")
    words = design_section(ada.get(f"{DRAFTS}/{slug}/plan").text)
    assert "all or none of: i0, i1, i2, i3, i4. Their answers are randomized jointly." in words
    assert "cross-tabulated with others, but not with each other" in words
    before = content_of(store, slug)
    response, _ = press(ada, slug, recommended_button(ada, slug))
    content = content_of(store, slug)
    survey = check_draft(content, Caps()).survey
    (joint,) = {question.joint for question in survey.questions if question.joint}
    assert (joint.mechanism, joint.questions) == ("half_space", ("i0", "i1", "i2", "i3", "i4"))
    outline = " ".join(ada.get(f"{DRAFTS}/{slug}").text.split())
    assert "randomized jointly with i0, i1, i3 and 1 more" in outline
    page = ada.get(f"{DRAFTS}/{slug}/questions/{next(content.questions)['key']}").text
    assert "randomized in one half-space with those to 4 other questions" in page
    undo = re.search(r'name="do" value="(undo \d+)"', ada.get(response.location).text)[1]
    undone, _ = press(ada, slug, undo, page=response.location, came_from="plan")
    assert undone.location.endswith("/plan")
    assert content_of(store, slug) == before


def test_the_table_of_questions_per_person_has_privacy_and_margins_and_sets_the_number(
    ada, store, begin
):
    slug = begin(GRID.partition("[[together]]")[0].replace('"0.5"', '"0.9"'), n="1200")
    page = ada.get(f"{DRAFTS}/{slug}/plan").text
    table = page[page.index('<table class="draws">') :].partition("</table>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in table.split("<tr>")[1:]]
    words = [[" ".join(re.sub("<[^>]+>", " ", cell).split()) for cell in row] for row in rows]
    assert words[0] == ["Ask each person", *(f"{n} of 6" for n in range(1, 6)), "All 6"]
    # e^0.9 = 2.4596, e^1.8 = 6.05, e^2.7 = 14.9, e^3.6 = 36.6
    factors = ["strong factor 2.5", "moderate factor 6.1", "moderate factor 15", "weak factor 37"]
    assert words[2][1:5] == factors
    assert words[3][1:] == ["200", "400", "600", "800", "1,000", "1,200"]
    (question, *_) = check_draft(content_of(store, slug), Caps()).questions.values()
    margins = [100 * planned_margin(to_published(question), 200 * n) for n in range(1, 7)]
    assert words[4][1:] == [
        f"±{margin:.1f}" + (" (too wide)" if margin > 15 else "") for margin in margins
    ]
    assert "too wide" in words[4][1]
    assert "too wide" not in words[4][6]
    assert re.findall(r"Most without a warning|Now", " ".join(words[1])) == [
        "Most without a warning",
        "Now",
    ]
    response, _ = press(ada, slug, "ask-some 2", came_from="plan")
    assert re.search(r"/plan\?did=ask-some&.*#draws$", response.location)
    assert content_of(store, slug).survey["questions_per_person"] == "2"
    assert "Questions per person: 2." in ada.get(response.location).text


def test_the_plan_page_mentions_a_half_space_of_yes_no_questions_that_is_narrower(
    ada, store, begin
):
    slug = begin(GRID.partition("[[together]]")[0], total="4")
    listed = list(check_draft(content_of(store, slug), Caps()).questions.values())
    ids = [question.id for question in listed]
    declared = survey_plan(listed, Fraction(4), 2_000, together=[ids]).recommended
    margin = f"±{100 * declared.typical_margin:.1f}"
    assert declared.typical_margin < 0.9 * survey_plan(listed, 4, 2_000).recommended.typical_margin
    words = design_section(ada.get(f"{DRAFTS}/{slug}/plan").text)
    assert "cross the 6 yes/no questions i0, i1, i2, i3, i4, i5 with each other" in words
    assert f"in one half-space, they would make the typical margin {margin} points" in words


def test_the_standard_total_is_that_of_the_draft(ada, store, begin):
    slug = begin()
    before = check_draft(content_of(store, slug), Caps()).ratio
    assert f"that of the present draft, a factor of {odds_in_words(before)}." in design_section(
        ada.get(f"{DRAFTS}/{slug}/plan").text
    )
    press(ada, slug, recommended_button(ada, slug))
    assert check_draft(content_of(store, slug), Caps()).ratio <= before


def test_a_design_is_only_used_on_the_draft_it_was_computed_for(ada, store, begin):
    slug = begin(total="4")
    name = recommended_button(ada, slug)
    _, form = press(ada, slug, name)
    after = content_of(store, slug)
    again = ada.post(f"{DRAFTS}/{slug}/edit", data={**form, "do": name})
    assert "The draft changed after you opened this page" in ada.get(again.location).text
    assert content_of(store, slug) == after


def test_a_draft_with_mistakes_shows_designs_but_cannot_use_one(ada, store, begin):
    slug = begin(WARDS.replace("high = 12", "high = 12\nstep = 1"), total="4")
    content = content_of(store, slug)
    last = next(question for question in content.questions if question["id"] == "hours")
    broken = content.with_question(last["key"], {**last, "high": "x"})
    draft = store.draft(int(slug.removeprefix("trial-")))
    store.save_draft(draft, broken.to_json(), EMAIL, 2)
    page = ada.get(f"{DRAFTS}/{slug}/plan").text
    assert "Correct the questions with mistakes before you use a design." in design_section(page)
    assert 'value="use-design' not in page


def test_wrong_fields_of_the_design_are_reported(ada, begin):
    slug = begin(total="much", crossings="bullied")
    page = html.unescape(ada.get(f"{DRAFTS}/{slug}/plan").text)
    assert "Enter an epsilon above 0 and up to 100, such as 2.2" in page
    assert "“bullied” must be two different ids, such as: smokes, drinks" in page
    words = design_section(ada.get(f"{DRAFTS}/{begin(crossings='hurt, pain')}/plan").text)
    assert "Pain is not a question; questions: hurt, bullied" in words


def test_a_better_mechanism_is_offered_beside_the_question_with_its_gain(ada, store, begin):
    slug = begin()
    before = check_draft(content_of(store, slug), Caps()).questions
    key = next(key for key, question in before.items() if question.id == "ward")
    page = ada.get(f"{DRAFTS}/{slug}/questions/{key}").text
    gain = re.search(r"would be narrower by a factor of (\d\.\d\d) at the same epsilon", page)[1]
    assert float(gain) > 1.05
    response = post_beside(ada, slug, key, "use-mechanism")
    assert f"/questions/{key}?did=use-mechanism" in response.location
    ward = check_draft(content_of(store, slug), Caps()).questions[key]
    assert ward.design == "best"
    assert ward.channel.ratio <= before[key].channel.ratio
    assert "at the same epsilon" not in ada.get(response.location).text


def test_a_number_is_turned_into_ranges(ada, store, begin):
    slug = begin()
    before = check_draft(content_of(store, slug), Caps()).questions
    key = next(key for key, question in before.items() if question.id == "hours")
    page = ada.get(f"{DRAFTS}/{slug}/questions/{key}").text
    assert re.search(r"the margins are ±\d+\.\d points, narrower by a factor of 3\.\d", page)
    post_beside(ada, slug, key, "use-ranges")
    content = content_of(store, slug)
    hours = check_draft(content, Caps()).questions[key]
    assert [option.label for option in hours.ordinary] == [
        "0 to 2 hours",
        "3 to 4 hours",
        "5 to 7 hours",
        "8 to 9 hours",
        "10 to 12 hours",
    ]
    assert (hours.kind.is_ordered, hours.epsilon) == (True, 1)
    assert not hours.prefer_not_to_say
    assert "Nothing was changed" in ada.get(post_beside(ada, slug, key, "use-ranges").location).text


def post_beside(client, slug: str, key: int, name: str):
    page = client.get(f"{DRAFTS}/{slug}/questions/{key}").text
    csrf = re.search(r'name="csrf_token"[^>]*value="([^"]*)"', page)[1]
    return client.post(f"{DRAFTS}/{slug}/edit", data={"csrf_token": csrf, "do": f"{name} {key}"})
