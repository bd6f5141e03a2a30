"""The pages about what changes between versions, and from a version to a draft."""

from __future__ import annotations

from dataclasses import replace

import pytest

from survey.collect.publication import publish
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.loading import load, source_of
from survey.settings import Caps
from survey.store import find_survey
from tests.conftest import EMAIL, SMALL, TODAY
from tests.web.researchers import People

PAGE = "/research/surveys/small/changes"


@pytest.fixture
def people(app, store, researcher, small):
    return People(app, store)


def publish_next(store, *replacements: tuple[str, str]) -> None:
    text = SMALL
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    publish(store, load(text.encode(), "s.toml", Caps()), TODAY)


def draft_of(store, team, **survey) -> str:
    content = draft_from(source_of(find_survey(store, "small").definition))
    content = replace(content, survey={**content.survey, **survey})
    return store.add_draft(content.to_json(), EMAIL, 1, team).slug


def test_a_viewer_reads_what_changed_and_which_estimates_compare(store, people):
    publish_next(
        store,
        ("Did you fall asleep", "Did you ever fall asleep"),
        ('label = "Often"', 'label = "<b>Very</b> often"'),
    )
    page = people["viewer"].get(PAGE).text
    assert "Changes from version 1 to version 2" in page
    assert '<ins><span class="unseen">added: </span>ever</ins>' in page
    assert "Its text differs." in page
    assert "&lt;b&gt;Very&lt;/b&gt; often" in page
    assert "<b>Very" not in page
    assert "/changes?after=2" in people["viewer"].get("/research/surveys/small/1").text


def test_the_versions_can_be_chosen_and_must_exist(store, people):
    publish_next(store, ("A small survey", "A second survey"))
    publish_next(store, ("A small survey", "A third survey"))
    client = people["viewer"]
    assert "from version 2 to version 3" in client.get(PAGE).text
    chosen = client.get(f"{PAGE}?before=3&after=1").text
    assert "from version 1 to version 3" in chosen
    assert "second" not in chosen
    missing = client.get(f"{PAGE}?before=1&after=9")
    assert missing.status_code == 404
    assert "has no version 9: choose one of 1, 2, 3" in missing.text


def test_a_survey_with_one_version_says_so(people):
    assert "This survey has one version" in people["viewer"].get(PAGE).text


def test_a_draft_shows_what_it_changes_in_the_published_version(store, people):
    slug = draft_of(store, people.team, title={"en": "A large survey"})
    page = people["viewer"].get(f"/research/drafts/{slug}/changes").text
    assert "Changes from version 1 to the draft" in page
    assert '<ins><span class="unseen">added: </span>large</ins>' in page
    assert f"/research/drafts/{slug}/changes" in people["editor"].get(
        f"/research/drafts/{slug}/publish"
    ).text  # fmt: skip


def test_a_draft_does_not_reveal_a_survey_that_its_team_may_not_see(store, people):
    stranger = store.researcher("stranger@example.org").key
    slug = draft_of(store, {stranger: "owner"}, title={"en": "Mine"})
    page = people["stranger"].get(f"/research/drafts/{slug}/changes").text
    assert "replaces no published version that you can see" in page
    assert "A small survey" not in page


def test_a_draft_with_mistakes_says_so(store, people):
    slug = draft_of(store, people.team, title={})
    page = people["editor"].get(f"/research/drafts/{slug}/changes").text
    assert "The draft has mistakes." in page
