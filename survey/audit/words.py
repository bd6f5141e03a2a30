"""How the generator's words become draws: exact by rejection, each used once and wiped."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice, zip_longest
from typing import Any

from survey.audit.check import Check
from survey.audit.node import Node
from survey.mechanism.channel import WORD_TOTAL

GROUP = "generator"

OTHERS = (3, 2**31 + 1)
"""Ranges that are asked for beside the survey's: never is only one n asked of a generator."""

AFTER = 5
"""The word that stands behind each word at an edge: it is taken where that one is rejected."""

DRAWS = 3_000
"""Draws of one generator; its pool of 1,024 words is filled several times."""

ID_BYTES = 16
SEED = 20261122


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
    found = [_wrong(*each) for each in zip(asked, fed, seen, strict=True)]
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


def _wrong(draws: Sequence[tuple[int, int]], fed: Sequence[int], seen: Mapping[str, Any]) -> str:
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
    rng = random.Random(SEED)  # noqa: S311  the same words in every audit
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
