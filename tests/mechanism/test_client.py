"""The shipped client under Node: its own tests, and every draw held against the integers."""

from __future__ import annotations

import json
import re
import subprocess
from fractions import Fraction
from itertools import combinations, product
from math import prod

import pytest

from survey import demo
from survey.mechanism import BitVector, SubsetSelection, channel_from_json, from_epsilon, grr
from survey.mechanism.bits import pack_bits
from survey.questionnaire.definition import freeze
from survey.questionnaire.native import load_file
from survey.settings import Caps
from tests.conftest import ROOT
from tests.mechanism.test_tables import TABLES


def test_the_clients_own_tests_pass(node):
    run = subprocess.run(
        [node, "--test", "--test-reporter=tap", "test/*.test.js"],
        cwd=ROOT / "client_js",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout
    assert int(re.search(r"^# pass (\d+)$", run.stdout, re.M)[1]) > 100
    assert re.search(r"^# skipped 0$", run.stdout, re.M)


def channels_in_use():
    definition = freeze(load_file(demo.DEFINITION, Caps()), 1)
    chosen = {question.channel for question in definition.questions}
    chosen |= {grr(2, "3/4"), grr(5, 0.85), grr(3, "1/2"), grr(7, 0.99), from_epsilon(4, 2)}
    return sorted(chosen, key=lambda channel: (channel.k, channel.T, channel.L))


def enumerated(node, channels, truths):
    """For each channel and truth, how many sequences of draws give each report."""
    asked = [
        {
            "channel": channel.to_json(),
            "truths": [list(t) if isinstance(t, tuple) else t for t in wanted],
        }
        for channel, wanted in zip(channels, truths, strict=True)
    ]
    run = subprocess.run(
        [node, str(ROOT / "tests/mechanism/enumerate.mjs")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.security
def test_integer_mechanism_every_draw_through_the_shipped_client_equals_the_integers(node):
    channels = channels_in_use()
    assert [channel_from_json(channel.to_json()) for channel in channels] == channels
    tables = enumerated(node, channels, [range(channel.k) for channel in channels])
    for channel, table in zip(channels, tables, strict=True):
        assert table == [
            {
                str(report): channel.T if report == truth else channel.L
                for report in range(channel.k)
            }
            for truth in range(channel.k)
        ]


@pytest.mark.security
def test_integer_mechanism_every_draw_of_every_set_equals_the_integers(node):
    channels = [
        SubsetSelection(3, 2, 3, 1),
        SubsetSelection(5, 2, 3, 1),
        SubsetSelection(5, 3, 7, 2),
        SubsetSelection(9, 2, 2, 1),
    ]
    tables = enumerated(node, channels, [range(channel.k) for channel in channels])
    for channel, table in zip(channels, tables, strict=True):
        sets = list(combinations(range(channel.k), channel.d))
        for truth, seen in enumerate(table):
            # Every set comes from equally many orders of its offsets; divide by the smallest.
            least = min(seen.values())
            unit = Fraction(least, channel.L)
            assert {
                pack_bits(members, channel.k): (channel.T if truth in members else channel.L)
                for members in sets
            } == {code: n / unit for code, n in seen.items()}


@pytest.mark.security
def test_integer_mechanism_every_draw_of_every_bit_and_table_equals_the_integers(node):
    bits = [BitVector(1, 1, 3, 1), BitVector(3, 3, 3, 1), BitVector(4, 2, 5, 2)]
    patterns = [
        [ticks for ticks in product((0, 1), repeat=channel.m) if sum(ticks) <= channel.s]
        for channel in bits
    ]
    for channel, wanted, table in zip(
        bits, patterns, enumerated(node, bits, patterns), strict=True
    ):
        for ticks, seen in zip(wanted, table, strict=True):
            assert seen == {
                pack_bits([i for i, bit in enumerate(report) if bit], channel.m): prod(
                    channel.T if bit == tick else channel.L
                    for bit, tick in zip(report, ticks, strict=True)
                )
                for report in product((0, 1), repeat=channel.m)
            }
    for channel, table in zip(
        TABLES, enumerated(node, TABLES, [range(c.truths) for c in TABLES]), strict=True
    ):
        assert table == [
            {str(report): int(weight) for report, weight in enumerate(row)}
            for row in channel.weights
        ]


@pytest.mark.security
def test_the_client_uses_no_weaker_generator_no_clock_and_no_markup():
    for path in (ROOT / "client_js/src").glob("*.js"):
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.S)
        for banned in (
            "Math.random",
            "Date",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "document.cookie",
            "serviceWorker",
            "indexedDB",
            "console.",
        ):
            assert banned not in code, (path.name, banned)
