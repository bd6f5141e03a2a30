"""Requests that schemathesis generates from the OpenAPI document: no 5xx, documented responses."""

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
    """Return a token of an admin, with one survey of many reports and one of few."""
    definition = EVERY_TYPE.replace('slug = "small"', 'slug = "types"')
    types = publish(store, load(definition.encode(), "s.toml", Caps()), TODAY)
    add_released(store, types, 100)
    return make_token(store, admin)


EXISTING = {
    "small": {"first": "fell_asleep", "second": "pressure"},
    "types": {"first": "mood", "second": "hours"},
}
"""Existing surveys, each with two questions that can be cross-tabulated."""


def cases(operation):
    """Return a strategy of valid and invalid requests, many of them to existing surveys."""
    from schemathesis import GenerationMode

    fixed_parts = [{}]
    if operation.path_parameters:
        fixed_parts += [{"path_parameters": {"slug": slug, "version": 1}} for slug in EXISTING]
    if operation.label.endswith("crosstab"):
        fixed_parts += [
            {"path_parameters": {"slug": slug, "version": 1}, "query": query}
            for slug, query in EXISTING.items()
        ]
    return st.one_of(
        operation.as_strategy(generation_mode=mode, **parts)
        for parts in fixed_parts
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    )


def excluded_checks(case, response):
    """Return the checks that do not apply to a response."""
    from schemathesis.checks import CHECKS

    names = []
    if case.operation.query:
        # No schema says which questions a survey has, nor which parameters exclude each other.
        names.append("positive_data_acceptance")
    parameters = parse_qs(urlsplit(response.request.url).query, keep_blank_values=True)
    if set(case.query) != set(parameters):
        # An unknown parameter with an empty list as its value is not in the address at all.
        names.append("negative_data_rejection")
    return CHECKS.get_by_names(names)


def send_requests(app, token, examples):
    """Send `examples` requests to every address, validate the responses and count the statuses."""
    import schemathesis

    # Requests without our token, or with another, would not be sent as they were generated.
    config = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app, config=config)
    headers, statuses = {"Authorization": f"Bearer {token}"}, Counter()
    for operation in schema.get_all_operations():

        @given(case=cases(operation.ok()))
        @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
        def send(case):
            response = case.call(headers=headers)
            statuses[response.status_code] += 1
            case.validate_response(
                response,
                excluded_checks=excluded_checks(case, response),
                headers=headers,
                transport_kwargs={"headers": headers},
            )

        send()
    return statuses


@pytest.mark.security
@pytest.mark.web
def test_strict_payloads_a_few_requests_of_every_kind_match_the_description(app, token):
    statuses = send_requests(app, token, 15)
    assert {200, 404, 422} <= set(statuses)


@pytest.mark.security
@pytest.mark.long
def test_strict_payloads_many_requests_of_every_kind_match_the_description(app, token):
    statuses = send_requests(app, token, 1_800)
    assert statuses.total() >= 10_000
    assert statuses[200] > 500
