"""The description of the API: valid OpenAPI 3.1, of every address and no other."""

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
from survey.results.options import INTERVAL_CHOICES, MAX_LEVEL, MIN_LEVEL, IntervalOptions
from survey.store import SCOPES


@pytest.fixture(scope="module")
def described():
    return json.loads(document(OPERATIONS, PARAMETERS, "https://survey.example.org/"))


def operations(described):
    return {path: each["get"] for path, each in described["paths"].items()}


def test_it_is_valid_openapi_3_1(described):
    assert described["openapi"].startswith("3.1")
    validate(described)


def test_it_is_served_without_a_token(client, store, small):
    answer = client.get("/api/v1/openapi.json")
    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    assert answer.get_json()["servers"] == [{"url": "http://127.0.0.1:8000"}]


def test_every_route_is_in_it_and_the_other_way_round(app, described):
    rules = [rule for rule in app.url_map.iter_rules() if rule.rule.startswith("/api")]
    served = {
        re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule): rule.endpoint.partition(".")[2]
        for rule in rules
    }
    assert {path: each["operationId"] for path, each in operations(described).items()} == served
    assert all(rule.methods == {"GET", "HEAD"} for rule in rules)
    assert all(set(each) == {"get"} for each in described["paths"].values())


def test_rows_have_the_columns_of_the_csv_and_no_other(described):
    for kind in (EstimateRow, CrosstabRow):
        schema = described["components"]["schemas"][kind.__name__]
        assert tuple(schema["properties"]) == tuple(schema["required"]) == column_names(kind)
        assert schema["additionalProperties"] is False


def test_a_csv_s_columns_are_told(described):
    for path, each in operations(described).items():
        kinds = each["responses"]["200"]["content"]
        if CSV in kinds:
            row = CrosstabRow if path.endswith("crosstab") else EstimateRow
            assert ", ".join(column_names(row)) in kinds[CSV]["schema"]["description"]


def test_limits_are_those_that_queries_are_held_against(described):
    asked = operations(described)[f"{PREFIX}/surveys/{{slug}}/versions/{{version}}/estimates"]
    schemas = {each["name"]: each["schema"] for each in asked["parameters"]}
    assert set(schemas) == {"slug", "version", *(field.name for field in fields(IntervalOptions))}
    assert (schemas["level"]["minimum"], schemas["level"]["maximum"]) == (MIN_LEVEL, MAX_LEVEL)
    assert tuple(schemas["interval"]["enum"]) == INTERVAL_CHOICES
    usual = IntervalOptions()
    assert schemas["level"]["default"] == usual.level
    assert schemas["interval"]["default"] == usual.interval
    assert schemas["target"]["default"] == usual.target
    table = described["components"]["schemas"]["Crosstab"]["properties"]["rows"]
    assert table["maxItems"] == MAX_CELLS


def test_each_scope_is_explained_and_each_address_names_its_own(described):
    said = described["components"]["securitySchemes"]["token"]["description"]
    assert all(f"{scope}: {meaning}" in said for scope, meaning in SCOPES.items())
    for each in operations(described).values():
        scope = OPERATIONS[each["operationId"]].scope
        assert each["security"] == ([{"token": [scope]}] if scope else [])
        assert scope is None or scope in SCOPES


def test_refusals_have_statuses_of_the_table_of_errors(described):
    known = {str(int(status)) for status in STATUS.values()}
    for each in operations(described).values():
        assert set(each["responses"]) - {"200", "304"} <= known
        assert ("401" in each["responses"]) == bool(each["security"])


def test_no_text_of_it_is_of_python(described):
    assert ">>>" not in json.dumps(described)
