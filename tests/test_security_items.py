"""`pytest -m security -v` reads as the list of the twenty items of the security design."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

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


def of_security(file: Path) -> list[str]:
    """Names of the tests in a file that bear the mark, by themselves or with all others there."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    module = any(
        isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "pytestmark"
        and "mark.security" in ast.unparse(node.value)
        for node in tree.body
    )
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and (module or any("mark.security" in ast.unparse(mark) for mark in node.decorator_list))
    ]


@cache
def names() -> list[str]:
    """Of all tests that bear the mark."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [name for file in files for name in of_security(file)]


@pytest.mark.parametrize(
    ("item", "words"), [(item, words) for item, several in ITEMS.items() for words in several]
)
def test_every_item_of_the_security_design_has_a_test_whose_name_says_it(item, words):
    assert [name for name in names() if name.startswith(f"test_{words}")], f"item {item}"
