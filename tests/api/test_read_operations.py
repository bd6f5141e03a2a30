"""Read operations of the API: results, media types and conditional requests."""

from __future__ import annotations

import csv
import io
from zipfile import ZipFile

import pytest
from openpyxl import load_workbook

from survey.app import create_app
from survey.collect.publication import close, publish
from survey.errors import StoreBusyError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.results.crosstab.table import CrosstabRow
from survey.results.exports.csv import column_names
from survey.settings import Caps
from tests.api.conftest import CROSSED, LATEST, PATHS, Program, make_token
from tests.browser.research import add_released
from tests.conftest import EMAIL, SMALL, TODAY
from tests.surveys import EVERY_TYPE
from tests.web.researchers import sign_in


def load_survey(toml: str, slug: str = "small"):
    definition = toml.replace('slug = "small"', f'slug = "{slug}"')
    return load(definition.encode(), "s.toml", Caps())


def rows_of(response) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(response.text)))


def test_every_address_matches_its_description(program, filled):
    for path in PATHS.values():
        assert program.get(path).status_code == 200


def test_surveys_are_listed_by_their_newest_version_with_its_properties(program, store, filled):
    publish(store, load_survey(SMALL.replace("Two questions.", "Anew.")), TODAY)
    listed = program.get("/surveys").get_json()
    assert listed["total"] == 1
    (newest,) = listed["surveys"]
    versions = program.get("/surveys/small").get_json()["versions"]
    assert [item["version"] for item in versions] == [2, 1]
    assert versions[0] == newest == program.get("/surveys/small/versions/2").get_json()
    assert (versions[0]["state"], versions[0]["released"], versions[0]["release"]) == ("open", 0, 0)
    old = versions[1]
    assert (old["state"], old["released"], old["release"]) == ("superseded", 3000, 1)
    assert (old["sha256"], old["title"]) == (filled.sha256, "A small survey")
    assert old["epsilon"] == filled.definition.epsilon


def test_archived_surveys_are_marked_and_test_runs_are_hidden(program, store, small, admin):
    store.set_archived("small", archived=True)
    assert program.get(LATEST).get_json()["archived"]
    definition = freeze(load_survey(SMALL).model_copy(update={"slug": "trial-1"}), 1)
    store.publish(definition, TODAY)
    of_admin = Program(program.client, make_token(store, admin))
    assert [item["slug"] for item in of_admin.get("/surveys").get_json()["surveys"]] == ["small"]
    assert of_admin.get("/surveys/trial-1").status_code == 404
    assert of_admin.get("/surveys/trial-1/versions/1/estimates").status_code == 404


def test_the_definition_equals_the_published_bytes(program, small):
    response = program.get(f"{LATEST}/definition")
    assert response.data == small.canonical
    assert response.headers["ETag"] == f'"{small.sha256}"'


def test_the_rows_equal_the_csv_of_the_dashboard(program, client, store, filled):
    store.add_researcher(EMAIL, store.researcher("admin@example.org").password_hash)
    store.set_role("small", store.researcher(EMAIL).key, "viewer")
    for query in ("", "?level=0.9&simultaneous=1", "?target=respondents", "?interval=wilson"):
        as_csv = program.get(f"{LATEST}/estimates{query}", accept="text/csv")
        sign_in(client)
        page = client.get(f"/research/surveys/small/1/estimates.csv{query}")
        assert as_csv.data == page.data
        assert as_csv.content_type == page.content_type == "text/csv; charset=utf-8"
        as_json = program.get(f"{LATEST}/estimates{query}").get_json()
        assert tuple(as_json["rows"][0]) == column_names()
        for row, line in zip(as_json["rows"], rows_of(as_csv), strict=True):
            assert line == {
                name: "" if value is None else str(value) for name, value in row.items()
            }


def test_json_states_the_release_and_the_options(program, filled):
    result = program.get(f"{LATEST}/estimates?level=0.9").get_json()
    assert (result["sha256"], result["release"], result["released"]) == (filled.sha256, 1, 3000)
    assert result["wanted"]["level"] == 0.9


def test_crosstabs_equal_those_of_the_page(program, client, store, filled, reader):
    as_csv = program.get(CROSSED, accept="text/csv")
    assert tuple(rows_of(as_csv)[0]) == column_names(CrosstabRow)
    table = program.get(CROSSED).get_json()
    assert (len(table["rows"]), table["n"], table["test"]["df"]) == (9, 3000, 4)
    sign_in(client, "reader@example.org")
    page = client.get(
        "/research/surveys/small/explore/crosstab.csv?first=fell_asleep&second=pressure"
    )
    assert page.data == as_csv.data


def test_too_few_reports_suppress_every_share_and_cell(program, store, small):
    add_released(store, small, 40)
    rows = program.get(f"{LATEST}/estimates").get_json()["rows"]
    assert {(row["flag"], row["estimate"], row["report_count"]) for row in rows} == {
        ("suppressed", None, None)
    }
    table = program.get(CROSSED).get_json()
    assert (table["shown"], table["test"]) == ("hide", None)
    assert {row["estimate"] for row in table["rows"]} == {None}
    # A different confidence level reveals nothing more.
    narrow = program.get(f"{LATEST}/estimates?level=0.5").get_json()["rows"]
    assert {row["estimate"] for row in narrow} == {None}


def test_every_question_type_matches_the_description(program, store, admin):
    survey = publish(store, load_survey(EVERY_TYPE, "types"), TODAY)
    of_admin = Program(program.client, make_token(store, admin))
    for n in (60, 900):
        add_released(store, survey, n)
        response = of_admin.get(f"/surveys/{survey.slug}/versions/1/estimates")
        assert response.status_code == 200
        assert b"NaN" not in response.data


def test_the_workbook_contains_the_same_rows(program, filled):
    response = program.get(f"{LATEST}/exports/estimates.xlsx")
    sheet = load_workbook(io.BytesIO(response.data))["estimates"]
    assert tuple(cell.value for cell in sheet[1]) == column_names()
    assert sheet.max_row - 1 == len(program.get(f"{LATEST}/estimates").get_json()["rows"])


# -- conditional requests


@pytest.mark.parametrize("tags", ["{}", '"other", {}', "*"])
def test_unchanged_results_are_not_sent_again(program, filled, tags):
    for path in PATHS.values():
        tag = program.get(path, tag='"other"').headers["ETag"]
        again = program.get(path, tag=tags.format(tag))
        assert (again.status_code, again.headers["ETag"]) == (304, tag)
        assert again.headers["Vary"] == "Accept, Authorization"
        assert again.headers["Cache-Control"] == "private, no-cache"


def test_unchanged_results_are_not_computed_again(program, store, app, filled, monkeypatch):
    tags = {path: program.get(path).headers["ETag"] for path in (f"{LATEST}/estimates", CROSSED)}

    def fail(*_):
        raise AssertionError("computed")

    for name in ("tally", "tallies", "block_columns"):
        monkeypatch.setattr(store, name, fail)
    monkeypatch.setattr("survey.results.estimates.result.SurveyResult", fail)
    for path, tag in tags.items():
        assert program.get(path, tag=tag).status_code == 304


def test_each_release_query_and_media_type_has_a_separate_tag(program, store, filled):
    def tags() -> list[str]:
        requested = [
            (f"{LATEST}/estimates", ""),
            (f"{LATEST}/estimates", "text/csv"),
            (f"{LATEST}/estimates?level=0.9", ""),
            (f"{LATEST}/estimates?simultaneous=1", ""),
            (f"{LATEST}/estimates?interval=wilson", ""),
            (f"{LATEST}/estimates?target=respondents", ""),
            (CROSSED, ""),
            (CROSSED, "text/csv"),
            (f"{CROSSED}&level=0.9", ""),
            (f"{LATEST}/crosstab?first=pressure&second=fell_asleep", ""),
            (f"{LATEST}/exports/estimates.xlsx", ""),
        ]
        return [program.get(path, accept=accept).headers["ETag"] for path, accept in requested]

    before = tags()
    assert len(set(before)) == len(before)
    assert tags() == before
    add_released(store, filled, 50)
    assert not set(tags()) & set(before)


def test_two_processes_give_a_release_the_same_tag(program, store, settings, filled):
    second = Program(create_app(settings, store).test_client(), program.token)
    for path in PATHS.values():
        assert program.get(path).headers["ETag"] == second.get(path).headers["ETag"]


def test_explicit_defaults_equal_omitted_parameters(program, filled):
    tag = program.get(f"{LATEST}/estimates").headers["ETag"]
    query = "level=0.95&simultaneous=0&target=population&interval=feldman-cousins"
    assert program.get(f"{LATEST}/estimates?{query}").headers["ETag"] == tag


def test_a_closed_survey_can_still_be_read(program, store, filled):
    tag = program.get(f"{LATEST}/exports/estimates.xlsx").headers["ETag"]
    close(store, "small", TODAY)
    assert program.get(LATEST).get_json()["state"] == "closed"
    # The workbook names the state.
    assert program.get(f"{LATEST}/exports/estimates.xlsx", tag=tag).status_code == 200


# -- media types and queries


def test_the_media_type_is_the_one_that_the_client_prefers(program, small):
    for accept, media_type in (
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/json; charset=utf-8", "application/json"),
        ("application/*", "application/json"),
        ("text/csv", "text/csv"),
        ("text/*;q=0.5", "text/csv"),
        ("text/csv;q=0.9, application/json;q=0.1", "text/csv"),
        ("text/html, text/csv;q=0.2", "text/csv"),
        ("text/html", None),
        ("nonsense", None),
    ):
        response = program.get(f"{LATEST}/estimates", accept=accept)
        if media_type:
            assert (response.status_code, response.mimetype) == (200, media_type), accept
        else:
            assert response.status_code == 406, accept
            assert "application/json or text/csv" in response.get_json()["detail"]


def test_an_invalid_query_is_rejected_with_the_allowed_values(program, small):
    for path, words in (
        ("/estimates?level=2", "must be from 0.5 to 0.999"),
        ("/estimates?level=nan", "must be a number, for example 0.95"),
        ("/estimates?level=", "must be a number"),
        ("/estimates?interval=wald", "must be one of feldman-cousins"),
        ("/estimates?simultaneous=yes", "must be 1 or 0"),
        ("/estimates?target=all", "must be one of population, respondents"),
        ("/estimates?target=respondents&interval=wilson", "leave it out"),
        ("/estimates?leval=0.9", "allowed: level, interval, simultaneous, target"),
        ("/estimates?level=0.9&level=0.5", "level is given more than once"),
        ("/estimates?access_token=t", "'access_token' is an unknown parameter"),
        ("/exports/estimates.xlsx?level=0", "must be from 0.5"),
        ("?level=0.9", "none is allowed here"),
        ("/crosstab", "first is missing"),
        ("/crosstab?first=pressure", "second is missing"),
        ("/crosstab?first=pressure&second=no", "its questions are fell_asleep, pressure"),
        ("/crosstab?first=pressure&second=pressure", "two different questions"),
        ("/crosstab?first=pressure&second=fell_asleep&level=1", "must be from 0.5"),
        ("/crosstab?first=pressure&second=fell_asleep&target=population", "unknown parameter"),
    ):
        response = program.get(LATEST + path)
        assert response.status_code == 422, path
        assert words in response.get_json()["detail"], (path, response.get_json())


def test_a_table_without_reports_states_that_there_are_none(program, small):
    response = program.get(CROSSED)
    assert response.status_code == 422
    assert "no released report" in response.get_json()["detail"]


@pytest.mark.parametrize(
    "path",
    ["/surveys/none", "/surveys/small/versions/2", "/surveys/small/versions/0", "/surveys/%00"],
)
def test_unknown_surveys_and_versions_are_not_found(program, store, admin, small, path):
    for client in (program, Program(program.client, make_token(store, admin))):
        for below in ("", "/estimates") if "versions" in path else ("",):
            response = client.get(path + below)
            assert (response.status_code, response.mimetype) == (404, "application/problem+json")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_methods_that_write_are_rejected(program, small, method):
    for path in PATHS.values():
        response = program.get(path, method=method)
        assert response.status_code == 405
        assert set(response.headers["Allow"].split(", ")) == {"GET", "HEAD"}
        assert "Access-Control-Allow-Origin" not in response.headers


def test_head_has_the_headers_of_get(program, filled):
    path = f"{LATEST}/estimates"
    head, response = program.get(path, method="HEAD"), program.get(path)
    assert (head.status_code, head.data) == (200, b"")
    assert head.headers["ETag"] == response.headers["ETag"]


def test_browsers_get_problem_json_too(client, small):
    response = client.get("/api/v1/nothing", headers={"Accept": "text/html"})
    assert (response.status_code, response.mimetype) == (404, "application/problem+json")


def test_a_busy_store_asks_the_client_to_retry_later(program, store, small, monkeypatch):
    def busy(*_):
        raise StoreBusyError("busy")

    monkeypatch.setattr(store, "versions", busy)
    response = program.get(LATEST)
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0


def test_lists_have_a_maximum_length_and_state_the_total(program, store, admin, small, monkeypatch):
    monkeypatch.setattr("survey.api.endpoints.MAX_LISTED", 1)
    publish(store, load_survey(SMALL, "another"), TODAY)
    listed = Program(program.client, make_token(store, admin)).get("/surveys").get_json()
    assert listed["total"] == 2
    assert [item["slug"] for item in listed["surveys"]] == ["another"]
    assert program.get(f"/surveys?after={'a' * 60}").status_code == 200
    assert program.get(f"/surveys?after={'a' * 61}").status_code == 422


def test_former_members_of_a_team_cannot_read_its_survey(program, store, filled, reader):
    tag = program.get(f"{LATEST}/estimates").headers["ETag"]
    store.set_role("small", reader, None)
    assert program.get("/surveys").get_json() == {"total": 0, "surveys": []}
    for path in ("", "/definition", "/estimates", "/exports/estimates.xlsx"):
        assert program.get(LATEST + path, tag=tag).status_code == 404


def test_only_editors_download_reports_and_each_download_is_logged(program, store, filled, reader):
    path = f"{LATEST}/exports/reports.zip"
    with ZipFile(io.BytesIO(program.get(path).data)) as packed:
        assert set(packed.namelist()) >= {"README.txt", "channels.json", "reports.csv"}
        assert len(packed.read("reports.csv").splitlines()) == 1 + 3000
    (action,) = store.actions("small", 5)
    assert (action.actor, action.event) == ("reader@example.org", "downloaded reports")
    store.set_role("small", reader, "viewer")
    response = program.get(path)
    assert response.status_code == 403
    assert "role editor" in response.get_json()["detail"]
    assert program.get(f"{LATEST}/estimates").status_code == 200


def test_a_crosstab_is_also_available_as_a_workbook(program, filled):
    path = f"{LATEST}/exports/crosstab.xlsx?first=fell_asleep&second=pressure"
    book = load_workbook(io.BytesIO(program.get(path).data))
    assert len(book.sheetnames) == 3
