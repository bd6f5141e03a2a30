"""Checks of the generator: words become draws, and many reports have the expected shares."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice, zip_longest
from typing import Any

import numpy as np

from survey.audit.channels import (
    Truth,
    describe,
    distribution,
    number_of_reports,
    some_truths,
    work,
)
from survey.audit.node import Check, Node
from survey.audit.respondents import Answer, Form, all_answers, questions, truths
from survey.mechanism import AnyChannel, SubsetSelection, channel_from_json
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import WORD_TOTAL, Floats, Integers

GROUP = "generator"

EXTRA_RANGES = (3, 2**31 + 1)
"""Ranges in addition to the survey's, so that every generator serves several values of n."""

ACCEPTED_WORD = 5
"""The word after each word at a boundary; the generator uses it if it rejects the first one."""

DRAWS = 3_000
"""Draws of one generator; its pool of 1,024 words is filled several times."""

ID_BYTES = 16

ALPHA = 1e-6
"""Probability of a false alarm of a whole audit: half for channels, half for whole reports."""

COUNTED_CODES = 4_096
"""Maximum number of codes that are counted one by one; above it, each bit is counted."""

TRUTHS = 8
SAMPLE_WORK = 150_000_000
"""Maximum `work` of one channel's samples; above it fewer truths are sampled, at least two."""

REPORT_CHECK = "whole reports of the real generator"

RESPONDENTS = 4
"""Sets of answers; each set is reported many times."""

REPORT_SAMPLE_WORK = 60_000_000
"""Maximum `work` of all reports together; above it fewer reports are sampled."""

REPORT_WORK = 150
"""The cost of a report in addition to its perturbations."""

Counts = Mapping[str, int]
"""How often each code occurs, or how often each bit is 1, by code or bit number as text."""


def rejection_limit(n: int) -> int:
    """Return the first of the 2^32 words that is rejected, so that all residues are equally many.

    >>> rejection_limit(3), rejection_limit(4) == 2**32
    (4294967295, True)
    """
    return int(WORD_TOTAL - WORD_TOTAL % n)


def uniform_below(words: Iterator[int]) -> Callable[[int], int]:
    """Return a function that draws from words as a device does: reject, then take modulo n."""

    def draw(n: int) -> int:
        return next(word for word in words if word < rejection_limit(n)) % n

    return draw


def check_words(node: Node, ranges: Iterable[int], seed: int) -> Check:
    """Check one generator with many n in turn, at the boundaries of every range, and its pool."""
    values = sorted({*ranges, *EXTRA_RANGES})
    draws = [list(_draws_in_turn(order, seed)) for order in (values, values[::-1])]
    words = [list(_words(sequence)) for sequence in draws]
    requests = [
        {"below": [n for n, _ in sequence], "words": supply}
        for sequence, supply in zip(draws, words, strict=True)
    ]
    answers = node.ask(words=requests)["words"]
    mismatches = map(_word_mismatch, draws, words, answers)
    mismatch = next(filter(None, mismatches), "")
    detail = (
        f"{sum(map(len, draws)):,} draws below {len(values)} different n in turn, at the "
        f"boundaries of every range; each of {sum(map(len, words)):,} words used once and wiped"
    )
    return Check(GROUP, "words to draws", not mismatch, mismatch or detail)


def _words(draws: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Yield the words, with an accepted word after each rejected one."""
    for n, word in draws:
        yield word
        if word >= rejection_limit(n):
            yield ACCEPTED_WORD


def _word_mismatch(
    draws: Sequence[tuple[int, int]], words: Sequence[int], answer: Mapping[str, Any]
) -> str:
    """Return the first difference from the expected draws and pool, or ""."""
    draw = uniform_below(iter(words))
    for (n, _), value in zip(draws, answer["values"], strict=True):
        expected = draw(n)
        if value != expected:
            return f"a draw below {n} is {value}, expected {expected}"
    size = len(answer["lastPool"])
    if size == 0:
        return "the client never uses the generator"
    # All words are used up, so the last filling of the pool ends with unused filler.
    n_used = size - (-len(words)) % size
    if any(answer["lastPool"][:n_used]) or answer["fills"] != -(-len(words) // size):
        return "used words are not wiped, or the pool is filled at other times"
    return "words remain after wiping" if answer["unwiped"] else ""


def _draws_in_turn(order: Sequence[int], seed: int) -> Iterator[tuple[int, int]]:
    """Yield (n, word) for n1, n2, ..., n1, ...: first words at boundaries, then random words."""
    rng = random.Random(seed)  # noqa: S311  words for a test
    rounds = zip_longest(*([(n, word) for word in _boundary_words(n)] for n in order))
    boundaries = [draw for turn in rounds for draw in turn if draw is not None]
    yield from boundaries
    for n in islice(cycle(order), max(DRAWS - len(boundaries), 0)):
        yield n, rng.randrange(1, WORD_TOTAL)


def _boundary_words(n: int) -> list[int]:
    limit = rejection_limit(n)
    words = {0, n - 1, n, n + 1, limit - 1, limit, WORD_TOTAL - 1}
    return sorted(word for word in words if 0 <= word < WORD_TOTAL)


def check_ids(node: Node) -> Check:
    """Check that a report's id consists of the generator's bytes: each value at each place."""
    ids = [[(7 * place + value) % 256 for place in range(ID_BYTES)] for value in range(256)]
    ok = node.ask(ids=ids)["ids"] == ids
    detail = f"all {ID_BYTES} bytes are the generator's, for every value of each"
    return Check(GROUP, "ids", ok, detail if ok else "an id is not the generator's bytes")


def sample_request(channel: AnyChannel, n: int) -> dict[str, Any]:
    """Return the request for n samples per truth, without the channel."""
    return {"truths": sampled_truths(channel, n), "n": n, "bits": counted_bits(channel)}


def sampled_truths(channel: AnyChannel, n: int) -> list[Truth]:
    """Return up to eight truths, at least two if a perturbation takes long."""
    fitting = min(max(SAMPLE_WORK // (n * work(channel)), 2), TRUTHS)
    return some_truths(channel, TRUTHS if work(channel) == 1 else fitting)


def counted_bits(channel: AnyChannel) -> int:
    """Return how many bits are counted one by one, or 0 if whole codes are counted."""
    bits = channel.report_bits
    # The number of sets of a thousand options has 300 digits, so the bits are compared first.
    few_codes = bits <= 64 and number_of_reports(channel) <= COUNTED_CODES
    return 0 if few_codes else bits


def expected_shares(channel: AnyChannel, truth: Truth) -> dict[str, float]:
    """Return the probability of every counted cell: of a code, or of a bit that is 1."""
    if not counted_bits(channel):
        return {code: float(share) for code, share in distribution(channel, truth).items()}
    if isinstance(channel, SubsetSelection):
        return {str(i): channel.p if i == truth else channel.q for i in range(channel.k)}
    assert isinstance(channel, TickChannel)  # noqa: S101
    assert isinstance(truth, tuple)  # noqa: S101  see `truths_of`
    sampled = channel.sampled / channel.m
    ones = [sampled * (channel.p if tick else channel.q) for tick in truth]
    shares = [*([sampled] * channel.m if channel.is_sampled else []), *ones]
    return {str(i): share for i, share in enumerate(shares)}


def check_samples(channel: AnyChannel, tables: Sequence[Counts], n: int, alpha: float) -> Check:
    """Check every cell against its Clopper-Pearson interval, and the epsilon the samples prove.

    `alpha` is the probability of a false alarm over all cells.
    """
    truths = sampled_truths(channel, n)
    expected = [expected_shares(channel, truth) for truth in truths]
    cell_alpha = alpha / sum(map(len, expected))
    for truth, table, cells in zip(truths, tables, expected, strict=True):
        if mismatch := cell_mismatch(table, cells, n, cell_alpha):
            text = str(truth) if isinstance(truth, int) else "".join(map(str, truth))[:80]
            detail = f"truth {text}, {mismatch}"
            return Check(GROUP, describe(channel), False, detail)
    bound = epsilon_bound(tables, n, cell_alpha)
    unit = "bits" if counted_bits(channel) else "codes"
    detail = (
        f"{n:,} for each of {len(truths)} truths, {len(expected[0]):,} {unit}: "
        f"epsilon is at least {bound:.3f}, stated {channel.epsilon:.3f}"
    )
    return Check(GROUP, describe(channel), bound <= channel.epsilon, detail)


def cell_mismatch(table: Counts, cells: Mapping[str, float], n: int, alpha: float) -> str:
    """Name the first cell of n reports whose interval excludes its probability, or return ""."""
    if unknown := set(table) - set(cells):
        return f"unknown report {min(unknown)}"
    counts = np.array([table.get(code, 0) for code in cells])
    low, high = clopper_pearson(counts, n, alpha)
    shares = np.array(list(cells.values()))
    outside = np.flatnonzero((shares < low) | (shares > high))
    if not outside.size:
        return ""
    at = int(outside[0])
    return f"report {list(cells)[at]}: {counts[at]:,} of {n:,}, expected {shares[at] * n:,.0f}"


def epsilon_bound(tables: Sequence[Counts], n: int, alpha: float) -> float:
    """Return the lower bound of epsilon that the samples prove.

    ln max_j (max_i low_ij / min_i high_ij) over cells j and truths i, with one-sided
    Clopper-Pearson bounds.
    """
    codes = sorted(set().union(*tables))
    counts = np.array([[table.get(code, 0) for code in codes] for table in tables])
    low, high = clopper_pearson(counts, n, alpha)
    ratios = low.max(axis=0) / high.min(axis=0)
    return float(np.log(max(ratios.max(), 1.0)))


def clopper_pearson(c: int | Integers, n: int, alpha: float) -> tuple[Floats, Floats]:
    """Return the exact interval for c successes of n at level 1 - alpha.

    Source: Clopper and Pearson 1934.
    """
    from scipy.special import betaincinv

    counts = np.asarray(c)
    inside, below = np.maximum(counts, 1), np.minimum(counts, n - 1)
    low = np.where(counts == 0, 0.0, betaincinv(inside, n - inside + 1, alpha / 2))
    high = np.where(counts == n, 1.0, betaincinv(below + 1, n - below, 1 - alpha / 2))
    return low, high


def sampled_reports(node: Node, form: Form, n: int, seed: int) -> Check:
    """Check n reports of each of a few sets of answers, with new sampled questions each time."""
    channels = {q["id"]: channel_from_json(q["channel"]) for q in questions(form)}
    report_work = REPORT_WORK + sum(work(channel) for channel in channels.values())
    n = min(n, max(REPORT_SAMPLE_WORK // (RESPONDENTS * report_work), 100))
    rng = random.Random(seed)  # noqa: S311  only the choice of respondents
    answer_sets = [all_answers(form, rng) for _ in range(RESPONDENTS)]
    bits = [counted_bits(channel) for channel in channels.values()]
    requests = [{"answers": answers, "n": n, "bits": bits} for answers in answer_sets]
    tallies = node.ask(sampleReports=requests)["sampleReports"]
    for answers, tally in zip(answer_sets, tallies, strict=True):
        if mismatch := _report_mismatch(form, channels, answers, tally, n):
            return Check(GROUP, REPORT_CHECK, False, mismatch)
    detail = (
        f"{n:,} of each of {RESPONDENTS} sets of answers: {len(channels)} questions as expected"
    )
    return Check(GROUP, REPORT_CHECK, True, detail)


def _report_mismatch(
    form: Form,
    channels: Mapping[str, AnyChannel],
    answers: Mapping[str, Answer],
    tally: Mapping[str, Any],
    n: int,
) -> str:
    """Return the first difference from the expected shares, or ""."""
    if tally["ids"] != n:
        return f"{n:,} reports have {tally['ids']:,} ids"
    # A question is sampled together with the one that it depends on, so questions that are not
    # sampled change no truth.
    true_answers = truths(form, answers, None)
    sampling = form["sampling"]
    share = sampling["draw"] / len(sampling["groups"]) if sampling else 1.0
    expected = {name: expected_shares(c, true_answers[name]) for name, c in channels.items()}
    alpha = ALPHA / 2 / RESPONDENTS / sum(len(cells) + 1 for cells in expected.values())
    for (name, cells), n_asked, counts in zip(
        expected.items(), tally["asked"], tally["counts"], strict=True
    ):
        low, high = clopper_pearson(int(n_asked), n, alpha)
        if not low <= share <= high:
            return f"{name}: asked {n_asked:,} times of {n:,}, expected {share * n:,.0f}"
        if mismatch := cell_mismatch(counts, cells, n_asked, alpha):
            return f"{name}: {mismatch}"
    return ""
