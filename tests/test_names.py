"""Names in `survey` and in the tests: nouns and standard terms, as CONTRIBUTING describes them.

`python -m tests.test_names` prints the modules, lines, imports and vague names of each package, and
the files outside `questionnaire/kinds` that name a question type.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "survey"

MAX_VAGUE_PER_1000 = 12

VAGUE_WORDS = (
    "asked begun both bought broken brought built called chosen come compared counted done "
    "drawn each few found given gone grown heard held here hidden its joined kept known least "
    "left lost made many meant more most moved much named needed offered one other others own "
    "paid put rest read said same seen sent several shown some spoken stuff taken that them "
    "there these they thing things this those thought told tried turned used waited waiting "
    "wanted what which who whose worn written "
)
"""Names that leave a reader to guess what they stand for."""

PARTICIPLE = re.compile(r".*(?:ed|ing)")
VAGUE = frozenset(VAGUE_WORDS.split())

IRREGULAR = VAGUE | {"across", "alone", "whole"}
NOUNS = frozenset(
    [
        "accounting",
        "counting",
        "debiasing",
        "fitting",
        "loading",
        "planning",
        "poisoning",
        "raking",
        "ranking",
        "sampling",
        "weighting",
        "wording",
    ]
)
"""Names of modules that end like a participle and are nouns."""


def bindings(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a module binds: functions, classes, parameters, variables, fields."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr
            case ast.ExceptHandler(name=str(name)):
                yield name


def is_vague(name: str) -> bool:
    return name.strip("_").lower() in VAGUE


def is_participle(stem: str) -> bool:
    """Tell whether a module's name is, or ends in, a bare participle or pronoun."""
    word = stem.rpartition("_")[2]
    return word in IRREGULAR or (bool(PARTICIPLE.fullmatch(word)) and word not in NOUNS)


def modules(folder: Path = PACKAGE) -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(folder.rglob("*.py"))}


def package_of(path: Path) -> str:
    """Return the package of `survey` that a module belongs to."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "(top level)"


def imports(tree: ast.AST) -> set[Path]:
    """Return the paths below `survey` that a module imports names from, in any line."""
    paths = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("survey."):
            origin = ROOT.joinpath(*node.module.split("."))
            for alias in node.names:
                files = (
                    file
                    for path in (origin / alias.name, origin)
                    for file in (path / "__init__.py", path.with_suffix(".py"))
                )
                paths.add(next(file for file in files if file.exists()))
    return paths


@pytest.mark.web
def test_few_names_are_vague():
    for folder in (PACKAGE, ROOT / "tests"):
        names = [name for tree in modules(folder).values() for name in bindings(tree)]
        vague = Counter(name for name in names if is_vague(name))
        rate = 1000 * vague.total() / len(names)
        assert rate <= MAX_VAGUE_PER_1000, (folder.name, vague.most_common(20))


def test_no_module_is_named_after_a_bare_participle():
    stems = {path.stem: path for path in PACKAGE.rglob("*.py")}
    assert [str(path) for stem, path in stems.items() if is_participle(stem)] == []


@pytest.mark.web
def test_no_modules_import_each_other_in_a_circle():
    """Imports of types alone count too: a reader of one module has to read the other."""
    graph = {path: imports(tree) for path, tree in modules().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(str(path.relative_to(PACKAGE)) for path in error.args[1]))


def test_vague_names_and_participles_are_recognized():
    source = "def kept(told):\n    for each in told:\n        self._found = each\n"
    assert [name for name in bindings(ast.parse(source)) if is_vague(name)] == [
        "kept",
        "told",
        "each",
        "_found",
    ]
    assert all(map(is_participle, ["compared", "asking", "filled_in_forms_kept", "kept"]))
    assert not any(map(is_participle, ["weighting", "crosstab", "settings", "planning"]))


def report() -> None:
    """Print modules, lines, imports and vague names of each package."""
    from tests.questionnaire.test_kinds import NAMING

    counts: dict[str, Counter[str]] = {}
    vague: dict[str, Counter[str]] = {}
    for path, tree in modules().items():
        package = package_of(path)
        count = counts.setdefault(package, Counter())
        count["modules"] += 1
        count["lines"] += len(path.read_text("utf-8").splitlines())
        inside = Counter(package_of(target) == package for target in imports(tree))
        count["inside"] += inside[True]
        count["outside"] += inside[False]
        names = list(bindings(tree))
        count["names"] += len(names)
        vague.setdefault(package, Counter()).update(name for name in names if is_vague(name))
    print(
        f"{'package':15} {'modules':>7} {'lines':>7} {'imports inside':>14} {'from others':>11} "
        f"{'names':>7} {'vague per 1,000':>15}"
    )
    for package, count in [*sorted(counts.items()), ("total", sum(counts.values(), Counter()))]:
        words = vague.get(package, sum(vague.values(), Counter()))
        rate = 1000 * words.total() / count["names"]
        most = ", ".join(f"{name} {n}" for name, n in words.most_common(6))
        print(
            f"{package:15} {count['modules']:7,} {count['lines']:7,} {count['inside']:14,} "
            f"{count['outside']:11,} {count['names']:7,} {rate:15.1f}  {most}"
        )
    print(f"{len(NAMING)} files name a question type outside questionnaire/kinds:", *sorted(NAMING))


if __name__ == "__main__":
    sys.exit(report())
