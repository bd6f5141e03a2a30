"""Names that each function of the client may use: a static check of the served modules.

`access.txt` is in the folder of the modules. For each top-level function, class and variable it
lists every name from outside: the browser's names, names of modules, members and texts, and also
numbers and operators, each with the number of its uses. The check compares the served bytes with
the list. It reports each additional use with its module, position and name, and each missing one.
`python -m survey.audit.access` regenerates the list; developers review the diff.

Local variables are not listed, because the minifier renames them, and neither is the order of
statements: simulated visits show what a client does with the same names in another order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from survey.audit import page_files
from survey.audit.bundled_modules import difference, scope_conflicts, unbundle
from survey.audit.javascript import KINDS, parse_module
from survey.audit.node import Check
from survey.respond.bundle import BundleError
from survey.respond.client import FIELD_INDEX, FIELD_SOURCES, PACKAGE, minify_sources, source_files

GROUP = "access"

FILE = "access.txt"

Key = tuple[str, str, str, str]
"""A module, one of its functions, a kind, and a name."""


class Access(NamedTuple):
    """The fewest and the most uses of each name in each function."""

    fewest: Counter[Key]
    most: Counter[Key]


def access_of(files: Mapping[str, bytes]) -> Counter[Key]:
    """Return the number of uses of each name in each function of each module."""
    return Counter(
        (module, use.function, use.kind, use.name)
        for module, source in sorted(files.items())
        if PurePath(module).suffix == ".js"
        for use in parse_module(source).uses
    )


def format_access(access: Access) -> str:
    """Format a list as the text of `access.txt`, with `*2` or `*1-2` for the number of uses."""
    table: dict[str, dict[str, dict[str, list[tuple[str, str]]]]] = {}
    for key, maximum in access.most.items():
        module, function, kind, name = key
        minimum = access.fewest[key]
        times = f"*{maximum}" if minimum == maximum else f"*{minimum}-{maximum}"
        kinds = table.setdefault(module, {}).setdefault(function, {kind: [] for kind in KINDS})
        kinds[kind].append((name, "" if times == "*1" else times))
    lines = []
    for module, functions in table.items():
        lines.append(f"\n[{module}]")
        for function, kinds in functions.items():
            lines.append(function)
            for kind, names in kinds.items():
                if names:
                    lines.append(f"  {kind} {' '.join(map(''.join, sorted(names)))}")
    return "\n".join(lines).lstrip("\n") + "\n"


ITEM = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s*]+)(?:\*(?:(\d+)-)?(\d+))?')


def read_access(text: str) -> Access:
    """Parse the text of `access.txt`."""
    access = Access(Counter(), Counter())
    module = function = ""
    for line in text.splitlines():
        if line.startswith("["):
            module = line.strip("[]")
        elif line.startswith("  "):
            kind, _, items = line.strip().partition(" ")
            for name, minimum, maximum in ITEM.findall(items):
                key = (module, function, kind, name)
                access.most[key] = int(maximum or 1)
                access.fewest[key] = int(minimum or maximum or 1)
        elif line:
            function = line
    return access


def list_file() -> Path:
    """Return the path of the list: in the checkout's source folder, or else in the package."""
    checkout = PACKAGE.parent / "client_js" / "src"
    folder = checkout if checkout.is_dir() else PACKAGE / "static" / "client"
    return folder / FILE


def check_access(files: Mapping[str, bytes], collector: str = "") -> list[Check]:
    """Check that each function of the served files uses exactly what the list contains.

    If the page is among the files, it must be the page for this `collector`. The files with several
    modules must contain nothing else, and their modules must not interfere with each other.
    """
    try:
        modules = unbundle(files)
    except BundleError as error:
        return _outcome([str(error)], {})
    failures = [
        *module_failures(modules),
        *scope_conflicts(modules),
        *page_files.failures(files, collector),
    ]
    # Compare the order last: it follows from the names, which are correct if there is no failure.
    if not failures and (order := difference(files, modules)):
        failures = [order]
    return _outcome(failures, modules)


def _outcome(failures: Sequence[str], files: Mapping[str, bytes]) -> list[Check]:
    if failures:
        return [Check(GROUP, failure.partition(": ")[0], False, failure) for failure in failures]
    n_modules = sum(PurePath(name).suffix == ".js" for name in files)
    n_uses = access_of(files).total()
    detail = f"{n_modules} modules use {n_uses:,} names, texts and operators, exactly as listed"
    return [Check(GROUP, "names, texts and operators", True, detail)]


def module_failures(files: Mapping[str, bytes]) -> list[str]:
    """Describe each difference between the modules, one per file, and the list."""
    listed = read_access(list_file().read_text(encoding="utf-8"))
    # The files include field mode only if they include its page.
    optional = () if FIELD_INDEX in files else FIELD_SOURCES
    modules = dict.fromkeys(module for module, *_ in listed.most)
    return [
        *(
            f"{n}: not a file of the client"
            for n in files
            if n not in {*modules, *page_files.NAMES}
        ),
        *(f"{name}: missing" for name in modules if name not in {*files, *optional}),
        *(text for name in modules if name in files for text in _excess(name, files[name], listed)),
        *_omissions(files, listed),
    ]


def _excess(module: str, source: bytes, listed: Access) -> Iterator[str]:
    """Describe each use in a module that its list does not allow, with its position."""
    parsed = parse_module(source)
    for reason, row, column in parsed.refusals:
        yield f"{module}:{row}:{column}: {reason} is never allowed"
    n_uses: Counter[Key] = Counter()
    # Names of the browser say most about what code does, so they come first.
    for kind, name, function, row, column in sorted(
        parsed.uses, key=lambda use: KINDS.index(use.kind)
    ):
        key = (module, function, kind, name)
        n_uses[key] += 1
        limit = listed.most[key]
        if n_uses[key] > limit:
            times = f"more than {limit} times " if limit else ""
            yield f"{module}:{row}:{column}: {function} may not use {name} {times}".rstrip()


def _omissions(files: Mapping[str, bytes], listed: Access) -> Iterator[str]:
    """Describe each use that is listed but missing, such as a check that was removed."""
    n_uses = access_of(files)
    unreadable = {
        name
        for name in files
        if PurePath(name).suffix == ".js" and parse_module(files[name]).refusals
    }
    for key, fewest in listed.fewest.items():
        module, function, _, name = key
        if module in files and module not in unreadable and n_uses[key] < fewest:
            n = n_uses[key]
            yield f"{module}: {function} must use {name} {fewest} times, not {n}"


def current_access() -> Access:
    """Return the list of this checkout: the numbers of uses in its served and source forms."""
    sources = source_files()
    served, source = access_of(minify_sources(sources)), access_of(sources)
    return Access(served & source, served | source)


if __name__ == "__main__":
    if reasons := scope_conflicts(minify_sources(source_files())):
        raise SystemExit("\n".join(reasons))
    list_file().write_text(format_access(current_access()), encoding="utf-8")
