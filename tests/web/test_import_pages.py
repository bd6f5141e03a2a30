"""Uploads of other tools' files become drafts, with a page about each element."""

from __future__ import annotations

import io
import json
import re

import pytest

from survey.collect.publication import publish
from survey.questionnaire.canonical import freeze
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.exports import WRITERS, export_questionnaire
from survey.questionnaire.loading import load, source_of
from survey.research.builder.downloads import Questionnaire
from survey.settings import Caps
from tests.conftest import EMAIL, SMALL, TODAY
from tests.questionnaire.limesurvey_files import Item, every_format
from tests.questionnaire.test_xlsform_export import every_survey
from tests.surveys import EVERY_DESIGN, EVERY_TYPE
from tests.web.researchers import sign_in, token

DRAFTS = "/research/drafts"
SOURCE = {"type": "radiogroup", "name": "job", "title": "Where?", "choices": ["a", "b"]}
SURVEYJS = {
    "title": "Work <b>here</b>",
    "elements": [
        SOURCE,
        {"type": "boolean", "name": "night", "visibleIf": "{job} = 'a'", "isRequired": True},
        {"type": "comment", "name": "<script>alert(1)</script>"},
    ],
}


@pytest.fixture
def ada(client, researcher):
    assert sign_in(client).status_code == 302
    return client


def upload(client, content: bytes, name: str, **data):
    csrf_token = token(client.get(f"{DRAFTS}/new"))
    data = {"csrf_token": csrf_token, "file": (io.BytesIO(content), name), **data}
    return client.post(f"{DRAFTS}/file", data=data)


def contents(store) -> list[DraftContent]:
    return [DraftContent.from_json(draft.content) for draft in store.drafts()]


def counts(page) -> dict[str, str]:
    return dict(re.findall(r"<dt>(\w+)</dt><dd>(\d+)</dd>", page.text))


def test_a_file_of_another_tool_becomes_a_draft_with_a_report_on_each_element(ada, store):
    page = upload(ada, json.dumps(SURVEYJS).encode(), "work.json")
    assert page.status_code == 200
    assert counts(page) == {"Kept": "2", "Changed": "0", "Dropped": "3"}
    headings = re.findall(r'<h2 id="(\w+)"', page.text)
    assert headings == ["dropped", "kept"]
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    assert "Free text cannot be randomized" in page.text
    (content,) = contents(store)
    assert [question["id"] for question in content.questions] == ["job", "night"]
    link = re.search(r'<a class="button" href="([^"]+)">Open the draft', page.text)[1]
    assert ada.get(link).status_code == 200


def test_skip_logic_is_kept_only_if_the_researcher_asks_for_it(ada, store):
    content = json.dumps(SURVEYJS).encode()
    upload(ada, content, "work.json")
    upload(ada, content, "work.json", skip_logic="y")
    conditions = [
        {question["ask_question"] for question in content.questions} for content in contents(store)
    ]
    assert sorted(map(sorted, conditions)) == [[""], ["", "job"]]


def test_a_file_sent_twice_is_one_draft_and_another_file_of_this_title_has_its_own_name(ada, store):
    for _ in range(2):
        upload(ada, json.dumps(SURVEYJS).encode(), "work.json")
    (first,) = contents(store)
    upload(ada, json.dumps({**SURVEYJS, "elements": [SOURCE]}).encode(), "work.json")
    slugs = sorted(str(content.survey["slug"]) for content in contents(store))
    assert slugs == [first.survey["slug"], f"{first.survey['slug']}-2"]


def test_every_format_of_limesurvey_can_be_uploaded(ada, store):
    files = every_format({"Group": [Item("q", "Y", "Do you work?")]})
    for name, content in files.items():
        page = upload(ada, content, name)
        assert page.status_code == 200, name
        assert counts(page)["Kept"] == "1", name
    assert len(store.drafts()) == 1


def test_a_file_that_cannot_be_imported_is_refused_at_the_field(ada, store):
    for name, content, words in (
        ("form.docx", b"PK", "questionnaire of SurveyJS"),
        ("form.lss", b"<!DOCTYPE d []><d/>", "document type"),
        ("form.json", b"{", "cannot be parsed"),
        ("form.json", json.dumps({"elements": [{"type": "comment"}]}).encode(), "randomized"),
        ("form.txt", b"a\tb", "not a survey of LimeSurvey"),
    ):
        page = upload(ada, content, name)
        assert page.status_code == 422, name
        error = re.search(r'id="file-error">.*?</span>([^<]+)', page.text)
        assert error, name
        assert words in error[1], name
        assert '<a href="#file">' in page.text
    assert store.drafts() == []


def test_a_definition_still_becomes_a_draft_at_once_or_lists_all_its_mistakes(ada, store):
    response = upload(ada, SMALL.encode(), "s.toml", skip_logic="y")
    assert response.status_code == 302
    wrong = upload(ada, SMALL.replace('"often"', '"once"').encode(), "s.toml")
    assert wrong.status_code == 422
    assert "No draft was created: 1 mistake" in wrong.text
    assert len(store.drafts()) == 1


def test_an_upload_without_a_token_or_a_file_changes_nothing(ada, store):
    file = (io.BytesIO(json.dumps(SURVEYJS).encode()), "work.json")
    response = ada.post(f"{DRAFTS}/file", data={"file": file})
    assert response.status_code == 409
    page = ada.get(f"{DRAFTS}/new")
    missing = ada.post(f"{DRAFTS}/file", data={"csrf_token": token(page)})
    assert missing.status_code == 422
    assert "Choose a file" in missing.text
    assert store.drafts() == []


def test_a_draft_can_be_downloaded_as_definition_and_for_other_tools(ada, store):
    location = upload(ada, EVERY_TYPE.encode(), "s.toml").location
    page = ada.get(f"{location}/download")
    assert "contact: the contact has no counterpart" in page.text
    files = [ada.get(link) for link in re.findall(r'href="([^"]+/download/\w+)"', page.text)]
    assert [file.status_code for file in files] == [200, 200, 200]
    definition, surveyjs, xlsform = files
    assert freeze(load(definition.data, "s.json", Caps()), 1).questions
    assert surveyjs.json["title"] == "Work and health"
    assert 'filename="trial-1-surveyjs.json"' in surveyjs.headers["Content-Disposition"]
    assert xlsform.data.startswith(b"PK")
    assert "trial-1-xlsform.xlsx" in xlsform.headers["Content-Disposition"]
    assert ada.get(f"{location}/download/docx").status_code == 404
    assert ada.get(location).text.count("/download") == 1


def test_each_published_version_can_be_downloaded_by_viewers(ada, store):
    team = {store.researcher(EMAIL).key: "viewer"}
    survey = load(EVERY_DESIGN, "s.toml", Caps())
    first = publish(store, survey, TODAY, team=team)
    publish(store, survey.model_copy(update={"title": "Another title"}), TODAY, team=team)
    base = f"/research/surveys/{first.slug}"
    assert f"{base}/2/download" in ada.get(f"{base}/2").text
    page = ada.get(f"{base}/1/download")
    links = re.findall(r'href="([^"]+/download/\w+)"', page.text)
    definition, surveyjs, xlsform = (ada.get(link) for link in links)
    assert "cannot express everything" in page.text
    assert definition.json == json.loads(json.dumps(source_of(first.definition), default=str))
    for form, file in (("surveyjs", surveyjs), ("xlsform", xlsform)):
        assert f"{first.slug}-1-{form}" in file.headers["Content-Disposition"]
        if form == "surveyjs":  # workbooks contain the time
            assert file.data == export_questionnaire(survey, form).content
    assert xlsform.data.startswith(b"PK")
    assert ada.get(f"{base}/1/download/docx").status_code == 404
    assert ada.get(f"{base}/3/download").status_code == 404


def test_a_published_version_is_converted_as_its_survey_whatever_its_mechanisms():
    for name, survey in every_survey():
        converted = Questionnaire.of_version(freeze(survey, 1)).survey
        assert converted is not None, name
        for form in WRITERS:
            expected, actual = (export_questionnaire(s, form) for s in (survey, converted))
            assert actual.notes == expected.notes, name
        surveyjs = [export_questionnaire(s, "surveyjs").content for s in (survey, converted)]
        assert surveyjs[0] == surveyjs[1], name


def test_a_draft_with_mistakes_cannot_be_downloaded(ada, store):
    questions = [{"type": "ranking", "name": "r", "choices": ["a", "b", "c"], "title": "x" * 2_000}]
    upload(ada, json.dumps({"title": "T", "elements": questions}).encode(), "s.json")
    (draft,) = store.drafts()
    page = ada.get(f"{DRAFTS}/{draft.slug}/download")
    assert "Correct them" in page.text
    assert ada.get(f"{DRAFTS}/{draft.slug}/download/surveyjs").status_code == 302
