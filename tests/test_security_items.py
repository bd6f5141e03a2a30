"""`pytest -m security -v` reports on each of the twenty items of the security design."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.conftest import ROOT
from tests.security_items import ITEMS, item_of, summary


def security_tests(file: Path) -> list[str]:
    """Return the names of the tests in a file that have the mark, directly or by module."""
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
    """Return the names of all tests that have the mark."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [name for file in files for name in security_tests(file)]


def test_every_item_of_the_security_design_has_tests_named_after_it():
    for item, prefixes in ITEMS.items():
        for words in prefixes:
            assert any(name.startswith(f"test_{words}") for name in names()), (
                f"item {item}: {words}"
            )


def test_a_run_of_the_security_tests_ends_with_a_summary_of_the_twenty_items():
    names = [f"tests/x.py::test_{prefixes[0]}_holds[a]" for prefixes in ITEMS.values()]
    assert [item_of(name) for name in names] == list(range(1, 21))
    lines = list(summary([(names[0], "passed"), (names[0], "failed"), ("t.py::test_x", "passed")]))
    assert lines[0] == " 1. integer mechanism: 1 passed, 1 failed"
    assert lines[1] == " 2. real generator audit: not run"
    assert lines[17] == "18. csrf, object access: not run"
    assert lines[20].endswith("other sentences of the design: 1 passed")
