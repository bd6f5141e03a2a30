"""Files with several modules contain exactly these modules, and none affects another."""

from __future__ import annotations

import pytest

from survey.audit.access import check_access
from survey.audit.bundled_modules import scope_conflicts, unbundle
from survey.respond.bundle import BundleError, contents, imports_of, join
from survey.respond.client import FIELD_MODULES, SCRIPTS, Client, minify_sources, source_files

SERVED, MODULES = Client.load().files, minify_sources(source_files())


RECEIVED = {name: SERVED[name] for name in SERVED if name not in FIELD_MODULES}
"""The files that a respondent receives; those of field mode repeat most of their modules."""


def details(script: str, bundle: bytes) -> str:
    return "\n".join(check.detail for check in check_access({**RECEIVED, script: bundle}))


def test_the_served_files_are_the_bundles_of_their_modules():
    assert join(MODULES) == SERVED
    modules = unbundle(SERVED)
    assert join(modules) == SERVED
    assert modules.keys() == MODULES.keys()
    for name in (name for name in MODULES if name.endswith(".js")):
        imports, found = imports_of(MODULES[name]), imports_of(modules[name])
        assert found == {exporter: sorted(imports[exporter]) for exporter in sorted(imports)}
        assert modules[name].endswith(MODULES[name].rpartition(b'.js";')[2]), name
    assert {"opening.js", "words.js"} <= {*contents(MODULES, SCRIPTS)["opening.js"]}


def test_a_module_that_differs_between_two_files_is_refused():
    altered = SERVED["main.js"].replace(b"MAX_SURVEYS=9999", b"MAX_SURVEYS=9998", 1)
    with pytest.raises(BundleError, match=r"outbox\.js differs from the copy in another script"):
        unbundle({**SERVED, "main.js": altered})


def test_modules_run_in_the_order_of_browsers_even_in_a_cycle():
    modules = {
        "opening.js": b"export let a=1;",
        "main.js": b'import{b}from"./b.js";import{a}from"./opening.js";b(a)',
        "b.js": b'import{c}from"./c.js";export function b(){c()}',
        "c.js": b'import{b}from"./b.js";export function c(){b}',
    }
    assert contents(modules, SCRIPTS) == {
        "opening.js": ["opening.js"],
        "main.js": ["c.js", "b.js", "main.js"],
    }
    assert join(modules)["main.js"].startswith(b'import{a}from"./opening.js";\n;//c.js\nexport ')


@pytest.mark.security
def test_code_outside_the_modules_fails_by_file_position_and_module():
    main = SERVED["main.js"]
    lines = main.split(b"\n")
    row = lines.index(b";//visit.js") + 1
    leak = b"fetch('/leak')"
    for bundle, where in (
        (main.replace(b";//visit.js", leak + b"\n;//visit.js"), f"main.js:{row}:1: after view-st"),
        (main.replace(b";//visit.js", leak + b";//visit.js"), f"main.js:{row}:1: after view-st"),
        (leak + main, "main.js:1:1: in the imports"),
        (main + b"\n" + leak, f"main.js:{len(lines) + 1}:1: after main.js"),
        (main.replace(b";//visit.js", b";//visits.js"), "visits.js: not a file of the client"),
        (main.replace(b"\n;//visit.js", b";" + leak + b"\n;//visit.js"), "may not use fetch"),
        (b"\n".join([lines[0], *lines[3:5], *lines[1:3], *lines[5:]]), "at the name of a module"),
    ):
        assert where in details("main.js", bundle), (bundle[:80], details("main.js", bundle))


@pytest.mark.security
def test_an_altered_byte_fails_by_module_position_and_name():
    for old, new in ((b"MAX_SURVEYS=9999", b"MAX_SURVEYS=9998"), (b"===201", b"!==201")):
        script = "main.js" if old in SERVED["main.js"] else "opening.js"
        text = details(script, SERVED[script].replace(old, new, 1))
        assert "may not use" in text
        assert text.startswith(("outbox.js:", "transport.js:")), text


@pytest.mark.security
@pytest.mark.parametrize(
    ("module", "code", "reason"),
    [
        ("dice.js", b"const loadDefinition=1;", "loadDefinition is also declared in"),
        ("dice.js", b"const location=1;", "location without an import, but dice.js declares"),
        ("dice.js", b"say=1;", "assigns to say, which it imports"),
        ("dice.js", b"for(say of[1]);", "assigns to say, which it imports"),
        ("dice.js", b"[{a:say}]=[];", "assigns to say, which it imports"),
        ("dice.js", b"makeReport();", "uses makeReport without an import"),
        ("dice.js", b';import{say}from"./texts.js";', "not at the start of the module"),
    ],
)
def test_modules_that_would_interfere_are_refused(module, code, reason):
    altered = {**MODULES, module: MODULES[module] + b";" + code}
    assert reason in "\n".join(scope_conflicts(altered))


def test_a_module_with_several_lines_or_without_an_export_is_refused():
    with pytest.raises(BundleError, match="one line"):
        join({**MODULES, "dice.js": b"a\nb"})
    missing = MODULES["dice.js"].replace(b"import{", b"import{missing,", 1)
    assert "does not export" in "\n".join(scope_conflicts({**MODULES, "dice.js": missing}))
