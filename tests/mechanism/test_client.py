"""The shipped client under Node: its own tests, and every draw held against the integers."""

from __future__ import annotations

import json
import re
import subprocess
from fractions import Fraction

import pytest
from click.testing import CliRunner

from survey import demo
from survey.audit.exact import distribution, truths_of
from survey.audit.proof import Auditor, clopper_pearson, epsilon_bound, sibling
from survey.cli import main
from survey.errors import SurveyError
from survey.mechanism import (
    BitVector,
    SubsetSelection,
    WeightTable,
    channel_from_json,
    from_epsilon,
    grr,
)
from survey.mechanism.shapes import Window
from survey.respond.client import Client
from tests.conftest import ROOT
from tests.mechanism.test_tables import TABLES

FILES = Client.find().files

SETS = [SubsetSelection(3, 2, 3, 1), SubsetSelection(5, 3, 7, 2), SubsetSelection(9, 2, 2, 1)]
BITS = [BitVector(1, 1, 3, 1), BitVector(3, 3, 3, 1), BitVector(4, 2, 5, 2)]


@pytest.fixture(scope="module")
def auditor(node):
    return Auditor(FILES, node)


def channels_in_use():
    chosen = {question.channel for question in demo.definition().questions}
    chosen |= {grr(2, "3/4"), grr(5, 0.85), grr(3, "1/2"), grr(7, 0.99), from_epsilon(4, 2)}
    return sorted(chosen, key=lambda channel: (channel.k, channel.T, channel.L))


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


@pytest.mark.security
@pytest.mark.parametrize("channels", [channels_in_use(), SETS, BITS, TABLES])
def test_integer_mechanism_every_draw_through_the_shipped_client_equals_the_integers(
    auditor, channels
):
    assert [channel_from_json(channel.to_json()) for channel in channels] == list(channels)
    for check in auditor.enumeration(channels):
        assert check.ok, check
        assert "every draw: " in check.detail  # of the channel itself, not of a smaller sibling


@pytest.mark.parametrize("channel", [*channels_in_use(), *SETS, *BITS, *TABLES])
def test_the_promised_distributions_add_up_and_have_exactly_the_channels_ratio(channel):
    rows = [distribution(channel, truth) for truth in truths_of(channel)]
    assert all(sum(row.values()) == 1 for row in rows)
    worst = max(max(r[code] for r in rows) / min(r[code] for r in rows) for code in rows[0])
    assert worst == channel.ratio


@pytest.mark.security
def test_real_generator_audit_the_proved_epsilon_is_not_above_the_claim(auditor):
    channels = [grr(2, "3/4"), from_epsilon(5, 1), SETS[0], BITS[1], TABLES[5]]
    for check in auditor.sampling(channels, 100_000):
        assert check.ok, check
    assert auditor.words(channels).ok


def test_a_channel_too_large_to_enumerate_is_proved_by_a_smaller_one_and_says_so(auditor):
    large = [
        SubsetSelection(2, 1, 2**31, 2**31 - 1),
        SubsetSelection(64, 17, 3, 1),
        BitVector(40, 40, 3, 1),
    ]
    for check in auditor.enumeration(large):
        assert check.ok
        assert "of the same code with" in check.detail
    assert sibling(large[1]) == SubsetSelection(6, 5, 3, 1)


MUTANTS = {
    "off by one": ("mechanism.js", "u < T ? 0", "u <= T ? 0"),
    "one weight too many": ("mechanism.js", "u < T ? 0", "u < T + L ? 0"),
    "T and L swapped": (
        "mechanism.js",
        "const u = uniformBelow(T + (k - 1) * L);",
        "[T, L] = [L, T]; const u = uniformBelow(T + (k - 1) * L);",
    ),
    "random answer may equal the truth": (
        "mechanism.js",
        "1 + Math.floor((u - T) / L)",
        "Math.floor((u - T) / L)",
    ),
    "float comparison": (
        "mechanism.js",
        "u < T ? 0",
        "u / (T + (k - 1) * L) < Number((T / (T + (k - 1) * L)).toFixed(2)) ? 0",
    ),
    "offset subtracted and folded": (
        "mechanism.js",
        "(truth + drawOffset(k, T, L, uniformBelow)) % k",
        "Math.max(truth - drawOffset(k, T, L, uniformBelow), 0)",
    ),
    "draws only when it lies": (
        "mechanism.js",
        "return u < T ? 0 : 1 + Math.floor((u - T) / L);",
        "return u < T ? 0 : 1 + uniformBelow(k - 1);",
    ),
    "the truth in the clear": (
        "mechanism.js",
        "if (d === 1) return (truth +",
        "if (d === 1 && truth === 0) return 0; if (d === 1) return (truth +",
    ),
    "a draw used twice for two bits": (
        "mechanism.js",
        "truth.map((tick) => tick ^ Number(uniformBelow(T + L) >= T))",
        "((u) => truth.map((tick) => tick ^ Number(u >= T)))(uniformBelow(T + L))",
    ),
    "bits flipped one draw too rarely": (
        "mechanism.js",
        "uniformBelow(T + L) >= T",
        "uniformBelow(T + L) > T",
    ),
    "table scanned off by one": ("mechanism.js", "Number(u >= reached)", "Number(u > reached)"),
    "the truth stays out of its set": (
        "mechanism.js",
        "< d * T) deck[d - 1] = 0;",
        "< d * T) deck[d - 1] = 1;",
    ),
    "modulo bias": ("random.js", "while (word >= limit) word = nextWord();", ""),
    "limit off by one": ("random.js", "while (word >= limit)", "while (word > limit)"),
    "seeded generator": ("random.js", "getRandomValues(array);", "array.fill(123456789);"),
    "a pool that is used again": (
        "random.js",
        "if (used === POOL_WORDS) {",
        "if (used === POOL_WORDS) used = 16; if (pool[0] === undefined) {",
    ),
    "only half of the range": ("random.js", "return word % n;", "return word % (n >> 1 || 1);"),
}


@pytest.mark.security
@pytest.mark.parametrize("mutant", MUTANTS)
def test_every_broken_client_is_caught(node, mutant):
    name, old, new = MUTANTS[mutant]
    source = FILES[name].decode()
    assert source.count(old) >= 1, f"{mutant}: the client no longer has {old!r}"
    broken = Auditor({**FILES, name: source.replace(old, new, 1).encode()}, node)
    channels = [
        grr(3, "3/4"),
        from_epsilon(3, 1),
        SETS[0],
        BITS[1],
        WeightTable(Window(5, 3, 1, 3, 1)),
    ]
    try:
        checks = [
            *broken.enumeration(channels),
            broken.words(channels),
            *broken.sampling(channels, 20_000),
        ]
    except SurveyError:
        return  # it does not even run
    assert not all(check.ok for check in checks), mutant


def test_the_audit_command_is_readable_has_json_and_exits_with_0(node, monkeypatch):
    monkeypatch.setenv("PATH", node.rpartition("/")[0])
    read = CliRunner().invoke(main, ["audit", "--samples", "2000"])
    assert read.exit_code == 0
    assert "BAD" not in read.output
    assert read.output.count("ok  ") == 13
    form = json.loads(CliRunner().invoke(main, ["audit", "--samples", "2000", "--json"]).output)
    assert form["client"] == Client.find().sha256
    assert set(form["files"]) == set(FILES)
    assert all(check["ok"] for check in form["checks"])


def test_an_audit_without_node_says_what_is_missing(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    refused = CliRunner().invoke(main, ["audit"])
    assert refused.exit_code == 1
    assert "install Node" in refused.stderr


def test_a_sample_cannot_prove_more_than_the_channel_gives_away():
    tables = [{"0": 750_000, "1": 250_000}, {"0": 250_000, "1": 750_000}]
    assert 1.05 < epsilon_bound(tables, 1_000_000, 1e-6) < 1.0987
    low, high = clopper_pearson(0, 10, 0.05)
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / 10))
    assert Fraction(3) == grr(2, "3/4").ratio


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
