"""`pytest -m security -v` reads as the list of the twenty items of the security design."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.security_items import ITEMS, item_of, told


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


def test_a_run_of_the_security_tests_ends_with_the_list_of_the_twenty_items():
    names = [f"tests/x.py::test_{several[0]}_holds[a]" for several in ITEMS.values()]
    assert [item_of(name) for name in names] == list(range(1, 21))
    lines = list(told([(names[0], "passed"), (names[0], "failed"), ("t.py::test_x", "passed")]))
    assert lines[0] == " 1. integer mechanism: 1 passed, 1 failed"
    assert lines[1] == " 2. real generator audit: not run"
    assert lines[17] == "18. csrf, object access: not run"
    assert lines[20].endswith("further sentences of the design: 1 passed")
