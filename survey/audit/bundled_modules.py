"""Static check that files with several modules contain only these, and that none affects another.

The modules of a file share one scope, without import statements: a module uses a name that another
one exports. `unbundle` returns each module with the imports that its names imply, so that all
other checks see separate modules. The modules of a file behave like separate ones if

- no two of them declare the same name,
- none declares a name that another one uses without an import, such as a name of the browser,
- every import has an export,
- and nothing assigns to an imported name, which browsers prevent only between files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from survey.audit.javascript import Module, parse_module
from survey.respond.bundle import PAGES, BundleError, contents, import_of, imports_of, join

MARKER = re.compile(rb";//([\w-]+\.js)")

EXCERPT = 60
"""Maximum length of quotations in messages."""


def split(script: str, bundle: bytes) -> dict[str, bytes]:
    """Return the modules of a bundle without their imports.

    Raises BundleError, with the position, if the lines of names and texts do not alternate.
    """
    lines = bundle.split(b"\n")
    modules: dict[str, bytes] = {}
    last = "the imports"
    for row in range(1, len(lines), 2):
        marker = MARKER.fullmatch(lines[row])
        if marker is None or row + 1 == len(lines):
            raise BundleError(
                f"{script}:{row + 1}:1: after {last}, only the name of a module may follow, "
                f"not {_excerpt(lines[row])}"
            )
        last = marker[1].decode()
        if last in modules:
            raise BundleError(f"{script}:{row + 1}:1: the file contains {last} twice")
        modules[last] = lines[row + 1]
    return modules


def unbundle(
    files: Mapping[str, bytes], pages: Sequence[Sequence[str]] = PAGES
) -> dict[str, bytes]:
    """Return the served files with each bundle replaced by its modules, with their imports.

    Raises BundleError if a script of a page does not have the form of a bundle, or if a module
    differs between two scripts.
    """
    scripts = {name for page in pages for name in page if name in files}
    modules: dict[str, bytes] = {}
    for page in pages:
        texts: dict[str, bytes] = {}
        for script in page:
            texts |= split(script, files[script]) if script in files else {}
        for name, module in _with_imports(texts).items():
            if modules.setdefault(name, module) != module:
                raise BundleError(f"{page[-1]}: {name} differs from the copy in another script")
    other_files = {name: content for name, content in files.items() if name not in scripts}
    if duplicate := next((name for name in modules if name in other_files), None):
        raise BundleError(f"{duplicate}: is both a file and part of another file")
    return other_files | modules


def _with_imports(texts: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the modules of a page, each with imports of the names that it uses from others."""
    exporters = {
        exported: name for name, text in texts.items() for exported in parse_module(text).exported
    }
    modules = {}
    for name, text in texts.items():
        imports: dict[str, set[str]] = {}
        for use in parse_module(text).uses:
            exporter = exporters.get(use.name, name) if use.kind == "browser" else name
            if exporter != name:
                imports.setdefault(exporter, set()).add(use.name)
        modules[name] = b"".join(import_of(names, imports[names]) for names in sorted(imports))
        modules[name] += text
    return modules


def difference(files: Mapping[str, bytes], modules: Mapping[str, bytes]) -> str:
    """Describe the first difference between the files and their modules' bundles; "" if none."""
    expected = join(modules)
    for script in chain.from_iterable(PAGES):
        if script in files and files[script] != expected.get(script):
            return _first_difference(script, files[script], expected.get(script, b""))
    return ""


def _first_difference(script: str, bundle: bytes, expected: bytes) -> str:
    lines = bundle.split(b"\n"), expected.split(b"\n")
    length = max(map(len, lines))
    rows = [part + [b""] * (length - len(part)) for part in lines]
    row = next(
        i
        for i, (line, expected_line) in enumerate(zip(*rows, strict=True))
        if line != expected_line
    )
    line, expected_line = rows[0][row], rows[1][row]
    pairs = zip(line, expected_line, strict=False)
    column = next(
        (i for i, (a, b) in enumerate(pairs) if a != b), min(len(line), len(expected_line))
    )
    place = "in the imports" if row == 0 else "at the name of a module"
    change = f"{_excerpt(line[column:])} instead of {_excerpt(expected_line[column:])}"
    return f"{script}:{row + 1}:{column + 1}: {place}: {change}"


def _excerpt(text: bytes) -> str:
    return repr(text[:EXCERPT].decode("utf-8", "replace")) if text else "nothing"


def scope_conflicts(modules: Mapping[str, bytes]) -> list[str]:
    """Describe, with its position, each case in which a module of a page affects another one.

    `modules` are minified, each with its own imports.
    """
    failures: dict[str, None] = {}
    for scripts in PAGES:
        names = chain.from_iterable(contents(modules, scripts).values())
        failures |= dict.fromkeys(_conflicts({name: modules[name] for name in names}))
    return [*failures]


def _conflicts(modules: Mapping[str, bytes]) -> Iterator[str]:
    parsed = {name: parse_module(source) for name, source in modules.items()}
    owner: dict[str, str] = {}
    for name, module in parsed.items():
        for declared in sorted(module.declared):
            if declared in owner:
                yield f"{name}: {declared} is also declared in {owner[declared]}; rename one"
            owner.setdefault(declared, name)
    for name, module in parsed.items():
        yield from _wrong_imports(name, modules[name], parsed)
        for use in module.uses:
            if use.kind == "browser" and owner.get(use.name, name) != name:
                yield (
                    f"{name}:{use.row}:{use.column}: {use.function} uses {use.name} without an "
                    f"import, but {owner[use.name]} declares that name; rename it there"
                )
        for use in module.assignments:
            if use.name in module.imported:
                yield (
                    f"{name}:{use.row}:{use.column}: {use.function} assigns to {use.name}, "
                    "which it imports"
                )


def _wrong_imports(name: str, source: bytes, parsed: Mapping[str, Module]) -> Iterator[str]:
    imports = imports_of(source)
    if sorted(chain.from_iterable(imports.values())) != sorted(parsed[name].imported):
        yield f"{name}: an import is repeated, or is not at the start of the module"
    for exporter, names in imports.items():
        if exporter not in parsed:
            yield f"{name}: imports {exporter}, which is not a module of the page"
            continue
        for imported in names:
            if imported not in parsed[exporter].exported:
                yield f"{name}: imports {imported}, which {exporter} does not export"
