"""The shipped client under Node passes its tests, and every draw matches the integer weights."""

from __future__ import annotations

import re
import subprocess
from fractions import Fraction

import pytest

from survey import demo
from survey.audit import enumeration
from survey.audit.bundled_modules import unbundle
from survey.audit.channels import (
    can_enumerate,
    distribution,
    draws_below,
    sibling,
    some_truths,
    truths_of,
)
from survey.audit.enumeration import Auditor, check_rows
from survey.audit.node import FLAGS, SCRIPT
from survey.audit.random_generator import ALPHA, check_samples, clopper_pearson, epsilon_bound
from survey.mechanism import (
    BitVector,
    HalfSpace,
    SubsetSelection,
    best,
    channel_from_json,
    from_epsilon,
    grr,
    numeric,
    randomized_response,
)
from survey.respond.client import FIELD_SOURCES, Client
from tests.cases import each_case
from tests.conftest import ROOT, long_unless
from tests.mechanism.test_tables import TABLES

FILES = unbundle(Client.load().files)

SETS = [SubsetSelection(3, 2, 3, 1), SubsetSelection(5, 3, 7, 2), SubsetSelection(9, 2, 2, 1)]
BITS = [
    BitVector(1, 1, 3, 1),
    BitVector(3, 3, 3, 1),
    BitVector(4, 2, 5, 2),
    BitVector(4, 3, 3, 1, alone=1),
    BitVector(5, 1, 3, 2, alone=3),
    BitVector(5, 3, 2, 1, alone=2, sampled=1),
    BitVector(4, 2, 3, 1, alone=1, sampled=2),
    BitVector(4, 4, 3, 1, sampled=3),
]
SPACES = [
    HalfSpace(1, 1, 1, 3, 1),
    HalfSpace(3, 3, 2, 3, 2),
    HalfSpace(4, 4, 3, 2, 1),
    HalfSpace(4, 2, 4, 1, 2, alone=1),
    HalfSpace(5, 3, 4, 1, 2, alone=2),
]
LARGE = [
    SubsetSelection(2, 1, 2**31, 2**31 - 1),
    SubsetSelection(64, 17, 3, 1),
    best(100, "0.1"),
    BitVector(40, 40, 3, 1),
    BitVector(100, 97, 5103, 5000, alone=3),
    BitVector(100, 60, 27182, 10000, alone=3, sampled=60),
    HalfSpace(10, 10, 8, 6317, 2000),
    HalfSpace(32, 29, 27, 46011, 5000, alone=3),
    numeric.geometric(40, 2, 2),
    numeric.square_wave(101, 1, 1),
    numeric.hybrid(11, 4, 2),
    numeric.optimal_piecewise(11, 4, 2),
    numeric.piecewise(5, 8),
    numeric.one_bit(1000, 1, 1),
    randomized_response.exponential([[-abs(i - j) for j in range(20)] for i in range(20)], 4, 2),
]

QUICK = [channel for channel in LARGE if getattr(channel, "m", 0) < 100]
"""The channels that the audit proves in one or two seconds."""


@pytest.fixture(scope="module")
def auditor(node):
    return Auditor(FILES, node)


def channels_in_use():
    in_demo = {question.channel for question in demo.definition().questions}
    small = {channel for channel in in_demo if can_enumerate(channel)}
    small |= {grr(2, "3/4"), grr(5, 0.85), grr(3, "1/2"), grr(7, 0.99), from_epsilon(4, 2)}
    return sorted(small, key=str)


@pytest.mark.web
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


@pytest.mark.web
@pytest.mark.security
@each_case("channels", [channels_in_use(), SETS, BITS, SPACES, TABLES])
def test_integer_mechanism_every_draw_through_the_shipped_client_equals_the_integers(
    auditor, channels
):
    assert [channel_from_json(channel.to_json()) for channel in channels] == list(channels)
    for check in auditor.enumeration(channels):
        assert check.ok, check
        assert "every draw: " in check.detail  # of the channel itself, not of a smaller one


@each_case("channel", [*channels_in_use(), *SETS, *BITS, *SPACES, *TABLES])
def test_the_promised_distributions_add_up_and_have_exactly_the_channels_ratio(channel):
    rows = [distribution(channel, truth) for truth in truths_of(channel)]
    assert all(sum(row.values()) == 1 for row in rows)
    worst = max(max(r[code] for r in rows) / min(r[code] for r in rows) for code in rows[0])
    assert worst == channel.ratio
    assert len(rows) == channel.truths


def test_options_are_sampled_before_any_bit_is_randomized():
    assert draws_below(BitVector(5, 3, 3, 1, alone=1, sampled=2)) == [5, 4, 4, 4]
    assert draws_below(BitVector(3, 3, 3, 1)) == [4, 4, 4]


def test_a_half_space_draws_both_sides_whichever_is_reported():
    assert draws_below(HalfSpace(4, 4, 3, 2, 1)) == [3, 5, 11]


def test_an_exclusive_option_excludes_all_other_ticks():
    assert truths_of(BitVector(3, 1, 3, 1, alone=1)) == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]


@each_case("channel", LARGE)
def test_selected_truths_of_a_large_channel_are_valid(channel):
    truths = some_truths(channel, 8)
    assert 2 <= len(truths) <= 8
    assert len(set(truths)) == len(truths)
    for truth in truths:
        channel.perturb_one(truth, lambda _: 0)


@pytest.mark.web
@pytest.mark.security
@pytest.mark.parametrize("channel", long_unless(QUICK, LARGE), ids=str)
def test_a_channel_too_large_to_enumerate_is_proved_by_a_smaller_one_and_its_own_draws(
    auditor, channel
):
    small, *checks_of_channel = auditor.enumeration([channel])
    assert small.ok, small
    assert "of the same code with" in small.detail
    assert can_enumerate(sibling(channel))
    assert type(sibling(channel)) is type(channel)
    assert all(check.ok for check in checks_of_channel), checks_of_channel
    assert "with the real integers" in checks_of_channel[0].detail
    assert len(checks_of_channel) == (2 if channel.kind == "weight_table" else 1)


@pytest.mark.security
def test_a_row_with_wrong_weights_is_detected():
    table = numeric.one_bit(3, 1)
    check = check_rows(table, ["0" * 64] * table.truths)
    assert not check.ok
    assert "truth 0" in check.detail


OWN_GLOBALS = f"""
import vm from "node:vm";
import {{ createRealm }} from {SCRIPT.with_name("realm.mjs").as_uri()!r};
const realm = createRealm();
console.log(vm.runInContext("globalThis", realm) === realm);
"""


def test_the_globals_of_a_realm_are_its_own(node):
    # Node copies each use of other globals, and the audit of two dates took ten minutes.
    run = subprocess.run(
        [node, *FLAGS, "--input-type=module", "-e", OWN_GLOBALS],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "true"


def test_the_audit_runs_every_value_of_a_draw_if_time_allows(auditor):
    _, check_of_draws = auditor.enumeration([SubsetSelection(64, 17, 3, 1)])
    assert (
        "18 of 18 draws, both sides of every boundary, 18 through every value"
        in check_of_draws.detail
    )


@pytest.mark.security
def test_the_epsilon_on_the_pages_matches_the_integers(auditor):
    assert auditor.ratios([*channels_in_use(), *SETS, *BITS, *TABLES, *LARGE]).ok


@pytest.mark.web
@pytest.mark.security
@pytest.mark.parametrize("runs", long_unless([100_000], [100_000, 1_000_000]))
def test_real_generator_audit_the_proved_epsilon_is_not_above_the_claim(auditor, runs):
    channels = [grr(2, "3/4"), from_epsilon(5, 1), SETS[0], BITS[1], BITS[5], TABLES[5]]
    checks = auditor.sampling(channels, runs)
    assert len(checks) == len(channels)
    for check in checks:
        assert check.ok, check
        assert check.detail.startswith(f"{runs:,} for each of "), check
    assert auditor.words(channels, 1).ok


@each_case("channels", [[grr(2, "3/4")], [grr(2, "3/4"), *SETS]])
def test_half_of_the_chance_of_a_false_alarm_is_shared_by_all_channels(
    auditor, monkeypatch, channels
):
    alphas: list[float] = []

    def check(channel, tables, n, alpha):
        alphas.append(alpha)
        return check_samples(channel, tables, n, alpha)

    monkeypatch.setattr(enumeration, "check_samples", check)
    assert all(check.ok for check in auditor.sampling(channels, 100))
    assert len(alphas) == len(channels)
    assert sum(alphas) == pytest.approx(ALPHA / 2)


@pytest.mark.web
def test_bits_are_counted_if_there_are_too_many_codes(auditor):
    checks = auditor.sampling(LARGE, 2_000)
    assert all(check.ok for check in checks), checks
    assert "64 bits" in checks[1].detail
    assert "200 bits" in checks[5].detail


def test_a_sample_cannot_prove_more_than_the_channels_epsilon():
    tables = [{"0": 750_000, "1": 250_000}, {"0": 250_000, "1": 750_000}]
    assert 1.05 < epsilon_bound(tables, 1_000_000, 1e-6) < 1.0987
    low, high = clopper_pearson(0, 10, 0.05)
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / 10))
    assert Fraction(3) == grr(2, "3/4").ratio


@pytest.mark.security
def test_the_client_uses_no_weaker_generator_no_clock_and_no_markup():
    for path in (ROOT / "client_js/src").glob("*.js"):
        # Only field mode has a worker and a queue, and its files are not part of the page.
        is_field = path.name in FIELD_SOURCES
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.S)
        for banned in (
            r"Math\.random",
            r"\bDate\b",
            r"\.format\(\)",  # a date formatter without an argument reads the clock
            r"\bperformance\b",
            r"\btimeStamp\b",
            r"innerHTML",
            r"outerHTML",
            r"insertAdjacentHTML",
            r"document\.write",
            r"\beval\(",
            r"document\.cookie",
            *([] if is_field else [r"serviceWorker", r"indexedDB"]),
            r"console\.",
        ):
            assert not re.search(banned, code), (path.name, banned)
