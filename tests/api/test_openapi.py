"""The OpenAPI document: valid OpenAPI 3.1 that describes exactly the existing addresses."""

from __future__ import annotations

import json
import re
from dataclasses import fields

import pytest
from openapi_spec_validator import validate

from survey.api.endpoints import OPERATIONS, PARAMETERS
from survey.api.openapi import CSV, PREFIX, document
from survey.errors import STATUS
from survey.results.crosstab.compute import MAX_CELLS
from survey.results.crosstab.table import CrosstabRow
from survey.results.estimates.table import EstimateRow
from survey.results.exports.csv import column_names
from survey.results.request import INTERVAL_CHOICES, MAX_LEVEL, MIN_LEVEL, IntervalOptions
from survey.store import SCOPES


@pytest.fixture(scope="module")
def described():
    return json.loads(document(OPERATIONS, PARAMETERS, "https://survey.example.org/"))


def operations(described):
    return {path: item["get"] for path, item in described["paths"].items()}


def test_the_document_is_valid_openapi_3_1(described):
    assert described["openapi"].startswith("3.1")
    validate(described)


def test_the_document_is_served_without_a_token(client, store, small):
    response = client.get("/api/v1/openapi.json")
    assert (response.status_code, response.mimetype) == (200, "application/json")
    assert response.get_json()["servers"] == [{"url": "http://127.0.0.1:8000"}]


def test_the_document_contains_exactly_the_existing_routes(app, described):
    rules = [rule for rule in app.url_map.iter_rules() if rule.rule.startswith("/api")]
    served = {
        re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule): rule.endpoint.partition(".")[2]
        for rule in rules
    }
    assert {path: item["operationId"] for path, item in operations(described).items()} == served
    assert all(rule.methods == {"GET", "HEAD"} for rule in rules)
    assert all(set(item) == {"get"} for item in described["paths"].values())


def test_rows_have_exactly_the_columns_of_the_csv(described):
    for kind in (EstimateRow, CrosstabRow):
        schema = described["components"]["schemas"][kind.__name__]
        assert tuple(schema["properties"]) == tuple(schema["required"]) == column_names(kind)
        assert schema["additionalProperties"] is False


def test_the_columns_of_each_csv_are_listed(described):
    for path, item in operations(described).items():
        kinds = item["responses"]["200"]["content"]
        if CSV in kinds:
            row = CrosstabRow if path.endswith("crosstab") else EstimateRow
            assert ", ".join(column_names(row)) in kinds[CSV]["schema"]["description"]


def test_the_documented_limits_are_the_enforced_limits(described):
    requested = operations(described)[f"{PREFIX}/surveys/{{slug}}/versions/{{version}}/estimates"]
    schemas = {item["name"]: item["schema"] for item in requested["parameters"]}
    assert set(schemas) == {"slug", "version", *(field.name for field in fields(IntervalOptions))}
    assert (schemas["level"]["minimum"], schemas["level"]["maximum"]) == (MIN_LEVEL, MAX_LEVEL)
    assert tuple(schemas["interval"]["enum"]) == INTERVAL_CHOICES
    usual = IntervalOptions()
    assert schemas["level"]["default"] == usual.level
    assert schemas["interval"]["default"] == usual.interval
    assert schemas["target"]["default"] == usual.target
    table = described["components"]["schemas"]["Crosstab"]["properties"]["rows"]
    assert table["maxItems"] == MAX_CELLS


def test_each_scope_is_explained_and_each_address_names_its_scope(described):
    description = described["components"]["securitySchemes"]["token"]["description"]
    assert all(f"{scope}: {meaning}" in description for scope, meaning in SCOPES.items())
    for item in operations(described).values():
        scope = OPERATIONS[item["operationId"]].scope
        assert item["security"] == ([{"token": [scope]}] if scope else [])
        assert scope is None or scope in SCOPES


def test_error_responses_have_the_statuses_of_the_errors(described):
    statuses = {str(int(status)) for status in STATUS.values()}
    for item in operations(described).values():
        assert set(item["responses"]) - {"200", "304"} <= statuses
        assert ("401" in item["responses"]) == bool(item["security"])


def test_no_text_contains_python_notation(described):
    assert ">>>" not in json.dumps(described)
