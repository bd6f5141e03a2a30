"""The shipped client under Node: its own tests, and every draw held against the integers."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from survey import demo
from survey.mechanism import channel_from_json, from_epsilon, grr
from survey.questionnaire.definition import freeze
from survey.questionnaire.native import load_file
from survey.settings import Caps
from tests.conftest import ROOT


def test_the_clients_own_tests_pass(node):
    run = subprocess.run([node, "--test", "--test-reporter=tap", "test/*.test.js"],
                         cwd=ROOT / "client_js", capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout
    assert int(re.search(r"^# pass (\d+)$", run.stdout, re.M)[1]) > 100
    assert re.search(r"^# skipped 0$", run.stdout, re.M)


def channels_in_use():
    definition = freeze(load_file(demo.DEFINITION, Caps()), 1)
    chosen = {question.channel for question in definition.questions}
    chosen |= {grr(2, "3/4"), grr(5, 0.85), grr(3, "1/2"), grr(7, 0.99), from_epsilon(4, 2)}
    return sorted(chosen, key=lambda channel: (channel.k, channel.T, channel.L))


@pytest.mark.security
def test_integer_mechanism_every_draw_through_the_shipped_client_equals_the_integers(node):
    channels = channels_in_use()
    forms = [channel.to_json() for channel in channels]
    assert [channel_from_json(form) for form in forms] == channels
    run = subprocess.run([node, str(ROOT / "tests/mechanism/enumerate.mjs")],
                         input=json.dumps(forms), capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    for channel, table in zip(channels, json.loads(run.stdout), strict=True):
        assert table == [[channel.T if report == truth else channel.L
                          for report in range(channel.k)] for truth in range(channel.k)]


@pytest.mark.security
def test_the_client_uses_no_weaker_generator_no_clock_and_no_markup():
    for path in (ROOT / "client_js/src").glob("*.js"):
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.S)
        for banned in ("Math.random", "Date", "innerHTML", "outerHTML", "insertAdjacentHTML",
                       "document.write", "eval(", "document.cookie", "serviceWorker",
                       "indexedDB", "console."):
            assert banned not in code, (path.name, banned)
