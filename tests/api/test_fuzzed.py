"""Requests that schemathesis makes from the description: no 5xx, each answer as it is described."""

from __future__ import annotations

from collections import Counter
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.api.conftest import make_token
from tests.browser.research import add_released
from tests.conftest import TODAY
from tests.surveys import EVERY_TYPE


@pytest.fixture
def token(store, filled, admin):
    """Of somebody who may read everything: a survey with many reports and one with few."""
    named = EVERY_TYPE.replace('slug = "small"', 'slug = "types"')
    types = publish(store, load(named.encode(), "s.toml", Caps()), TODAY)
    add_released(store, types, 100)
    return make_token(store, admin)


THERE = {
    "small": {"first": "fell_asleep", "second": "pressure"},
    "types": {"first": "mood", "second": "hours"},
}
"""Surveys that there are, with two questions that can be crossed."""


def cases(operation):
    """Requests as the description allows them and as it does not, many of them to what is there."""
    from schemathesis import GenerationMode

    given_parts = [{}]
    if operation.path_parameters:
        given_parts += [{"path_parameters": {"slug": slug, "version": 1}} for slug in THERE]
    if operation.label.endswith("crosstab"):
        given_parts += [
            {"path_parameters": {"slug": slug, "version": 1}, "query": query}
            for slug, query in THERE.items()
        ]
    return st.one_of(
        operation.as_strategy(generation_mode=mode, **parts)
        for parts in given_parts
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    )


def left_out(case, answer):
    """Checks that cannot be held against an answer."""
    from schemathesis.checks import CHECKS

    names = []
    if case.operation.query:
        # A schema cannot say which questions a survey has, nor which two keys exclude each other.
        names.append("positive_data_acceptance")
    if set(case.query) != set(parse_qs(urlsplit(answer.request.url).query, keep_blank_values=True)):
        # A wrong key whose value is an empty list is not in the address at all.
        names.append("negative_data_rejection")
    return CHECKS.get_by_names(names)


def ask_much(app, token, examples):
    """Ask every address so often; each answer is held against what is said of it."""
    import schemathesis

    # The token is ours: a request that lacks it or has another would not be sent as it was made.
    config = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app, config=config)
    said, statuses = {"Authorization": f"Bearer {token}"}, Counter()
    for found in schema.get_all_operations():

        @given(case=cases(found.ok()))
        @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
        def ask(case):
            answer = case.call(headers=said)
            statuses[answer.status_code] += 1
            case.validate_response(
                answer,
                excluded_checks=left_out(case, answer),
                headers=said,
                transport_kwargs={"headers": said},
            )

        ask()
    return statuses


@pytest.mark.security
def test_strict_payloads_a_few_requests_of_every_kind_are_answered_as_described(app, token):
    statuses = ask_much(app, token, 15)
    assert {200, 404, 422} <= set(statuses)


@pytest.mark.security
@pytest.mark.long
def test_strict_payloads_many_requests_of_every_kind_are_answered_as_described(app, token):
    statuses = ask_much(app, token, 1_800)
    assert statuses.total() >= 10_000
    assert statuses[200] > 500
