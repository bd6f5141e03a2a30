"""The R script computes the numbers of the Python estimators, in one process of real R."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np
import pytest

from survey import read_microdata
from survey.collect.publication import publish
from survey.errors import SurveyError
from survey.estimator import crosstab, difference, proportions
from survey.mechanism import BitVector, SubsetSelection, WeightTable, grr
from survey.mechanism.numeric import geometric
from survey.mechanism.randomized_response import forced_response, two_coins, warner
from survey.questionnaire.loading import load
from survey.results.exports.microdata import write_microdata
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import ROOT, TODAY

pytestmark = pytest.mark.web

SCRIPT = ROOT / "survey" / "handbook" / "r" / "ldp.R"
CASES = 200
SHARES = ("estimate", "std_error", "conf_low", "conf_high", "n_effective")
CELLS = SHARES[:4]
DIFFERENCES = (*CELLS, "z", "p_value")
RELATIVE = 1e-9

PRINT = """
print_columns <- function(compute, columns) {
  result <- tryCatch(compute(), error = function(e) NULL)
  if (is.null(result)) return(cat("error\\n"))
  cat(sprintf("%.17g", unlist(result[columns])), "\\n")
}
"""


class Case(NamedTuple):
    """A call in R, and what Python returns for it; None for an error."""

    call: str
    columns: tuple[str, ...]
    expected: np.ndarray | None


def r_value(value: Any) -> str:
    """Write a value in R."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str | int | float):
        return repr(value).replace("nan", "NaN").replace("inf", "Inf")
    array = np.asarray(value)
    vector = f"c({', '.join(map(repr, array.ravel().tolist()))})"
    return f"matrix({vector}, {array.shape[0]}, byrow = TRUE)" if array.ndim == 2 else vector


def named(counts: np.ndarray, places: Iterable[int]) -> str:
    """Write counts in R, each with the name of its option."""
    pairs = zip(places, counts.tolist(), strict=True)
    return f"c({', '.join(f'o{place} = {count}' for place, count in pairs)})"


def r_channel(channel: Any) -> str:
    if channel is None:
        return "NULL"
    if isinstance(channel, WeightTable):
        return r_value(channel.matrix)
    return f"c(p = {channel.p!r}, q = {channel.q!r})"


def r_call(function: str, *channels: Any, **arguments: Any) -> str:
    written = [r_channel(channel) for channel in channels]
    written += [f"{name} = {r_value(value)}" for name, value in arguments.items()]
    return f"{function}({', '.join(written)})"


def random_channel(rng: np.random.Generator, *, of_codes: bool = False) -> Any:
    k = int(rng.integers(2, 7))
    p = f"{rng.integers(100 // k + 15, 96)}/100"
    kind = rng.integers(6)
    if kind == 0:
        return warner(f"{rng.choice([20, 30, 60, 75, 90])}/100")
    if kind == 1:
        return two_coins("1/2", f"{rng.integers(20, 80)}/100")
    if kind == 2:
        forced = rng.multinomial(60, np.full(k, 1 / k)) + 4
        total = int(forced.sum())
        return forced_response("2/3", [f"{part}/{total}" for part in forced])
    if kind == 3:
        return geometric(k, f"{rng.integers(10, 40)}/10", no_answers=int(rng.integers(2)))
    if kind == 4 and not of_codes and k > 3:
        return SubsetSelection(k=k, d=2, T=int(rng.integers(2, 9)), L=1)
    if kind == 5 and not of_codes:
        return BitVector(k, k, int(rng.integers(2, 9)), 1)
    return grr(k, p)


def random_counts(channel: Any, n: int, rng: np.random.Generator) -> Any:
    """Return the counts of n people, many of whom give the same answer."""
    if isinstance(channel, BitVector):
        ticks = (rng.random((n, channel.m)) < rng.random(channel.m)).astype(np.int64)
        return channel.perturb(ticks, rng).sum(axis=0)
    shares = rng.dirichlet(np.full(channel.truths, 0.4))
    reports = channel.perturb(rng.choice(channel.truths, n, p=shares), rng)
    if getattr(channel, "d", 1) > 1:
        return reports.sum(axis=0)
    return np.bincount(reports, minlength=channel.counted)


def result_of(compute: Any, columns: tuple[str, ...]) -> np.ndarray | None:
    try:
        result = compute()
    except (SurveyError, ValueError):
        return None
    return np.concatenate([getattr(result, column).ravel() for column in columns])


def shares_case(rng: np.random.Generator) -> Case:
    channel = random_channel(rng)
    n = int(np.exp(rng.uniform(np.log(20), np.log(20_000))))
    counts = random_counts(channel, n, rng)
    options = {
        "level": float(rng.choice([0.5, 0.8, 0.9, 0.95, 0.99])),
        "simultaneous": bool(rng.integers(2)),
    }
    if not isinstance(channel, WeightTable) or channel.matrix.shape == (2, 2):
        names = ["feldman-cousins", "wilson-hull", "wilson", "clopper-pearson"]
        options["interval"] = str(rng.choice(names))
    is_bits = isinstance(channel, BitVector)
    expected = result_of(lambda: proportions(counts, channel, n=n, **options), SHARES)
    call = r_call(
        "ldp_proportions",
        counts=counts,
        n=n,
        d=getattr(channel, "d", 1),
        bits=is_bits,
        **options,
    )
    call = call.replace("(counts = ", f"(channel = {r_channel(channel)}, counts = ", 1)
    return Case(call, SHARES, expected)


def table_case(rng: np.random.Generator) -> Case:
    channels = [random_channel(rng, of_codes=True) for _ in range(2)]
    shares = rng.dirichlet(np.full(channels[0].truths * channels[1].truths, 0.4))
    n = int(rng.integers(50, 5000))
    truths = rng.choice(len(shares), n, p=shares)
    places = np.divmod(truths, channels[1].truths)
    codes = [channel.perturb(place, rng) for channel, place in zip(channels, places, strict=True)]
    counts = np.zeros([channel.counted for channel in channels], dtype=np.int64)
    np.add.at(counts, tuple(codes), 1)
    level = float(rng.choice([0.8, 0.95, 0.99]))
    expected = result_of(lambda: crosstab(counts, channels, level=level), CELLS)
    written = ", ".join([r_value(counts), *map(r_channel, channels)])
    return Case(f"ldp_crosstab({written}, level = {level})", CELLS, expected)


def difference_case(rng: np.random.Generator) -> Case:
    channel = random_channel(rng)
    sizes = [int(n) for n in rng.integers(30, 5000, 2)]
    a, b = (random_counts(channel, n, rng) for n in sizes)
    options = {"n_a": sizes[0], "n_b": sizes[1], "level": float(rng.choice([0.8, 0.95, 0.99]))}
    other = channel
    if isinstance(channel, SubsetSelection) and channel.d == 1 and rng.integers(2):
        other, b = None, rng.multinomial(sizes[1], rng.dirichlet(np.ones(channel.k)))
    expected = result_of(lambda: difference(a, b, channel, other, **options), DIFFERENCES)
    written = r_call(
        "ldp_difference",
        **options,
        d=getattr(channel, "d", 1),
        bits=isinstance(channel, BitVector),
    )
    channels = f"channel = {r_channel(channel)}, channel_b = {r_channel(other)}, "
    # R matches the groups by name, whatever their order.
    order = rng.permutation(len(a))
    call = f"(a = {named(a, range(len(a)))}, b = {named(b[order], order)}, {channels}"
    return Case(written.replace("(", call, 1), DIFFERENCES, expected)


def random_cases() -> Iterator[Case]:
    rng = np.random.default_rng(2027)
    kinds = (shares_case, table_case, difference_case, shares_case)
    for number in range(CASES):
        yield kinds[number % len(kinds)](rng)


COIN = grr(2, "3/4")


def degenerate_cases() -> Iterator[Case]:
    """Yield inputs for which no estimate exists: both languages must reject them."""
    for counts in ([-1, 5], [1.5, 2], [0, 0], [5], [float("nan"), 3]):
        call = f"ldp_proportions({r_value(counts)}, {r_channel(COIN)})"
        yield Case(call, SHARES, result_of(lambda c=counts: proportions(c, COIN), SHARES))
    for options in ({"level": 0}, {"level": 2}, {"interval": "best"}, {"n": 11}, {"level": "x"}):
        call = r_call("ldp_proportions", **options)
        call = call.replace("(", f"(c(3, 7), {r_channel(COIN)}, ", 1)
        yield Case(
            call, SHARES, result_of(lambda o=options: proportions([3, 7], COIN, **o), SHARES)
        )
    bits = BitVector(2, 2, 3, 1)
    for counts, n in (([3, 7], None), ([3, 11], 10)):
        call = (
            f"ldp_proportions({r_value(counts)}, {r_channel(bits)}, n = {r_value(n)}, bits = TRUE)"
        )
        yield Case(call, SHARES, result_of(lambda c=counts, m=n: proportions(c, bits, n=m), SHARES))
    table = geometric(4, 2)
    call = f"ldp_proportions(c(3, 7), {r_channel(table)})"
    yield Case(call, SHARES, result_of(lambda: proportions([3, 7], table), SHARES))
    for counts in ([[1, -1], [2, 3]], [[0, 0], [0, 0]], [[1, 2, 3], [4, 5, 6]]):
        channels = [COIN, COIN] if len(counts[0]) == 2 else [COIN, table]
        call = ", ".join([r_value(counts), *map(r_channel, channels)])
        yield Case(
            f"ldp_crosstab({call})",
            CELLS,
            result_of(lambda c=counts, d=channels: crosstab(c, d), CELLS),
        )
    for a, b in (([3, 7], [0, 0]), ([3, 7], [1, 2, 3]), ([3, 7], [1, 2.5])):
        call = f"ldp_difference({r_value(a)}, {r_value(b)}, {r_channel(COIN)})"
        yield Case(
            call, DIFFERENCES, result_of(lambda c=a, d=b: difference(c, d, COIN), DIFFERENCES)
        )


MISFITS = (
    ("ldp_proportions(c(10, 5, 0), c(p = 0.75, q = 0.25))", "p + (k - 1) q must be 1 (found 1.25)"),
    ("ldp_proportions(c(7, 3), c(p = 0.8, q = 0.1))", "p + (k - 1) q must be 1 (found 0.9)"),
    ("ldp_proportions(c(7, 5, 4), c(p = 0.8, q = 0.5), d = 2)", "must be 2 (found 1.8)"),
    (
        "ldp_crosstab(matrix(1:4, 2), c(p = 0.75, q = 0.25), c(p = 0.8, q = 0.1))",
        "must be 1 (found 0.9)",
    ),
    ("ldp_difference(c(7, 3), c(5, 5), c(p = 0.8, q = 0.1))", "must be 1 (found 0.9)"),
    (
        "ldp_difference(c(x = 7, y = 3), c(x = 5, z = 5), c(p = 0.75, q = 0.25))",
        "both groups must have the same options (found x, y and x, z)",
    ),
    (
        "ldp_difference(c(x = 7, y = 3), c(x = 5, x = 5), c(p = 0.75, q = 0.25))",
        "the names of the counts must differ from each other",
    ),
    (
        "ldp_proportions(c(7, 3), matrix(c(3, 1, 1, 3), 2))",
        "the rows of a channel's matrix must add up to 1",
    ),
)


def test_r_says_why_a_channel_or_a_group_does_not_fit(tmp_path):
    lines = [
        f"cat(tryCatch({{ {call}; 'no error' }}, error = conditionMessage), '\\n')"
        for call, _ in MISFITS
    ]
    file = tmp_path / "misfits.R"
    file.write_text("\n".join([SCRIPT.read_text(encoding="utf-8"), *lines]), encoding="utf-8")
    messages = subprocess.run(
        ["Rscript", "--vanilla", str(file)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for (call, expected), message in zip(MISFITS, messages, strict=True):
        assert expected in message, f"{call}: {message}"


def run_in_r(cases: list[Case], directory: Path, script: str) -> list[np.ndarray | None]:
    """Return what R prints for each case; None for an error."""
    calls = [
        f"print_columns(function() {case.call}, {r_value_of_names(case.columns)})" for case in cases
    ]
    file = directory / "cases.R"
    file.write_text("\n".join([script, PRINT, *calls]), encoding="utf-8")
    output = subprocess.run(
        ["Rscript", "--vanilla", str(file)], capture_output=True, text=True, check=True
    ).stdout
    return [
        None if line.strip() == "error" else np.array(line.split(), dtype=float)
        for line in output.splitlines()
    ]


def r_value_of_names(names: tuple[str, ...]) -> str:
    return f"c({', '.join(map(repr, names))})"


def disagreements(cases: list[Case], printed: list[np.ndarray | None]) -> list[str]:
    """Return the calls whose numbers differ by more than the rounding of both languages."""
    return [
        f"{case.call}\n  Python {case.expected}\n  R      {numbers}"
        for case, numbers in zip(cases, printed, strict=True)
        if case.expected is None
        or numbers is None
        or not np.allclose(numbers, case.expected, rtol=RELATIVE, atol=1e-12)
    ]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return list(random_cases())


def test_r_and_python_agree_on_random_cases(cases, tmp_path):
    printed = run_in_r(cases, tmp_path, SCRIPT.read_text(encoding="utf-8"))
    assert len(printed) == CASES
    wrong = disagreements(cases, printed)
    assert not wrong, f"{len(wrong)} of {CASES}:\n" + "\n".join(wrong[:5])


def test_degenerate_inputs_are_errors_in_both_languages(tmp_path):
    cases = list(degenerate_cases())
    printed = run_in_r(cases, tmp_path, SCRIPT.read_text(encoding="utf-8"))
    for case, numbers in zip(cases, printed, strict=True):
        assert case.expected is None, f"Python accepts {case.call}"
        assert numbers is None, f"R accepts {case.call}"


SURVEY = """
slug = "sleep"
title = "Sleep"
introduction = "Three questions."

[[pages]]
[[pages.questions]]
id = "slept"
type = "yes_no"
text = "Did you sleep badly?"
truth_probability = "0.88"
prefer_not_to_say = true
[[pages.questions]]
id = "tired"
type = "yes_no"
text = "Are you tired?"
truth_probability = "0.88"
prefer_not_to_say = true
[[pages.questions]]
id = "hours"
type = "number"
text = "How many hours did you sleep?"
low = 4
high = 10
epsilon = 3
mechanism = "geometric"
prefer_not_to_say = false
"""


def test_the_examples_of_the_readme_read_an_export(store, tmp_path):
    survey = publish(store, load(SURVEY.encode(), "sleep.toml", Caps()), TODAY)
    for stratum in ("north", "south"):
        add_released(store, survey, 400, stratum=stratum)
    file = io.BytesIO()
    write_microdata(file, store, survey)
    with ZipFile(file) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "ldp.R").write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    readme = SCRIPT.with_name("README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```r\n(.*?)```", readme, re.S)
    assert len(blocks) == 4
    # R prints the last expression of a block; the test prints its estimates with all digits.
    code = "\n".join(
        re.sub(r"^(ldp_.*)$", r'cat(sprintf("%.17g", (\1)$estimate), "\\n")', block, flags=re.M)
        for block in blocks
    )
    output = subprocess.run(
        ["Rscript", "--vanilla", "-e", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    shares, hours, cells, differences = (
        np.array(line.split(), dtype=float) for line in output.splitlines()
    )
    data = read_microdata(io.BytesIO(file.getvalue()))
    north, south = (data.tallies(0)[name, ""].counts[0] for name in ("north", "south"))
    channel = data.channels["slept"]
    expected_hours = proportions(data.tally(0).counts[2], data.channels["hours"]).estimate
    for numbers, expected in (
        (shares, data.proportions("slept").estimate),
        (hours, expected_hours),
        (cells, data.crosstab("slept", "tired").estimate.ravel()),
        (differences, difference(north, south, channel).estimate),
    ):
        assert np.allclose(numbers, expected, rtol=RELATIVE)


ALTERATIONS = (
    ("estimate <- (f - q) / (p - q)", "estimate <- (f - q) / p"),
    ("z + pmin(pmax(shift, 0), 2), -1", "z, -1"),
    ("- 0.18 * pmin(", "- 0.2 * pmin("),
    ("max(0.5, 1 - ldp_z", "max(0.4, 1 - ldp_z"),
    ("first <- min(m + 1, last)", "first <- last"),
)


def test_an_altered_formula_is_noticed(cases, tmp_path):
    script = SCRIPT.read_text(encoding="utf-8")
    for number, (formula, wrong) in enumerate(ALTERATIONS):
        assert script.count(formula) == 1, formula
        directory = tmp_path / str(number)
        directory.mkdir()
        printed = run_in_r(cases[:80], directory, script.replace(formula, wrong))
        assert disagreements(cases[:80], printed), formula
