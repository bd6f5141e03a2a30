"""Bundles: the modules of the respondents' page, joined into one file per script of the page.

A bundle contains the text of each module without its imports:

    import{say}from"./opening.js";
    ;//answers.js
    export class UnansweredError ...
    ;//main.js
    ...

The first line imports the names that the modules use from earlier bundles; it may be empty. Then
each module has two lines, its name and its text. The modules are in the order in which browsers run
them. `survey/audit/bundled_modules.py` does the reverse: it turns the names that a module uses from
others into imports.

All modules of a bundle share one scope. They behave like separate modules, because

- no two of them declare the same name, and none declares a name that another one uses without
  importing it, such as a name of the browser (`survey/audit/bundled_modules.py` checks this);
- an imported name is the exporting module's own variable, so it always has the newest value, and no
  module assigns to a name that it imports (that module checks this, too);
- a module runs after the modules that it imports. If imports form a cycle, the module that is
  reached first runs last, as in browsers; functions are available from the start in both forms;
- both forms run in strict mode. The semicolon before each name ends the statement above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from survey.errors import SurveyError

PAGES = (("opening.js", "main.js"), ("fieldwork.js",))
"""The scripts of each page, in the order in which the page runs them.

A script contains the module with its name and every module that this one imports, directly or
indirectly, unless an earlier script of the page contains it. A module that no script imports
remains a separate file.
"""

IMPORT = rb'import\{[\w$,]+\}from"\./[\w-]+\.js";'
IMPORTS = re.compile(rb"(?:%b)+" % IMPORT)
IMPORTED = re.compile(rb'import\{([\w$,]+)\}from"\./([\w-]+\.js)";')
LINE_END = re.compile(rb"[\r\n]|\xe2\x80[\xa8\xa9]")


class BundleError(SurveyError):
    """Modules that cannot form a bundle, or a file that is not the bundle of its modules."""


def imports_of(module: bytes) -> dict[str, list[str]]:
    """Return the names that a minified module imports, by the module that exports them."""
    names: dict[str, list[str]] = {}
    imports = IMPORTS.match(module)
    for match in IMPORTED.finditer(imports[0] if imports else b""):
        # If an import has several lines, the minifier leaves a comma after the last name.
        imported_names = match[1].decode().removesuffix(",").split(",")
        names.setdefault(match[2].decode(), []).extend(imported_names)
    return names


def import_of(exporter: str, names: Iterable[str]) -> bytes:
    """Return the minified import of some names.

    >>> import_of("texts.js", {"say", "count"})
    b'import{count,say}from"./texts.js";'
    """
    return f'import{{{",".join(sorted(names))}}}from"./{exporter}";'.encode()


def contents(modules: Mapping[str, bytes], scripts: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the modules in each script, in the order in which browsers run them."""
    order: dict[str, list[str]] = {}
    visited: set[str] = set()

    def visit(name: str, script: str) -> None:
        if name in visited or name not in modules:
            return
        visited.add(name)
        for imported in sorted(imports_of(modules[name])):
            visit(imported, script)
        order[script].append(name)

    for script in scripts:
        order[script] = []
        visit(script, script)
    return order


def join(files: Mapping[str, bytes], pages: Sequence[Sequence[str]] = PAGES) -> dict[str, bytes]:
    """Return the files, with the minified modules of each page joined into its scripts.

    Other files, and modules that no page imports, are unchanged. Raises BundleError if a module
    has more than one line.
    """
    bundles: dict[str, bytes] = {}
    bundled_names: set[str] = set()
    for scripts in pages:
        order = contents(files, scripts)
        script_of = {name: script for script, names in order.items() for name in names}
        for script, names in order.items():
            if not names:
                continue
            bundle = _bundle(files, names, script_of)
            if bundles.setdefault(script, bundle) != bundle:
                raise BundleError(f"{script} contains different modules on another page")
            bundled_names.update(names)
    other_files = {name: content for name, content in files.items() if name not in bundled_names}
    return dict(sorted({**other_files, **bundles}.items()))


def _bundle(files: Mapping[str, bytes], names: list[str], script_of: Mapping[str, str]) -> bytes:
    own_script = script_of[names[-1]]
    imported: dict[str, set[str]] = {}
    lines = []
    for name in names:
        if LINE_END.search(files[name]):
            raise BundleError(f"{name} must be minified to one line")
        for exporter, exported in imports_of(files[name]).items():
            script = script_of.get(exporter, exporter)
            if script != own_script:
                imported.setdefault(script, set()).update(exported)
        imports = IMPORTS.match(files[name])
        lines += [b";//" + name.encode(), files[name][imports.end() if imports else 0 :]]
    first = b"".join(
        import_of(script, imported[script])
        for script in dict.fromkeys(script_of.values())
        if script in imported
    )
    return b"\n".join([first, *lines])
