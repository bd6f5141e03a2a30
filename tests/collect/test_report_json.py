"""The server accepts one form of a report's JSON; for any other it names the mistake."""

from __future__ import annotations

import base64
import contextlib
import json
import os

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as run
from hypothesis import strategies as st

from survey.collect.incoming_reports import Intake, parse
from survey.errors import MalformedReportError, ReportError, ReportTooLargeError, SurveyError
from tests.cases import each_case
from tests.conftest import TODAY


def valid_form(small, **changes) -> dict:
    return {
        "definition": small.sha256,
        "report_id": "AAAAAAAAAAAAAAAAAAAAAA",
        "stratum": "",
        "codes": [0, 2],
        "invitation": "",
        "pad": "...",
        **changes,
    }


@pytest.fixture
def intake(store) -> Intake:
    return Intake(store)


def test_a_valid_report_is_stored(store, small):
    Intake(store).receive("small", json.dumps(valid_form(small)).encode(), TODAY)
    assert store.n_pending(small.key) == 1


@each_case(
    ("changes", "words"),
    [
        ({"codes": [3, 0]}, r"code 1 \(fell_asleep\) must be an integer from 0 to 2"),
        ({"codes": [0, -1]}, r"code 2 \(pressure\)"),
        ({"codes": [9, 9]}, r"code 1 \(fell_asleep\)"),
        ({"codes": [True, 0]}, "code 1"),
        ({"codes": [0, 10**20]}, r"code 2 \(pressure\)"),
        ({"codes": [0, 10**4200]}, r"code 2 \(pressure\)"),
        ({"codes": [0.0, 0]}, "code 1"),
        ({"codes": ["0", 0]}, "code 1"),
        ({"codes": [None, 0]}, "code 1"),
        ({"codes": [[0], 0]}, "nested|code 1"),
        ({"codes": [0]}, "2 entries, one per question, not 1"),
        ({"codes": [0, 0, 0]}, "not 3"),
        ({"codes": []}, "not 0"),
        ({"codes": {"0": 0}}, "codes must be a list"),
        ({"codes": "00"}, "codes must be a list"),
        ({"report_id": ""}, "report_id"),
        ({"report_id": "A" * 21}, "report_id"),
        ({"report_id": "A" * 21 + "B"}, "report_id"),  # another encoding of the same bytes
        ({"report_id": "A" * 21 + "="}, "report_id"),
        ({"report_id": 7}, "report_id must be a string"),
        ({"stratum": "north"}, "stratum"),
        ({"invitation": "x" * 43}, "invitation"),
        ({"pad": 0}, "pad must be a string"),
        ({"extra": ""}, "only the keys"),
    ],
)
def test_an_invalid_report_is_refused_with_its_first_mistake(store, small, changes, words):
    with pytest.raises(SurveyError, match=words) as caught:
        Intake(store).receive("small", json.dumps(valid_form(small, **changes)).encode(), TODAY)
    assert isinstance(caught.value, ReportError | MalformedReportError)
    assert store.n_pending(small.key) == 0


@pytest.mark.parametrize(
    "key", ["definition", "report_id", "stratum", "codes", "invitation", "pad"]
)
def test_a_missing_key_is_named(small, key):
    form = valid_form(small)
    del form[key]
    with pytest.raises(ReportError, match=f"the key {key} is missing"):
        parse(json.dumps(form).encode())


@each_case(
    "body",
    [
        b"",
        b"{",
        b"null null",
        b"\xff",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e400}',
        b'{"a": -1e999}',
        b'{"a": 1, "a": 1}',
        b"[" * 8000,
        b'{"a":' * 1000,
        b'"' + b'\\"' * 4000,
        b'{"a": "' + b'\\"' * 4000 + b"\\",
        b'{"pad": "\\ud800"}',
        b"codes=1",
        b"\xef\xbb\xbf{}",
    ],
)
def test_json_that_parsers_interpret_differently_is_refused(body):
    with pytest.raises(MalformedReportError):
        parse(body)


def test_brackets_inside_strings_are_not_nesting(small):
    assert parse(json.dumps(valid_form(small, pad='[[[{{\\"[[')).encode())


@pytest.mark.parametrize("body", [b"[]", b"null", b"3", b'"x"', b"true"])
def test_json_that_is_not_an_object_is_refused(body):
    with pytest.raises(ReportError, match="one JSON object"):
        parse(body)


def test_a_body_above_8_kb_is_refused(small):
    with pytest.raises(ReportTooLargeError, match="8,192"):
        parse(json.dumps(valid_form(small, pad="." * 8192)).encode())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.web
@pytest.mark.security
@run(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(data=st.data())
def test_strict_payloads_are_stored_completely_or_refused_with_a_named_error(
    store, small, intake, data
):
    keys = ("definition", "report_id", "stratum", "codes", "invitation", "pad", "x")
    present = data.draw(st.sets(st.sampled_from(keys), min_size=5))
    form = {
        key: data.draw(st.just(value) | VALUES)
        for key, value in {**valid_form(small), "x": 1}.items()
        if key in present
    }
    form.update(report_id=base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("="))
    before = store.n_pending(small.key)
    try:
        intake.receive("small", json.dumps(form).encode(), TODAY)
    except SurveyError:
        assert store.n_pending(small.key) == before
    else:
        assert store.n_pending(small.key) == before + 1


@given(st.binary(max_size=300))
def test_the_parser_raises_no_other_error_for_any_bytes(body):
    with contextlib.suppress(SurveyError):
        parse(body)
