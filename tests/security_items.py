"""The twenty items of the security design and the tests that cover each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

ITEMS = {
    1: ["integer_mechanism"],
    2: ["real_generator_audit"],
    3: ["the_raw_answer_never_leaves"],
    4: ["no_unsafe_fallback"],
    5: ["perturbed_once"],
    6: ["constant_shape"],
    7: ["frozen_definition"],
    8: ["acknowledged_means_on_disk"],
    9: ["exactly_once"],
    10: ["no_trace"],
    11: ["no_arrival_order"],
    12: ["disk_full", "locked", "overloaded"],
    13: ["invitations"],
    14: ["small_groups"],
    15: ["headers"],
    16: ["strict_payloads"],
    17: ["logins"],
    18: ["csrf", "object_access"],
    19: ["csv", "xlsx"],
    20: ["honest_about_poisoning"],
}
"""For each item, the words with which the names of its tests start."""


def item_of(test: str) -> int:
    """Return the item that a test covers, or 0 for another sentence of the design.

    >>> item_of("tests/x.py::test_csrf_is_refused[a-b]"), item_of("tests/x.py::test_other")
    (18, 0)
    """
    name = re.sub(r"\[.*", "", test).rpartition("::")[2]
    for item, prefixes in ITEMS.items():
        if any(name.startswith(f"test_{words}") for words in prefixes):
            return item
    return 0


def summary(outcomes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a line per item with the outcomes of its tests, given (test, outcome) pairs."""
    counts: dict[int, Counter[str]] = {}
    for test, outcome in outcomes:
        counts.setdefault(item_of(test), Counter())[outcome] += 1
    for item, prefixes in ITEMS.items():
        yield f"{item:>2}. {_words(prefixes)}: {_count(counts.get(item))}"
    yield f"    other sentences of the design: {_count(counts.get(0))}"


def _words(prefixes: list[str]) -> str:
    return ", ".join(words.replace("_", " ") for words in prefixes)


def _count(outcomes: Counter[str] | None) -> str:
    if not outcomes:
        return "not run"
    return ", ".join(f"{n} {outcome}" for outcome, n in outcomes.items())
