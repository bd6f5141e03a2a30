"""Texts for ethics and data-protection applications, with the figures of a draft or survey."""

from __future__ import annotations

import re

import pytest

from survey.collect.publication import publish
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.loading import load, parse
from survey.questionnaire.privacy_loss import Bounds
from survey.settings import Caps
from tests.conftest import EMAIL, SMALL, TODAY
from tests.web.researchers import sign_in


@pytest.fixture
def signed_in(client, researcher):
    assert sign_in(client).status_code == 302
    return client


def text_of(response) -> str:
    assert response.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", "", response.text).split())


def test_a_published_survey_fills_in_its_own_figures(signed_in, small):
    base = "/research/surveys/small/1/application"
    ethics = text_of(signed_in.get(f"{base}/ethics"))
    bounds = Bounds.of(small.definition.ratio)
    assert f"by a factor of at most {bounds.odds}. " in ethics
    assert f"a suspicion of 10% becomes at most {bounds.from10}%." in ethics
    assert small.sha256 in ethics
    assert "Anybody who has the link can respond" in ethics
    assert "People who have the list of invitations" not in ethics
    assert re.search(r"With 1,000 responses, .* margin of error of \d+\.\d points", ethics)
    protection = text_of(signed_in.get(f"{base}/data-protection"))
    assert "A small survey" in protection
    assert "FACTOR" not in ethics + protection
    assert signed_in.get(f"{base}/other").status_code == 404


def test_what_does_not_apply_to_a_survey_is_left_out(signed_in, store, small):
    toml = SMALL.replace('slug = "small"', 'slug = "other"\naccess = "invitation"\nbucket = "day"')
    publish(
        store,
        load(toml.encode(), "s.toml", Caps()),
        TODAY,
        team={store.researcher(EMAIL).key: "owner"},
    )
    ethics = text_of(signed_in.get("/research/surveys/other/1/application/ethics"))
    assert "Anybody who has the link can respond" not in ethics
    assert "People who have the list of invitations" in ethics
    assert "stores the day or week in which a response was released" in ethics


def test_a_draft_has_texts_once_it_has_no_mistakes(signed_in, store):
    team = {store.researcher(EMAIL).key: "owner"}
    content = draft_from(parse(SMALL.encode(), "s.toml"))
    draft = store.add_draft(content.to_json(), EMAIL, 1, team)
    page = f"/research/drafts/{draft.slug}"
    assert f"{page}/application/ethics" in signed_in.get(f"{page}/publish").text
    assert "a factor of at most" in text_of(signed_in.get(f"{page}/application/ethics"))
    empty = draft_from(parse(SMALL.replace("Did you fall asleep at work?", " ").encode(), "s.toml"))
    draft = store.add_draft(empty.to_json(), EMAIL, 1, team)
    response = signed_in.get(f"/research/drafts/{draft.slug}/application/ethics")
    assert response.status_code == 409
    assert "has mistakes" in response.text
