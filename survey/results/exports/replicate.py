#!/usr/bin/env python3
"""Recompute every published share, mean and interval from the files beside this script.

Usage: python3 replicate.py [FOLDER]. Needs Python 3.9 or newer and NumPy, and nothing else: it
imports nothing of the software that published the figures. replicate.R does the same in R.

Input: reports.csv (the randomized reports), channels.csv (the probabilities of the randomization),
questions.csv, options.csv and answers.csv (what was asked), values.csv (numbers per report whose
average is an estimate), displayed.csv (displayed distributions), published.csv (the published
figures), manifest.json (hashes). The script prints a line per figure and exits with 1 if one
differs in the printed digits, or if a file is not the one that the manifest describes.

Symbols: n reports; f the share of reports of a kind; p and q the probabilities that a report names
an option that was chosen, and one that was not; D = p - q; z the normal quantile of the level.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, Dict, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

Row = Dict[str, str]
Ends = Tuple[float, float]
Result = Tuple[float, float, float]
Moments = Tuple[float, ...]
Variance = Callable[[Any, float], Any]

# --- Files ---------------------------------------------------------------------------------------


def read(folder: Path, name: str) -> list[Row]:
    """Return the rows of a CSV file as dictionaries of texts."""
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def grouped(rows: Iterable[Row], *columns: str) -> dict[tuple[str, ...], list[Row]]:
    """Return rows by the values of some columns."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


class Survey:
    """All files of the package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.published = read(folder, "published.csv")
        self.questions = {row["question_id"]: row for row in read(folder, "questions.csv")}
        self.options = grouped(read(folder, "options.csv"), "question_id")
        self.answers = grouped(read(folder, "answers.csv"), "question_id")
        self.channels = grouped(read(folder, "channels.csv"), "question_id", "per", "option_id")
        key = ("scope", "stratum", "question_id", "statistic", "base", "option_id")
        self.values = grouped(read(folder, "values.csv"), *key)
        self.displayed = grouped(read(folder, "displayed.csv"), "scope", "stratum", "question_id")
        self.reports = read(folder, "reports.csv")
        self.cache: dict[tuple[str, ...], Any] = {}

    def values_of(self, scope: str, stratum: str, *statistic: str) -> list[Row]:
        """Return the rows of a statistic; those of all reports if a stratum has no other ones."""
        rows = self.values.get((scope, stratum, *statistic))
        return rows or self.values[("all", "", *statistic)]

    def cells(self, scope: str, stratum: str, question: str) -> list[str]:
        """Return the cells of a question that are not empty, of all reports or of one stratum."""
        rows = self.reports
        if scope == "stratum":
            rows = [row for row in rows if row["_stratum"] == stratum]
        return [row[question] for row in rows if row[question] != ""]

    def matrix(self, question: str) -> Any:
        """Return P(report | truth), shape (truths, reports)."""
        if ("matrix", question) not in self.cache:
            rows = self.channels.get((question, "answer", ""))
            if rows is None:
                return self._large_matrix(question)
            truth, report = (
                np.array([int(row[name]) for row in rows]) for name in ("truth", "report")
            )
            P = np.zeros((truth.max() + 1, report.max() + 1))
            P[truth, report] = [float(row["probability"]) for row in rows]
            self.cache["matrix", question] = P
        return self.cache["matrix", question]

    def _large_matrix(self, question: str) -> Any:
        """Return the matrix of a large table: its integer weights, divided by their sum per row."""
        with (self.folder / "weights" / f"{question}.csv").open(encoding="utf-8") as file:
            weights = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)[:, 1:]
        self.cache["matrix", question] = weights / weights.sum(axis=1, keepdims=True)
        return self.cache["matrix", question]


# --- Quantiles and sums of probabilities ---------------------------------------------------------


def normal_quantile(level: float) -> float:
    """Return z with P(|N(0, 1)| <= z) = level."""
    return NormalDist().inv_cdf((1 + level) / 2)


def student_probability(t: float, df: int) -> float:
    """Return P(|T| <= t). Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4."""
    theta = math.atan(t / math.sqrt(df))
    sine, cosine = math.sin(theta), math.cos(theta)
    if df == 1:
        return 2 * theta / math.pi
    # odd: (2/pi) [theta + sin cos (1 + 2/3 cos^2 + 2 4/(3 5) cos^4 + ...)], to cos^(df-3)
    # even: sin [1 + 1/2 cos^2 + 1 3/(2 4) cos^4 + ...], to cos^(df-2)
    odd = df % 2
    j = np.arange(1, (df - 1) // 2 if odd else df // 2)
    factors = (2 * j / (2 * j + 1) if odd else (2 * j - 1) / (2 * j)) * cosine**2
    total = 1 + float(np.cumprod(factors).sum())
    return 2 / math.pi * (theta + sine * cosine * total) if odd else sine * total


@lru_cache(maxsize=64)
def student_quantile(level: float, df: int) -> float:
    """Return t with P(|T| <= t) = level, by halving; by its expansion in 1/df for large df."""
    z = normal_quantile(level)
    if df > 5_000:
        # Abramowitz and Stegun 1964, 26.7.5
        return (
            z
            + (z**3 + z) / (4 * df)
            + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * df**3)
        )
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        if student_probability(middle, df) < level:
            low = middle
        else:
            high = middle
    return high


class Binomial:
    """Probabilities of binomial counts of n reports."""

    def __init__(self, n: int) -> None:
        log_factorial = np.array([math.lgamma(x + 1) for x in range(n + 1)])
        x = np.arange(n + 1)
        self.x, self.n = x, n
        self.log_choose = log_factorial[n] - log_factorial[x] - log_factorial[n - x]

    def between(self, m: int, c: int, share: float) -> float:
        """Return P(m <= X < c), the sum of C(n, x) share^x (1-share)^(n-x)."""
        x = self.x[m:c]
        logs = self.log_choose[m:c] + x * math.log(share) + (self.n - x) * math.log1p(-share)
        return float(np.exp(logs).sum())


@lru_cache(maxsize=8)
def binomial_of(n: int) -> Binomial:
    """Return the probabilities of n reports, which many options share."""
    return Binomial(n)


# --- Intervals of shares whose reports name options: Feldman and Cousins 1998 --------------------


def feldman_cousins(c: int, n: int, p: float, q: float, level: float) -> Ends:
    """Return the interval for the share of an option that c of n reports name.

    The share of reports that name it is lambda = q + (p-q) pi. The interval for lambda, between
    the smaller and the larger of p and q, consists of all values at which c ranks among the most
    likely outcomes, by the likelihood ratio, that together have the probability `level`.
    """
    floor, ceiling = min(p, q), max(p, q)
    binomial = binomial_of(n)
    low = lower_end(c, n, floor, ceiling, level, binomial)
    mirrored = lower_end(n - c, n, 1 - ceiling, 1 - floor, level, binomial)
    high = ceiling if mirrored == 1 - ceiling else 1 - mirrored
    # pi = (lambda - q)/(p - q)
    ends = sorted(min(max((end - q) / (p - q), 0.0), 1.0) for end in (low, high))
    return ends[0], ends[1]


def lower_end(c: int, n: int, a: float, b: float, level: float, binomial: Binomial) -> float:
    """Return the smallest lambda in [a, b] at which the count c is accepted."""
    if c <= n * a:
        return a

    def best(x: int) -> float:
        """Return the log likelihood of a count at the most likely lambda in [a, b]."""
        share = min(max(x / n, a), b)
        return x * math.log(share) + (n - x) * math.log1p(-share)

    def overtaking(m: int) -> float:
        """Return the lambda at which m ranks as high as c: logit = (l(c) - l(m))/(c - m)."""
        return 1 / (1 + math.exp(-(best(c) - best(m)) / (c - m)))

    # The smallest m with P(m < X < c) below the level, where m and c rank equally.
    first, last = 0, c - 1
    while first < last:
        m = (first + last) // 2
        if binomial.between(m + 1, c, overtaking(m)) < level:
            last = m
        else:
            first = m + 1
    m = first
    upper = min(max(overtaking(m), a), b)
    lower = min(max(overtaking(m - 1), a), b) if m > 0 else a
    if binomial.between(m, c, upper) < level:
        # Between both ranks, P(m <= X < c) falls below the level.
        tolerance = 1e-5 * math.sqrt(upper * (1 - lower) / n)
        while upper - lower > tolerance:
            middle = (lower + upper) / 2
            if binomial.between(m, c, middle) >= level:
                lower = middle
            else:
                upper = middle
        upper = lower
    return min(max(upper - 1e-6 * math.sqrt(upper * (1 - upper) / n), a), b)


# --- Score intervals of tables: Wilson 1927 ------------------------------------------------------


def continuity(level: float) -> float:
    """Return C, by how many reports an end moves because counts are whole numbers."""
    return max(0.5, 1 - normal_quantile(level) * math.sqrt(-math.log(level)))


def lattice_shift(values: ArrayLike, shares: ArrayLike, n: ArrayLike, level: float) -> float:
    """Return by how much an end moves because counts are whole numbers (Esseen 1945).

    The estimate is a sum of one value per report; of the n[s] reports of group s, a fraction
    shares[s][c] has the value values[s][c]. The shift is the largest C h |phi(2 pi/h)| over jumps
    h, where phi is the characteristic function of the sum:
    |phi(u)| = prod over s of |sum over c of shares[s][c] exp(i u values[s][c])|^n[s].
    """
    values, shares, n = (np.asarray(x, dtype=float) for x in (values, shares, n))
    mode = np.array([row[int(np.argmax(share))] for row, share in zip(values, shares)])
    jumps = np.sort(np.abs(values - mode[:, None]).ravel())
    if jumps.size > 8:
        jumps = jumps[np.round(np.arange(8) * (jumps.size - 1) / 7).astype(int)]
    largest = 0.0
    for h in jumps:
        if h > 1e-9 * jumps[-1]:
            u = 2 * math.pi / h
            length = np.hypot(
                (np.cos(u * values) * shares).sum(axis=1), (np.sin(u * values) * shares).sum(axis=1)
            )
            largest = max(largest, h * float(np.prod(np.minimum(length, 1.0) ** n)))
    return continuity(level) * largest


def score_interval(
    estimate: float, n: int, at_truth: float, elsewhere: float, level: float, shift: float
) -> Ends:
    """Return all x with n (estimate - x)^2 <= z^2 (x at_truth + (1-x) elsewhere - x^2).

    at_truth = E[g^2 | the truth is the option] and elsewhere = the largest E[g^2 | another truth],
    where g is the pseudo-value of a report. Each end moves outwards by `shift`.
    """
    z2, ends = normal_quantile(level) ** 2, list[float]()
    slope = at_truth - elsewhere
    for side in (-1, 1):
        x = min(max(estimate + side * shift, 0.0), 1.0)
        b = n * x + z2 * slope / 2
        variance = max(elsewhere + slope * x - x**2, 0.0)
        root = math.sqrt(z2 * (n * variance + z2 * (slope**2 / 4 + elsewhere)))
        ends.append(min(max((b + side * root) / (n + z2), 0.0), 1.0))
    return ends[0], ends[1]


# --- Counts and shares ---------------------------------------------------------------------------


class Shares:
    """The shares of all options of one question, among all respondents of a group.

    For each option: `count` of `reports` reports name it (binomial questions), `estimate`. For
    tables: `G`, the pseudo-values of each option for each report, and `f`, the shares of reports.
    """

    def __init__(self, survey: Survey, scope: str, stratum: str, question: str) -> None:
        self.survey, self.question = survey, question
        self.form = survey.questions[question]
        self.options = [row["option_id"] for row in survey.options[(question,)]]
        cells = survey.cells(scope, stratum, question)
        self.n = len(cells)
        self.is_binomial = (question, "option", self.options[0]) in survey.channels
        if self.is_binomial:
            self._count_names(cells)
        else:
            self._average_values(scope, stratum, cells)

    def _count_names(self, cells: list[str]) -> None:
        k, form = len(self.options), self.form["form"]
        chances = [
            self.survey.channels[self.question, "option", option][0] for option in self.options
        ]
        self.p, self.q = (np.array([float(row[name]) for row in chances]) for name in "pq")
        if form == "sampled_bits":
            bits = np.array([cell.split() for cell in cells], dtype=int)
            self.reports, self.count = bits[:, :k].sum(axis=0), bits[:, k:].sum(axis=0)
        else:
            self.reports = np.full(k, self.n)
            if form in ("bits", "sets"):
                self.count = np.array([cell.split() for cell in cells], dtype=int).sum(axis=0)
            else:
                codes = np.array(cells, dtype=int)
                names = self.names_of_codes()
                self.count = names @ np.bincount(codes, minlength=names.shape[1])
        # pi = (f - q)/(p - q)
        with np.errstate(invalid="ignore", divide="ignore"):
            self.estimate = (self.count / self.reports - self.q) / (self.p - self.q)

    def names_of_codes(self) -> Integers:
        """Return 1 where a code names an option, shape (options, codes)."""
        rows = self.survey.answers[(self.question,)]
        named = [[option in row["options"].split() for row in rows] for option in self.options]
        return np.array(named, dtype=np.int64)

    def _average_values(self, scope: str, stratum: str, cells: list[str]) -> None:
        rows = [
            self.survey.values_of(scope, stratum, self.question, "share", "all", option)
            for option in self.options
        ]
        report_of_code = np.array([int(row["report"]) for row in rows[0]])
        reports = report_of_code.max() + 1
        self.G = np.zeros((len(rows), reports))
        for place, option_rows in enumerate(rows):
            self.G[place, report_of_code] = [float(row["value"]) for row in option_rows]
        counts = np.bincount(report_of_code[np.array(cells, dtype=int)], minlength=reports)
        self.f = counts / self.n
        self.reports = np.full(len(rows), self.n)
        # The estimate is the plain average of the pseudo-values.
        self.estimate = self.G @ self.f
        P = self.survey.matrix(self.question)
        # P(report | truth), with codes merged into reports
        self.P = np.zeros((len(P), reports))
        for code, report in enumerate(report_of_code):
            self.P[:, report] += P[:, code]
        # The option that a truth names first; the options of numbers are its "no answers".
        truths = self.survey.answers[(self.question,)]
        first = [row["options"].split()[:1] for row in truths]
        self.truth = np.array([self.options.index(x[0]) if x else -1 for x in first])

    def interval(self, place: int, level: float) -> Ends:
        """Return the interval of one option's share."""
        if self.is_binomial:
            if not self.reports[place]:
                return 0.0, 1.0
            return feldman_cousins(
                *(int(self.count[place]), int(self.reports[place])),
                *(self.p[place], self.q[place], level),
            )
        g, n = self.G[place], self.n
        mean, square = self.P @ g, self.P @ g**2
        is_option = self.truth == place
        # Pseudo-values are unbiased: E[g | truth] is 1 for the option and 0 for all other truths.
        bias = float(np.abs(mean - is_option).max())
        shift = lattice_shift([g / n], [self.f], [n], level)
        if bias > 1e-9:
            shift += bias
        at_truth, elsewhere = square[is_option].max(), square[~is_option].max()
        return score_interval(self.estimate[place], n, at_truth, elsewhere, level, shift)


# --- Shares among those who answered: Fieller 1954 -----------------------------------------------


class AnsweredShares:
    """The shares of answers among the respondents who answered: R = pi_j/A.

    A = 1 - the shares of options that are no answer. The interval is the hull of all r in [0, 1]
    with (pi_j - r A)^2 <= z^2 V(r), where V(r) is the variance of pi_j - r A if the ratio is r.
    """

    RATIOS = np.linspace(0, 1, 33)
    STEPS = 128

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        rows = shares.survey.options[(shares.question,)]
        is_answer = np.array([row["is_answer"] == "1" for row in rows])
        self.answers, self.silent = np.flatnonzero(is_answer), np.flatnonzero(~is_answer)
        self.bottom = 1 - float(shares.estimate[self.silent].sum())
        if shares.is_binomial and shares.form["form"] != "sampled_bits":
            self._names_moments()
        elif shares.is_binomial:
            self._sampled_moments()

    def result(self, place: int, level: float) -> Result:
        """Return the estimate and the interval of the option at a place."""
        if not self.shares.reports[place]:
            return math.nan, 0.0, 1.0
        ratio = self.shares.estimate[place] / self.bottom
        shift = self._shift(place, level)
        variance = self._variance_function(place)
        low, high = (self._end(place, variance, shift, side, level) for side in (-1, 1))
        return ratio, low, high

    def _end(self, place: int, variance: Variance, shift: Floats, side: int, level: float) -> float:
        """Return the last accepted ratio on one side: on a grid, then by halving."""
        z, below = normal_quantile(level), self.bottom
        top = self.shares.estimate[place]
        answered, start = min(below, 1.0), min(max(top, 0.0), below) / below

        def accepted(ratio: Any, shift: Any) -> Any:
            moved = np.clip(top + side * shift, 0.0, below)
            beyond = np.maximum(side * (ratio * below - moved), 0.0)
            return beyond**2 <= z**2 * variance(ratio, answered)

        grid = np.linspace(0, 1, self.STEPS + 1)
        on_grid = np.interp(grid, self.RATIOS, shift)
        inside = side * float((side * np.where(accepted(grid, on_grid), grid, start)).max())
        point = inside * self.STEPS
        point = math.ceil(point - 1) if side < 0 else math.floor(point + 1)
        point = min(max(point, 0), self.STEPS)
        outside, near = point / self.STEPS, min(max(point - side, 0), self.STEPS)
        slope = (on_grid[near] - on_grid[point]) * -side * self.STEPS

        def accepted_between(ratio: float) -> bool:
            return bool(accepted(ratio, on_grid[point] + slope * (ratio - outside)))

        end, rejected = (outside if accepted_between(outside) else inside), outside
        for _ in range(24):
            middle = (end + rejected) / 2
            if accepted_between(middle):
                end = middle
            else:
                rejected = middle
        return rejected

    def _shift(self, place: int, level: float) -> Floats:
        """Return the lattice shift of pi_j - r A at each of RATIOS."""
        shares = self.shares
        if not shares.is_binomial:
            a, b = shares.G[place], shares.G[self.answers].sum(axis=0)
            return np.array(
                [
                    lattice_shift([(a - r * b) / shares.n], [shares.f], [shares.n], level)
                    for r in self.RATIOS
                ]
            )
        places = [place, *self.silent]
        D = abs(float(shares.form["p"]) - float(shares.form["q"]))
        n = np.maximum(shares.reports[places], 1)
        # The share of reports that name each option, from the estimate.
        names = shares.q + (shares.p - shares.q) * np.nan_to_num(shares.estimate)
        f = np.clip(np.nan_to_num(names[places]), 0.0, 1.0)
        shifts = []
        for r in self.RATIOS:
            step = np.array([1.0] + [r] * len(self.silent)) / (D * n)
            if shares.form["form"] in ("answer", "pattern"):
                # One report names a single one of these options, or none.
                values, parts = np.append(step, 0.0), np.append(f, max(1 - f.sum(), 0.0))
                shifts.append(lattice_shift([values], [parts], [n[0]], level))
            else:
                values = np.stack([step, 0 * step], axis=1)
                parts = np.stack([f, 1 - f], axis=1)
                shifts.append(lattice_shift(values, parts, n, level))
        return np.array(shifts)

    def _variance_function(self, place: int) -> Variance:
        """Return V(r, A)."""
        shares = self.shares
        if not shares.is_binomial:
            return self._grouped_variance(*self._table_squares(place))
        if shares.form["form"] == "sampled_bits":
            return lambda ratio, answered: self._sampled_variance(place, ratio, answered)
        return self._grouped_variance(*self._names_squares(place))

    def _grouped_variance(self, at_truth: Moments, elsewhere: Moments, silent: Moments) -> Variance:
        """Return V = (A [r w_truth(r) + (1-r) w_elsewhere(r)] + (1-A) w_silent(r)) / n.

        w(r) = E[(a - r b)^2] = E[a^2] - 2 r E[a b] + r^2 E[b^2] of people with the option, with
        another answer, and without an answer.
        """

        def w(moments: Moments, r: Any) -> Any:
            aa, ab, bb = moments
            return aa - 2 * r * ab + r**2 * bb

        def variance(r: Any, answered: float) -> Any:
            answering = r * w(at_truth, r) + (1 - r) * w(elsewhere, r)
            return (answered * answering + (1 - answered) * w(silent, r)) / self.shares.n

        return variance

    def _table_squares(self, place: int) -> tuple[Moments, Moments, Moments]:
        """Return E[a^2], E[a b], E[b^2] of the three groups; truths weighted as estimated."""
        shares = self.shares
        a, b = shares.G[place], shares.G[self.answers].sum(axis=0)
        weights = possible_shares(shares.estimate)
        # One row of P per option: its truths have the same probabilities.
        P = np.array([shares.P[np.flatnonzero(shares.truth == j)[0]] for j in range(len(weights))])
        moments = [P @ product for product in (a**2, a * b, b**2)]
        is_silent = np.isin(np.arange(len(weights)), self.silent)
        is_option = np.arange(len(weights)) == place
        groups = (is_option, ~is_option & ~is_silent, is_silent)
        at_truth, elsewhere, silent = (
            tuple(weighted_mean(moment, weights, group) for moment in moments) for group in groups
        )
        return at_truth, elsewhere, silent

    def _names_moments(self) -> None:
        """Set the probabilities of two names in one report, for a question of names.

        with_one: P(a report names two given options | one of them is the truth); with_none: the
        same if neither is. Patterns contain no second option beside one that is no answer.
        """
        form = self.shares.form
        self.p, self.q = float(form["p"]), float(form["q"])
        self.with_one = self.with_none = 0.0
        if form["form"] == "bits":
            kept, flipped = float(form["pair_kept"]), float(form["pair_flipped"])
            self.with_one, self.with_none = self.p - kept, flipped
        elif form["form"] in ("answer", "sets"):
            k, d, p = int(form["k"]), int(form["d"]), self.p
            self.with_one = p * (d - 1) / (k - 1)
            self.with_none = (p * (d - 1) * (d - 2) + (1 - p) * d * (d - 1)) / (
                (k - 1) * max(k - 2, 1)
            )

    def _names_squares(self, place: int) -> tuple[Moments, Moments, Moments]:
        """Return the moments of a = (s_j - q_j)/D and b = 1 - (N - S q)/D.

        s_j says whether the report names option j, N how many of the S options that are no answer.
        """
        p, q, S = self.p, self.q, len(self.silent)
        D, base = p - q, S * q
        one, none = self.with_one, self.with_none
        chosen, other = self.shares.p[place], self.shares.q[place]
        answered_N, silent_N = S * q, p + (S - 1) * q
        answered_NN = answered_N + S * (S - 1) * none
        silent_NN = silent_N + 2 * (S - 1) * one + (S - 1) * (S - 2) * none

        def squares(s: float, joint: float, N: float, NN: float) -> Moments:
            aa = (s * (1 - 2 * other) + other**2) / D**2
            together = (joint - base * s - other * N + other * base) / D**2
            bb = 1 - 2 * (N - base) / D + (NN - 2 * base * N + base**2) / D**2
            return aa, (s - other) / D - together, bb

        return (
            squares(chosen, S * one, answered_N, answered_NN),
            squares(other, S * none, answered_N, answered_NN),
            squares(other, one + (S - 1) * none, silent_N, silent_NN),
        )

    def _sampled_moments(self) -> None:
        """Set the numbers of a question of which each report covers only some options."""
        shares, form = self.shares, self.shares.form
        p, q = float(form["p"]), float(form["q"])
        m, r = len(shares.options), int(form["sampled"])
        self.noise = p * (1 - p) / (p - q) ** 2, q * (1 - q) / (p - q) ** 2
        self.parts = possible_shares(shares.estimate[self.silent])
        self.common = shares.n * r * (r - 1) / (m * (m - 1))

    def _sampled_variance(self, place: int, ratio: Any, answered: float) -> Any:
        """Return Var(pi_j) + r^2 Var(sum pi_s) - 2 r sum pi_j pi_s common/(n_j n_s)."""
        reports = np.maximum(self.shares.reports, 1).astype(float)

        def share_variance(x: Any, n: float) -> Any:
            return (x * self.noise[0] + (1 - x) * self.noise[1] + x * (1 - x)) / n

        x, n = ratio * answered, reports[place]
        pairs = list(zip(self.parts, reports[self.silent]))
        across, silent = 0.0, 0.0
        for i, (part, n_part) in enumerate(pairs):
            y = (1 - answered) * part
            across = across + x * y / (n * n_part)
            silent = silent + share_variance(y, n_part)
            for next_part, n_next in pairs[i + 1 :]:
                silent -= 2 * y * (1 - answered) * next_part * self.common / (n_part * n_next)
        return share_variance(x, n) + ratio**2 * silent - 2 * ratio * self.common * across


def possible_shares(estimate: ArrayLike) -> Floats:
    """Return max(estimate + d, 0) with the d that makes the sum 1 (norm-sub)."""
    x = np.nan_to_num(np.asarray(estimate, dtype=float))
    largest_first = np.sort(x)[::-1]
    excess = np.cumsum(largest_first) - 1
    size = np.arange(1, x.size + 1)
    last = int(np.flatnonzero(largest_first - excess / size > 0)[-1])
    shares = np.maximum(x - excess[last] / (last + 1), 0.0)
    return np.asarray(shares / shares.sum())


def weighted_mean(values: Floats, weights: Floats, among: Booleans) -> float:
    """Return the weighted mean over a group; unweighted if all weights are 0."""
    inside = np.where(among, weights, 0.0)
    if not inside.sum() > 0:
        inside = among.astype(float)
    return float((values * inside).sum() / inside.sum())


# --- Means, mean ranks and histogram cells: Student 1908, Fieller 1954, Johnson 1978 -------------

RATIOS = -np.cos(np.linspace(0, np.pi, 65))
"""Ratios at which variances are computed; they are linear between these."""


class Ratio:
    """The mean of a over the mean of b, on a scale on which the target x is from -1 to 1.

    a and b are pseudo-values of the reports: E[a | truth] = x, or 0 if it is no answer, and
    E[b | truth] = 1 or 0. The interval is the hull of all r with
    |A - r B| <= bias + t(r) sqrt(max(Var(a - r b), floor(r))/n).
    """

    def __init__(
        self,
        P: Floats,
        f: Floats,
        n: int,
        a: Floats,
        b: Floats,
        x: Floats,
        level: float,
        parts: int,
    ) -> None:
        self.a, self.b, self.n, self.parts = a, b, n, parts
        answers = ~np.isnan(x)
        target = np.where(answers, x, 0.0)
        self.bias = sum(
            float(worst) if (worst := np.abs(P @ g - goal).max()) > 1e-9 else 0.0
            for g, goal in ((a, target), (b, answers.astype(float)))
        )
        self.A, self.B = float(f @ a), float(f @ b)
        # Moments of the reports around the means
        u, v, bessel = a - self.A, b - self.B, n / max(n - 1, 1)
        self.aa, self.ab, self.bb = (bessel * float(f @ g) for g in (u * u, u * v, v * v))
        self.thirds = [float(f @ g) for g in (u**3, u * u * v, u * v * v, v**3)]
        differences = a - RATIOS[:, None] * b
        self.minimum, self.maximum = differences.min(axis=1), differences.max(axis=1)
        self.floor = self._floor(P, target, answers)
        self.t = student_quantile(level, max(n - 1, 1))

    def _floor(self, P: Floats, target: Floats, answers: Booleans) -> Floats:
        """Return the smallest Var(a - r b) that randomization causes, at each of RATIOS.

        It is the sum of pi_i w_i(r), w_i(r) = E[(a - r b)^2 | i]. Among people who answered, with
        the mean r, it is at least the lower convex hull of the points (x_i, w_i(r)) at r.
        """
        aa, ab, bb = (P @ g for g in (self.a**2, self.a * self.b, self.b**2))
        share = 1.0 if answers.all() else min(max(self.B, 0.0), 1.0)
        x = np.unique(target[answers])
        floor = []
        for r in RATIOS:
            w = aa - 2 * r * ab + r**2 * bb
            lowest = np.array([w[answers & (target == value)].min() for value in x])
            silent = 0.0 if answers.all() else float(w[~answers].min())
            floor.append(max(share * hull(x, lowest, r) + (1 - share) * silent, 0.0))
        return np.array(floor)

    def result(self) -> Result:
        """Return the ratio and the ends of its interval."""
        if self.B <= 0:
            return math.nan, -1.0, 1.0
        inside = min(max(self.A / self.B, -1.0), 1.0)
        return self.A / self.B, self._last_accepted(inside, -1), self._last_accepted(inside, 1)

    def _rejected(self, r: float, side: int, inside: float) -> bool:
        """Return whether r is outside the interval."""
        variance, quantile = self._tail(r, side)
        spread = math.sqrt(max(variance, float(np.interp(r, RATIOS, self.floor))) / self.n)
        distance = self.B * abs(inside - r)
        return self.n > 1 and distance > self.bias + quantile * spread

    def _tail(self, r: float, side: int) -> tuple[float, float]:
        """Return the variance of a - r b and the quantile, with one more extreme report.

        A small sample may contain none of the rare reports that cause variance and skewness. The
        quantile is t + skewness (2 t^2 + 1)/(6 sqrt n) on the side of the skewness.
        """
        n, t = self.n, self.t
        variance = max(self.aa - 2 * r * self.ab + r**2 * self.bb, 0.0)
        extreme = np.interp(r, RATIOS, self.maximum if side > 0 else self.minimum)
        g = max(side * (float(extreme) - (self.A - r * self.B)), 0.0)
        d = g / (n + 1)
        aaa, aab, abb, bbb = self.thirds
        third = side * (aaa - 3 * r * aab + 3 * r**2 * abb - r**3 * bbb)
        third = n * (third - 3 * d * variance - d**3) + (g - d) ** 3
        larger = variance + g * d
        scale = (larger if larger > 0 else 1.0) ** 1.5
        skewness = max(third / (n + 1) / scale, 0.0)
        return larger, t + skewness * (2 * t**2 + 1) / (6 * math.sqrt(n))

    def _last_accepted(self, inside: float, side: int) -> float:
        """Return where values begin to be rejected, cutting a bracket into parts."""
        accepted, beyond = inside, float(side)
        if not self._rejected(beyond, side, inside):
            return float(side)
        for _ in range(math.ceil(math.log(2.0**-24, 1 / self.parts))):
            length = (beyond - accepted) / self.parts
            before = self.parts - 1
            for step in range(1, self.parts):
                if self._rejected(accepted + step / self.parts * (beyond - accepted), side, inside):
                    before = step - 1
                    break
            accepted, beyond = accepted + before * length, accepted + (before + 1) * length
        return beyond


def hull(x: Floats, y: Floats, at: float) -> float:
    """Return the height at `at` of the lower convex hull of the points (x, y), x rising."""
    hull_x: list[float] = []
    hull_y: list[float] = []
    for xi, yi in zip(x, y):
        while len(hull_x) > 1:
            x1, x2, y1, y2 = hull_x[-2], hull_x[-1], hull_y[-2], hull_y[-1]
            # The middle point stays if it is below the line between its neighbors.
            if (y2 - y1) * (xi - x1) < (yi - y1) * (x2 - x1):
                break
            hull_x.pop()
            hull_y.pop()
        hull_x.append(xi)
        hull_y.append(yi)
    return float(np.interp(at, hull_x, hull_y))


def number_result(survey: Survey, row: Row, n_cells: int) -> Result:
    """Return the estimate and interval of a mean, a mean rank or a histogram cell."""
    question, statistic = row["question_id"], row["statistic"]
    key = (row["scope"], row["stratum"], question, statistic, row["base"], row["option_id"])
    rows = survey.values_of(*key)
    value, b = (np.array([float(item[name]) for item in rows]) for name in ("value", "answered"))
    x, low, high, is_all = target_values(survey, row)
    middle, half = (low + high) / 2, (high - low) / 2
    if is_all:
        return 1.0, 1.0, 1.0
    # value = middle b + half a
    a = (value - middle * b) / half
    codes = np.array(survey.cells(row["scope"], row["stratum"], question), dtype=int)
    n = len(codes)
    f = np.bincount(codes, minlength=value.size) / n
    parts = 32 if statistic != "share" or n_cells <= 8 else 2
    P = survey.matrix(question)
    ratio = Ratio(P, f, n, a, b, (x - middle) / half, float(row["conf_level"]), parts)
    _, conf_low, conf_high = ratio.result()
    # The estimate is mean(value)/mean(answered); interval ends stay inside the possible range.
    estimate = float(f @ value) / float(f @ b)
    ends = max(middle + half * conf_low, low), min(middle + half * conf_high, high)
    return (estimate, *ends)


# --- Displayed distributions and medians ----------------------------------------------------------


class Distribution:
    """The displayed shares of a question's numbers, and the intervals of sets of numbers.

    `pi` has the displayed shares of all true answers among all respondents of the group, `shares`
    those of the different `numbers` among the people who answered.
    """

    def __init__(self, survey: Survey, scope: str, stratum: str, question: str) -> None:
        rows = survey.displayed[scope, stratum, question]
        truths = survey.answers[(question,)]
        self.x = np.array([float(t["value"]) if t["value"] else math.nan for t in truths])
        self.P = survey.matrix(question)
        codes = np.array(survey.cells(scope, stratum, question), dtype=int)
        self.n = len(codes)
        self.f = np.bincount(codes, minlength=self.P.shape[1]) / self.n
        mean_key = next(key for key in survey.values if key[2] == question and key[3] == "mean")
        values = survey.values_of(scope, stratum, *mean_key[2:])
        self.b = np.array([float(row["answered"]) for row in values])
        self.pi = np.array([float(row["share"]) for row in rows])
        self.form, self.is_most_likely = survey.questions[question], rows[0]["method"] == "em"
        self.is_right = self._is_best() if self.is_most_likely else self._is_smoothed()
        answers = ~np.isnan(self.x)
        self.numbers = np.unique(self.x[answers])
        shares = np.array([self.pi[self.x == number].sum() for number in self.numbers])
        self.shares = shares / shares.sum()
        self.survey_cache = survey.cache
        self.cache: dict[tuple[float, float, float], Ends] = {}

    def _is_best(self) -> bool:
        """Return whether the shares maximize the likelihood sum f_j log lambda_j, lambda = pi P.

        By duality, the log likelihood per report is within max_i sum_j f_j P_ij/lambda_j - 1 of
        its maximum.
        """
        gradient = self.P @ (self.f / (self.pi @ self.P))
        return bool(gradient.max() - 1 <= 1e-5)

    def _is_smoothed(self) -> bool:
        """Return whether the shares are those of expectation maximization with smoothing.

        Each round is pi_i <- pi_i sum_j f_j P_ij/lambda_j, followed by smoothing with the weights
        1/4, 1/2, 1/4 along the numbers, until the log likelihood changes by less than .001 (Li et
        al. 2020).
        """
        order = np.argsort(self.x, kind="stable")
        along = order[: int((~np.isnan(self.x)).sum())]
        seen = self.f > 0
        f, P = self.f[seen], self.P[:, seen]
        pi, previous = np.full(len(P), 1 / len(P)), -math.inf
        for _ in range(10_000):
            lambdas = pi @ P
            likelihood = self.n * float(f @ np.log(lambdas))
            if abs(likelihood - previous) < 1e-3:
                break
            previous = likelihood
            pi = pi * (P @ (f / lambdas))
            padded = np.concatenate([pi[along[:1]], pi[along], pi[along[-1:]]])
            pi[along] = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
            pi /= pi.sum()
        return bool(np.abs(pi - self.pi).max() < 1e-6)

    def share_interval(self, first: float, last: float, level: float) -> Ends:
        """Return the interval for the share of numbers from first to last, among the answers."""
        key = (first, last, level)
        if key not in self.cache:
            inside = np.where((self.x >= first) & (self.x <= last), 1.0, -1.0)
            target = np.where(np.isnan(self.x), math.nan, inside)
            a = self._set_values(np.nan_to_num(target))
            ratio = Ratio(self.P, self.f, self.n, a, self.b, target, level, 32)
            _, low, high = ratio.result()
            self.cache[key] = (1 + low) / 2, (1 + high) / 2
        return self.cache[key]

    def _factors(self) -> Any:
        """Return the root of R, U, s and V^T of a question's channel, computed once."""
        key = ("factors", self.form["question_id"])
        if key not in self.survey_cache:
            root = np.sqrt(self.P.mean(axis=0))
            self.survey_cache[key] = (root, *np.linalg.svd(self.P / root, full_matrices=False))
        return self.survey_cache[key]

    def _set_values(self, target: Floats) -> Floats:
        """Return pseudo-values of a target in [-1, 1].

        For generalized randomized response: (x - q sum x)/(p - q). Otherwise, with P R^-1/2 =
        U diag(s) V^T and R the mean of the rows of P: R^-1/2 V diag(s/(s^2 + ridge s_0^2)) U^T x.
        The ridge is 0, the exact solution of least variance, unless another one with a bias of at
        most .05 makes the interval, 2 sqrt(E a^2/n) + bias, narrower by more than a tenth.
        """
        if self.form["form"] == "answer":
            p, q = float(self.form["p"]), float(self.form["q"])
            return np.asarray((target - q * target.sum()) / (p - q))
        root, U, s, Vt = self._factors()
        is_nonzero = s > s[0] * np.finfo(float).eps * max(self.P.shape)
        inverse = np.divide(1.0, s, out=np.zeros_like(s), where=is_nonzero)
        projected = U.T @ target
        best, shortest, exact = 0.0, math.inf, math.inf
        exact_bias = 0.0
        for ridge in [0.0] + [10.0 ** (power / 2) for power in range(-28, 1)]:
            shrunk = np.where(is_nonzero, s**2 / (s**2 + ridge * s[0] ** 2), 0.0)
            bias = float(np.abs(U @ (shrunk * projected) - target).max())
            half = 2 * math.sqrt(((shrunk * inverse * projected) ** 2).sum() / self.n) + bias
            if ridge == 0:
                exact, exact_bias = half, bias
            if bias <= max(exact_bias, 0.05) and half < shortest:
                best, shortest = ridge, half
        if exact <= 1.1 * shortest:
            best = 0.0
        shrunk = np.where(is_nonzero, s**2 / (s**2 + best * s[0] ** 2), 0.0)
        return np.asarray(Vt.T @ (shrunk * projected * inverse) / root)

    def median(self, level: float) -> Result:
        """Return the median of the displayed distribution and its interval.

        The interval has every x for which the interval of F(x) reaches 1/2 and that of F(x-), at
        the next smaller number, begins below 1/2. Where the share of an end is above 0, its
        one-sided error counts: intervals of the level 2 level - 1.
        """
        x, last = self.numbers, self.numbers.size - 1

        def up_to(place: int, level: float) -> Ends:
            return self.share_interval(x[0], x[place], level)

        def of_number(place: int) -> Ends:
            return self.share_interval(x[place], x[place], level)

        middle = int(np.argmax(np.cumsum(self.shares) >= 0.5 - 1e-9))
        coarse = np.unique(np.linspace(0, last - 1, min(16, last)).round()).astype(int).tolist()
        mirrored = [last - 1 - place for place in reversed(coarse)]
        low = first_place(coarse, last, lambda place: up_to(place, level)[1] >= 0.5)
        high = last - first_place(
            mirrored, last, lambda place: up_to(last - 1 - place, level)[0] < 0.5
        )
        one_sided = 2 * level - 1
        while low < high and of_number(low)[0] > 0 and up_to(low, one_sided)[1] < 0.5:
            low += 1
        while low < high and of_number(high)[0] > 0 and up_to(high - 1, one_sided)[0] >= 0.5:
            high -= 1
        return float(x[middle]), float(x[min(low, middle)]), float(x[max(high, middle)])


def first_place(coarse: list[int], last: int, accepted: Callable[[int], bool]) -> int:
    """Return the first accepted place below `last`, or `last`: coarsely, then by halving."""
    rejected = -1
    for place in coarse:
        if accepted(place):
            while place - rejected > 1:
                halfway = (place + rejected) // 2
                if accepted(halfway):
                    place = halfway
                else:
                    rejected = halfway
            return place
        rejected = place
    return last


def target_values(survey: Survey, row: Row) -> tuple[Floats, float, float, bool]:
    """Return the number of each truth (nan: no answer), both ends, and whether all are the same."""
    truths = survey.answers[(row["question_id"],)]
    if row["statistic"] == "mean_rank":
        orders = [truth["options"].split() for truth in truths]
        m = max(map(len, orders))
        ranks = [
            order.index(row["option_id"]) + 1 if len(order) == m else math.nan for order in orders
        ]
        return np.array(ranks, dtype=float), 1.0, float(m), False
    numbers = np.array([float(t["value"]) if t["value"] else math.nan for t in truths])
    if row["statistic"] == "mean":
        return numbers, float(np.nanmin(numbers)), float(np.nanmax(numbers)), False
    first, last = (float(row[name]) for name in ("cell_first", "cell_last"))
    is_inside = (numbers > first - 1e-9) & (numbers < last + 1e-9)
    inside = np.where(np.isnan(numbers), math.nan, is_inside)
    return inside, 0.0, 1.0, bool(np.nanmin(inside) == 1)


# --- Comparison ----------------------------------------------------------------------------------


def recompute(survey: Survey, row: Row, cell_numbers: dict[tuple[str, ...], int]) -> Result:
    """Return the estimate and the interval of one published figure."""
    group = (row["scope"], row["stratum"], row["question_id"])
    if row["statistic"] == "median" or row["cell_first"]:
        key = ("distribution", *group)
        if key not in survey.cache:
            survey.cache[key] = Distribution(survey, *group)
        distribution: Distribution = survey.cache[key]
        if not distribution.is_right:
            return math.nan, math.nan, math.nan
        if row["statistic"] == "median":
            return distribution.median(float(row["conf_level"]))
        estimate, low, high = number_result(survey, row, cell_numbers.get(group, 0))
        first, last = (float(row[name]) for name in ("cell_first", "cell_last"))
        x = distribution.numbers
        shown = float(distribution.shares[(x > first - 1e-9) & (x < last + 1e-9)].sum())
        if not abs(shown - float(row["displayed"])) <= 0.501e-6:
            return math.nan, math.nan, math.nan
        # The published interval of a cell is widened to contain the displayed share.
        return estimate, min(low, shown), max(high, shown)
    if row["statistic"] != "share":
        return number_result(survey, row, 0)
    if group not in survey.cache:
        survey.cache[group] = Shares(survey, *group)
    shares, level = survey.cache[group], float(row["conf_level"])
    place = shares.options.index(row["option_id"])
    if row["base"] == "all":
        return (float(shares.estimate[place]), *shares.interval(place, level))
    return AnsweredShares(shares).result(place, level)


def changed_files(folder: Path) -> list[str]:
    """Return the names of the files whose SHA-256 is not that of the manifest."""
    digests = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    return [
        name
        for name, digest in digests.items()
        if not (folder / name).is_file()
        or hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest
    ]


def main(folder: Path) -> int:
    """Compare every published figure with the recomputed one; return the exit status."""
    survey = Survey(folder)
    changed = changed_files(folder)
    for name in changed:
        print(f"{name} is not the file that the manifest describes", file=sys.stderr)
    cells = [row for row in survey.published if row["cell_first"]]
    numbers = {key: len(r) for key, r in grouped(cells, "scope", "stratum", "question_id").items()}
    n_compared, n_different, other = 0, 0, []
    for row in survey.published:
        name = " ".join(
            filter(None, (row["stratum"], row["question_id"], row["option_id"], row["statistic"]))
        )
        name += f" ({row['base']})"
        if row["recomputed"] != "yes":
            other.append(f"{name}: {row['recomputed']}")
            continue
        unit, digits, is_equal = 10.0 ** -int(row["decimals"]), int(row["decimals"]), True
        texts: list[str] = []
        columns = ("estimate", "conf_low", "conf_high")
        for column, number in zip(columns, recompute(survey, row, numbers)):
            # Equal digits: the distance from the printed number is at most half its last digit.
            is_same = row[column] == "" or abs(number - float(row[column])) <= 0.501 * unit
            is_equal = is_equal and is_same
            texts.append(f"{row[column] or '-':>14} {number:>14.{digits}f}")
        n_compared, n_different = n_compared + 1, n_different + (not is_equal)
        print(f"{'same' if is_equal else 'DIFFERENT':9} {' '.join(texts)}  {name}")
    for text in other:
        print(f"not recomputed: {text}")
    print(f"{n_compared} figures recomputed, {n_different} different, {len(other)} not recomputed")
    return 1 if n_different or changed or not n_compared else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent))
