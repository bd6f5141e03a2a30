"""Exports in the real survey-core and survey-js-ui: every question appears, without a warning."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Browser, Page, expect

from survey.questionnaire.exports import export_questionnaire
from tests.conftest import ROOT
from tests.questionnaire.test_surveyjs_export import all_surveys

pytestmark = pytest.mark.web

MODULES = ROOT / "client_js/node_modules"
SCRIPTS = (
    "survey-core/survey.core.js",
    "survey-core/survey.i18n.js",
    "survey-js-ui/survey-js-ui.js",
)

RENDER = """form => {
  const model = new Survey.Model(form);
  window.model = model;
  model.showInvisibleElements = true;
  model.questionsOnPageMode = "singlePage";
  const place = document.createElement("div");
  document.body.replaceChildren(place);
  model.render(place);
  return {
    errors: (model.jsonErrors || []).map(error => error.message),
    questions: model.getAllQuestions().map(question => [question.name, question.id]),
  };
}"""


@pytest.fixture(scope="module")
def blank(browser: Browser):
    """A blank page with the scripts of SurveyJS, and what its console says."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    messages: list[str] = []
    page.on("console", lambda line: messages.append(f"{line.type}: {line.text}"))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.set_content("<!doctype html><title>Survey</title><body></body>")
    page.add_style_tag(path=MODULES / "survey-core/survey-core.fontless.css")
    for script in SCRIPTS:
        page.add_script_tag(path=MODULES / script)
    messages.clear()
    yield page, messages
    page.close()


def names_in(form: dict) -> list[str]:
    return [element["name"] for page in form["pages"] for element in page["elements"]]


def rendered(page: Page, form: dict) -> None:
    """Render a survey; all of its questions must be visible."""
    result = page.evaluate(RENDER, form)
    assert result["errors"] == []
    assert [name for name, _ in result["questions"]] == names_in(form)
    for _, element in result["questions"]:
        expect(page.locator(f"[id='{element}']")).to_be_visible()


def test_every_exported_survey_renders_with_all_questions_and_no_warning(blank):
    page, messages = blank
    for name, survey in all_surveys().items():
        form = json.loads(export_questionnaire(survey, "surveyjs").content)
        rendered(page, form)
        assert messages == [], name


def test_surveyjs_offers_the_options_scales_and_bounds_of_the_definition(blank):
    page, _ = blank
    surveys = all_surveys()
    form = json.loads(export_questionnaire(surveys["EVERY_TYPE"], "surveyjs").content)
    rendered(page, form)
    for label in ("I was ill", "None of these", "Prefer not to say", "Very good"):
        expect(page.get_by_text(label, exact=True).first).to_be_visible()
    assert page.locator("input[type=number]").first.get_attribute("max") == "80"
    assert page.locator("input[type=date]").get_attribute("min") == "1998-03-02"
    assert page.locator("[role=radio], input[type=radio]").count() == 5
    rendered(page, json.loads(export_questionnaire(surveys["MORE"], "surveyjs").content))
    n_points = "name => model.getQuestionByName(name).visibleRateValues.length"
    assert page.evaluate(n_points, "steps") == 31


def test_surveyjs_asks_a_question_only_after_the_answers_of_its_condition(blank):
    page, _ = blank
    form = json.loads(export_questionnaire(all_surveys()["MORE"], "surveyjs").content)
    rendered(page, form)
    is_asked = """([answers, name]) => {
      model.showInvisibleElements = false;
      model.data = answers;
      return model.getQuestionByName(name).isVisible;
    }"""
    for answers, name, expected in (
        ({}, "silent", False),
        ({"job": "a"}, "silent", False),
        ({"job": "b"}, "silent", True),
        ({"job": "refused"}, "silent", True),
        ({"job": "does_not_apply"}, "silent", True),
        ({"tools": ["a"]}, "empty", False),
        ({"tools": ["none"]}, "empty", True),
        ({"tools": ["none"], "empty": "low"}, "why", True),
        ({"tools": ["none"], "empty": "mid"}, "why", False),
    ):
        assert page.evaluate(is_asked, [answers, name]) is expected, (answers, name)
