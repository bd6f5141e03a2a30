"""The twenty items of the security design, and by which tests each is proved."""

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
"""What the name of a test of each item begins with."""


def item_of(test: str) -> int:
    """The item that a test's name says, 0 for a further sentence of the design.

    >>> item_of("tests/x.py::test_csrf_is_refused[a-b]"), item_of("tests/x.py::test_other")
    (18, 0)
    """
    name = re.sub(r"\[.*", "", test).rpartition("::")[2]
    for item, several in ITEMS.items():
        if any(name.startswith(f"test_{words}") for words in several):
            return item
    return 0


def told(outcomes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The list of items with how the tests of each ended, of tests and their outcomes."""
    ended: dict[int, Counter[str]] = {}
    for test, outcome in outcomes:
        ended.setdefault(item_of(test), Counter())[outcome] += 1
    for item, several in ITEMS.items():
        yield f"{item:>2}. {_words(several)}: {_ends(ended.get(item))}"
    yield f"    further sentences of the design: {_ends(ended.get(0))}"


def _words(several: list[str]) -> str:
    return ", ".join(words.replace("_", " ") for words in several)


def _ends(found: Counter[str] | None) -> str:
    return ", ".join(f"{n} {outcome}" for outcome, n in found.items()) if found else "not run"
