"""The address for uploads from field mode: what it accepts, and each way in which it refuses."""

from __future__ import annotations

import pytest

from survey.respond.views import MAX_FIELD_UPLOAD
from survey.store.field_boxes import seal_box
from tests.conftest import TODAY
from tests.store.tablets import publish_for_tablets

pytestmark = pytest.mark.security

OCTETS = {"Content-Type": "application/octet-stream"}
PATH = "/s/small/field"


@pytest.fixture
def survey(store, tmp_path):
    return publish_for_tablets(store, tmp_path)


def upload_of(survey, n=1):
    content = bytes(survey.definition.report_bytes)
    boxes = b"".join(seal_box(survey.definition, content) for _ in range(n))
    return bytes.fromhex(survey.sha256) + boxes


def test_an_upload_is_stored_once_and_its_response_is_empty(client, store, survey):
    body = upload_of(survey, 25)
    for _ in range(2):
        response = client.post(PATH, data=body, headers=OCTETS)
        assert (response.status_code, response.data) == (201, b"")
        assert "Set-Cookie" not in response.headers
    assert store.n_pending(survey.key) == 25


def test_every_other_upload_is_refused_with_its_reason(client, store, survey):
    body = upload_of(survey)
    cross_site = {**OCTETS, "Sec-Fetch-Site": "cross-site"}
    for data, headers, status, name in [
        (body, {"Content-Type": "application/json"}, 415, "unsupported-media"),
        (body, cross_site, 403, "cross-site"),
        (body[:-1], OCTETS, 422, "report"),
        (b"", OCTETS, 409, "outdated"),
        (bytes(32) + body[32:], OCTETS, 409, "outdated"),
        (bytes(MAX_FIELD_UPLOAD + 1), OCTETS, 413, "report-too-large"),
    ]:
        response = client.post(PATH, data=data, headers=headers)
        assert response.status_code == status, name
        assert response.json["type"] == f"urn:survey:{name}"
    assert client.post("/s/none/field", data=body, headers=OCTETS).status_code == 404
    assert store.n_pending(survey.key) == 0


def test_the_response_to_a_late_upload_lists_its_stored_boxes(client, store, survey):
    early = upload_of(survey)
    assert client.post(PATH, data=early, headers=OCTETS).status_code == 201
    store.close_survey("small", TODAY)
    late = client.post(PATH, data=upload_of(survey) + early[32:], headers=OCTETS)
    assert late.status_code == 410
    assert (late.json["type"], late.json["stored"]) == ("urn:survey:late-boxes", [1])
    question = client.post(PATH, data=early[:32], headers=OCTETS)
    assert (question.status_code, question.json["stored"]) == (410, [])
    assert client.post(PATH, data=early, headers=OCTETS).status_code == 201
