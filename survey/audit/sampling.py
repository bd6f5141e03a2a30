"""Checks of the random generator: words become draws, and many reports have the promised shares."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from survey.audit.channels import Truth, distribution, number_of_reports, shown, some_truths, work
from survey.audit.harness import Check, Node
from survey.audit.respondents import Answer, Form, questions, random_answer, truths
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable, channel_from_json
from survey.mechanism.arrays import Floats
from survey.mechanism.channel import WORD_TOTAL

GROUP = "generator"

OTHERS = (3, 2**31 + 1)
"""Ranges that are asked for beside the survey's: never is only one n asked of a generator."""

AFTER = 5
"""The word that stands behind each word at an edge: it is taken where that one is rejected."""

DRAWS = 3_000
"""Draws of one generator; its pool of 1,024 words is filled several times."""

ID_BYTES = 16
WORD_SEED = 20261122


def limit(n: int) -> int:
    """The first of the 2^32 words that is rejected, so that every residue has equally many.

    >>> limit(3), limit(4) == 2**32
    (4294967295, True)
    """
    return int(WORD_TOTAL - WORD_TOTAL % n)


def below(words: Iterator[int]) -> Callable[[int], int]:
    """Draws from words as a device makes them: rejected from `limit(n)` on, else taken modulo n."""

    def draw(n: int) -> int:
        return next(word for word in words if word < limit(n)) % n

    return draw


def check_words(node: Node, ranges: Iterable[int]) -> Check:
    """One generator asked for many n in turn, at the edges of every range; then its pool."""
    every = sorted({*ranges, *OTHERS})
    asked = [list(_in_turn(order)) for order in (every, every[::-1])]
    fed = [list(_fed(draws)) for draws in asked]
    request = [
        {"below": [n for n, _ in draws], "words": words}
        for draws, words in zip(asked, fed, strict=True)
    ]
    seen = node.ask(words=request)["words"]
    found = [_word_mismatch(*each) for each in zip(asked, fed, seen, strict=True)]
    wrong = next(filter(None, found), "")
    detail = (
        f"{sum(map(len, asked)):,} draws below {len(every)} different n in turn, at the edges of "
        f"every range; each of {sum(map(len, fed)):,} words used once and wiped"
    )
    return Check(GROUP, "words to draws", not wrong, wrong or detail)


def _fed(draws: Iterable[tuple[int, int]]) -> Iterator[int]:
    """The words, with one that is taken behind each that is rejected."""
    for n, word in draws:
        yield word
        if word >= limit(n):
            yield AFTER


def _word_mismatch(
    draws: Sequence[tuple[int, int]], fed: Sequence[int], seen: Mapping[str, Any]
) -> str:
    """What is not as promised, "" when all is."""
    draw = below(iter(fed))
    for (n, _), value in zip(draws, seen["values"], strict=True):
        promised = draw(n)
        if value != promised:
            return f"a draw below {n} is {value}, promised {promised}"
    size = len(seen["left"])
    if size == 0:
        return "the generator is never asked"
    # All fed words are used up: what the last filling still holds is filler behind them.
    used = size - (-len(fed)) % size
    if any(seen["left"][:used]) or seen["fills"] != -(-len(fed) // size):
        return "words that were used are not wiped, or the pool is filled at other times"
    return "words are left after wiping" if seen["kept"] else ""


def _in_turn(order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(n, word): n1, n2, ..., n1, ... each time with the next word at an edge, then at random."""
    rng = random.Random(WORD_SEED)  # noqa: S311  the same words in every audit
    rounds = zip_longest(*([(n, word) for word in _edge_words(n)] for n in order))
    edges = [each for turn in rounds for each in turn if each is not None]
    yield from edges
    for n in islice(cycle(order), max(DRAWS - len(edges), 0)):
        yield n, rng.randrange(1, WORD_TOTAL)


def _edge_words(n: int) -> list[int]:
    edges = {0, n - 1, n, n + 1, limit(n) - 1, limit(n), WORD_TOTAL - 1}
    return sorted(word for word in edges if 0 <= word < WORD_TOTAL)


def check_ids(node: Node) -> Check:
    """A report's id is the generator's bytes, all of them: each value at each place."""
    asked = [[(7 * place + value) % 256 for place in range(ID_BYTES)] for value in range(256)]
    seen = node.ask(ids=asked)["ids"]
    detail = f"all {ID_BYTES} bytes are the generator's, for every value of each"
    ok = seen == asked
    return Check(GROUP, "ids", ok, detail if ok else "an id is not the generator's bytes")


ALPHA = 1e-6
"""Chance of a false alarm of a whole audit: half for its channels, half for whole reports."""

CELLS = 4_096
"""Most codes that are counted one by one; of bit strings with more, each bit is counted."""

TRUTHS = 8
WORK = 150_000_000
"""Units of `work` above which fewer truths are sampled, never fewer than two."""

Counts = Mapping[str, int]


def asked_samples(channel: AnyChannel, n: int) -> dict[str, Any]:
    """The question to the client, save which channel it is."""
    return {"truths": sampled_truths(channel, n), "n": n, "bits": bits_counted(channel)}


def sampled_truths(channel: AnyChannel, n: int) -> list[Truth]:
    """Up to eight truths, two where one perturbation takes long."""
    most = TRUTHS if work(channel) == 1 else min(max(WORK // (n * work(channel)), 2), TRUTHS)
    return some_truths(channel, most)


def _is_counted_by_code(channel: AnyChannel) -> bool:
    if isinstance(channel, WeightTable) or (
        isinstance(channel, SubsetSelection) and channel.d == 1
    ):
        return True
    # The number of sets of a thousand options has three hundred digits: look at its bits first.
    return _bits(channel) <= 64 and number_of_reports(channel) <= CELLS


def bits_counted(channel: AnyChannel) -> int:
    """Of how many bits each is counted; 0 where whole codes are."""
    return 0 if _is_counted_by_code(channel) else _bits(channel)


def _bits(channel: AnyChannel) -> int:
    match channel:
        case BitVector():
            return channel.bits
        case SubsetSelection():
            return channel.k
    raise TypeError("a table's reports are no bits")


def promised(channel: AnyChannel, truth: Truth) -> dict[str, float]:
    """The probability of every cell that is counted: of a code, or of a bit that is 1."""
    if _is_counted_by_code(channel):
        return {code: float(share) for code, share in distribution(channel, truth).items()}
    if isinstance(channel, SubsetSelection):
        return {str(i): channel.p if i == truth else channel.q for i in range(channel.k)}
    assert isinstance(channel, BitVector)  # noqa: S101
    assert isinstance(truth, tuple)  # noqa: S101  see `truths_of`
    asked = channel.sampled / channel.m
    ones = [asked * (channel.p if tick else channel.q) for tick in truth]
    shares = [*([asked] * channel.m if channel.is_sampled else []), *ones]
    return {str(i): share for i, share in enumerate(shares)}


def check_samples(channel: AnyChannel, seen: Sequence[Counts], n: int, alpha: float) -> Check:
    """Every cell within its Clopper-Pearson interval, and no epsilon proved above the claim.

    `alpha` is the chance of a false alarm, over all cells.
    """
    truths = sampled_truths(channel, n)
    expected = [promised(channel, truth) for truth in truths]
    each_alpha = alpha / sum(map(len, expected))
    for truth, table, cells in zip(truths, seen, expected, strict=True):
        if wrong := wrong_cell(table, cells, n, each_alpha):
            return Check("generator", shown(channel), False, f"truth {_brief(truth)}, {wrong}")
    bound = epsilon_bound(seen, n, each_alpha)
    cells_of = "codes" if _is_counted_by_code(channel) else "bits"
    detail = (
        f"{n:,} for each of {len(truths)} truths, {len(expected[0]):,} {cells_of}: "
        f"epsilon is at least {bound:.3f}, promised {channel.epsilon:.3f}"
    )
    return Check("generator", shown(channel), bound <= channel.epsilon, detail)


def wrong_cell(table: Counts, cells: Mapping[str, float], n: int, alpha: float) -> str:
    """The first cell of n reports whose interval excludes its probability; "" when none does."""
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


def _brief(truth: Truth) -> str:
    return str(truth) if isinstance(truth, int) else "".join(map(str, truth))[:80]


def epsilon_bound(tables: Sequence[Counts], n: int, alpha: float) -> float:
    """What the samples prove epsilon to be at least (Clopper-Pearson, one-sided each).

    ln max_j (max_i low_ij / min_i high_ij) over cells j and truths i.
    """
    codes = sorted(set().union(*tables))
    counts = np.array([[table.get(code, 0) for code in codes] for table in tables])
    low, high = clopper_pearson(counts, n, alpha)
    ratios = low.max(axis=0) / high.min(axis=0)
    return float(np.log(max(ratios.max(), 1.0)))


def clopper_pearson(c: int | NDArray[np.int64], n: int, alpha: float) -> tuple[Floats, Floats]:
    """The exact interval for c successes of n at level 1 - alpha (Clopper and Pearson 1934)."""
    counts = np.asarray(c)
    inside, below = np.maximum(counts, 1), np.minimum(counts, n - 1)
    low = np.where(counts == 0, 0.0, betaincinv(inside, n - inside + 1, alpha / 2))
    high = np.where(counts == n, 1.0, betaincinv(below + 1, n - below, 1 - alpha / 2))
    return low, high


NAME = "whole reports of the real generator"

PEOPLE = 4
"""Sets of answers that are reported again and again."""

REPORT_WORK = 60_000_000
"""Units of `work` for all reports together: fewer than asked for where one report takes long."""

REPORT = 150
"""What a report costs beside its perturbations."""

REPORT_SEED = 20261123


def sampled_reports(node: Node, form: Form, n: int) -> Check:
    """n reports of each of a few sets of answers, the questions drawn anew for each report."""
    channels = {each["id"]: channel_from_json(each["channel"]) for each in questions(form)}
    n = min(n, max(REPORT_WORK // (PEOPLE * _work(channels)), 100))
    rng = random.Random(REPORT_SEED)  # noqa: S311  invented people, the same in every audit
    everyone = [_answers(form, rng) for _ in range(PEOPLE)]
    bits = [bits_counted(channel) for channel in channels.values()]
    asked = [{"answers": answers, "n": n, "bits": bits} for answers in everyone]
    seen = node.ask(sampleReports=asked)["sampleReports"]
    for answers, tally in zip(everyone, seen, strict=True):
        if wrong := _report_mismatch(form, channels, answers, tally, n):
            return Check("generator", NAME, False, wrong)
    detail = f"{n:,} of each of {PEOPLE} sets of answers: {len(channels)} questions as promised"
    return Check("generator", NAME, True, detail)


def _work(channels: Mapping[str, AnyChannel]) -> int:
    return REPORT + sum(work(channel) for channel in channels.values())


def _answers(form: Form, rng: random.Random) -> dict[str, Answer]:
    given = {question["id"]: random_answer(question, rng) for question in questions(form)}
    return {name: answer for name, answer in given.items() if answer is not None}


def _report_mismatch(
    form: Form,
    channels: Mapping[str, AnyChannel],
    answers: Mapping[str, Answer],
    tally: Mapping[str, Any],
    n: int,
) -> str:
    """What is not as promised, "" when all is."""
    if tally["ids"] != n:
        return f"{n:,} reports have {tally['ids']:,} ids"
    # A question and the one it depends on are drawn together: what is not drawn changes no truth.
    found = truths(form, answers, None)
    shares = _shares_asked(form)
    expected = {name: promised(channel, found[name]) for name, channel in channels.items()}
    alpha = ALPHA / 2 / PEOPLE / sum(len(cells) + 1 for cells in expected.values())
    for (name, cells), asked, counts in zip(
        expected.items(), tally["asked"], tally["counts"], strict=True
    ):
        low, high = clopper_pearson(int(asked), n, alpha)
        if not low <= shares[name] <= high:
            return f"{name}: asked {asked:,} times of {n:,}, expected {shares[name] * n:,.0f}"
        if wrong := wrong_cell(counts, cells, asked, alpha):
            return f"{name}: {wrong}"
    return ""


def _shares_asked(form: Form) -> dict[str, float]:
    """How likely each question is asked: groups drawn of all groups."""
    sampling = form["sampling"]
    share = sampling["draw"] / len(sampling["groups"]) if sampling else 1.0
    return {question["id"]: share for question in questions(form)}
