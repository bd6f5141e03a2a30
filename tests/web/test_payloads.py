"""Every payload is stored as a report or rejected with a named error, never a server error."""

from __future__ import annotations

import base64
import json
import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given
from hypothesis import settings as run
from hypothesis import strategies as st

from survey.collect.publication import publish
from survey.mechanism import Channel
from survey.mechanism.bit_vector import TickChannel
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, Store
from tests.conftest import TODAY, long_unless
from tests.surveys import EVERY_TYPE

pytestmark = pytest.mark.security

REFUSED = {400, 409, 413, 422}
"""Statuses of invalid JSON, conflicting identifier, excessive size and invalid report."""

TEXTS = st.text(st.characters(exclude_categories=()), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)
CHANGES = ("replaced", "removed", "added", "code replaced", "code removed", "code added")

BODIES = [
    b"",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"{",
    b"NaN",
    b"1e999",
    b'"\\ud800"',
    b"[" * 4_000,
    b'{"a":' * 1_500,
    b"9" * 5_000,
    b"[" + b"9" * 5_000 + b"]",
    b'{"codes":[],"codes":[]}',
    b"\x00" * 100,
    b"x" * 20_000,
]


@pytest.fixture(params=["small", "types"])
def survey(request, store, small) -> PublishedSurvey:
    """Return a survey of two questions, or one with every question type."""
    if request.param == "small":
        return small
    definition = EVERY_TYPE.replace('slug = "small"', 'slug = "types"')
    return publish(store, load(definition.encode(), "s.toml", Caps()), TODAY)


def code_of(channel: Channel) -> Any:
    """Return a valid code."""
    ticks = [1] + [0] * (channel.options - 1)
    return channel.perturb_one(ticks if isinstance(channel, TickChannel) else 0, lambda _: 0)


class Sender:
    """Send request bodies to the report address and compare each response with the store."""

    def __init__(self, client: FlaskClient, store: Store, survey: PublishedSurvey) -> None:
        self._client, self._store, self._survey = client, store, survey
        self.statuses: Counter[int] = Counter()

    def good(self) -> dict[str, Any]:
        """Return a valid report with a new identifier."""
        return {
            "definition": self._survey.sha256,
            "report_id": base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("="),
            "stratum": "",
            "codes": [code_of(question.channel) for question in self._survey.definition.questions],
            "invitation": "",
            "pad": "",
        }

    def send(self, body: bytes) -> int:
        n_before = self._store.n_pending(self._survey.key)
        response = self._client.post(
            f"/s/{self._survey.slug}/reports", data=body, content_type="application/json"
        )
        stored = self._store.n_pending(self._survey.key) - n_before
        assert response.status_code in {201, *REFUSED}, (response.status_code, body[:200])
        assert stored == (response.status_code == 201), body[:200]
        self.statuses[response.status_code] += 1
        return response.status_code


@pytest.fixture
def sender(client, store, survey) -> Sender:
    return Sender(client, store, survey)


def with_one_change(form: dict[str, Any], draw: Callable[..., Any]) -> dict[str, Any]:
    """Return a valid report with one change, which may make it invalid."""
    how, value = draw(st.sampled_from(CHANGES)), draw(VALUES)
    key = draw(st.sampled_from(sorted(form)))
    place = draw(st.integers(0, len(form["codes"]) - 1))
    if how == "replaced":
        return {**form, key: value}
    if how == "removed":
        return {name: field for name, field in form.items() if name != key}
    if how == "added":
        return {**form, draw(TEXTS): value}
    codes = list(form["codes"])
    if how == "code replaced":
        codes[place] = value
    elif how == "code removed":
        del codes[place]
    else:
        codes.insert(place, value)
    return {**form, "codes": codes}


def test_strict_payloads_valid_reports_are_accepted_and_odd_bodies_cause_no_server_error(sender):
    assert sender.send(json.dumps(sender.good()).encode()) == 201
    for body in BODIES:
        assert sender.send(body) in REFUSED


@pytest.mark.parametrize("examples", long_unless([120], [120, 10_000]))
def test_strict_payloads_reject_other_json_with_a_named_error(sender, examples):
    @given(value=VALUES)
    @run(max_examples=examples, suppress_health_check=list(HealthCheck))
    def send(value: Any) -> None:
        assert sender.send(json.dumps(value).encode()) in REFUSED

    send()


@pytest.mark.parametrize("examples", long_unless([120], [120, 10_000]))
def test_strict_payloads_reports_with_one_change_are_stored_or_rejected_by_name(sender, examples):
    @given(data=st.data())
    @run(max_examples=examples, suppress_health_check=list(HealthCheck))
    def send(data: st.DataObject) -> None:
        sender.send(json.dumps(with_one_change(sender.good(), data.draw)).encode())

    send()
    # Nearly all changed reports are invalid, so random draws cannot fail this check.
    assert sender.statuses[422] >= 10
