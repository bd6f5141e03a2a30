"""No function of the client uses more than its list allows."""

from __future__ import annotations

import pytest

from survey.audit.access import (
    check_access,
    current_access,
    format_access,
    list_file,
    module_failures,
    read_access,
)
from survey.audit.bundled_modules import unbundle
from survey.respond.bundle import join
from survey.respond.client import INDEX, Client, source_files
from survey.respondent_texts import device_texts

SERVED, MODULES = Client.load().files, unbundle(Client.load().files)

LINK = b"const TEST_RUN_PREFIX"
"""The start of a statement in `link.js`, where each case below adds its own."""

NEVER_ALLOWED = {
    "an import at run time": ("import('./random.js');", "the syntax import"),
    "the module's address": ("const here = import.meta.url;", "meta property"),
    "a label": ("here: for (;;) break here;", "labeled statement"),
    "a computed key": ("const x = { ['a' + 'b']: 1 };", "computed property name"),
    "a constructor of an object": ("const x = (() => {}).constructor;", ".constructor"),
    "a constructor by destructuring": ("const { constructor: x } = [];", ".constructor"),
    "a constructor by its name as text": ("const x = []['constructor'];", "constructor"),
    "a prototype in an object": ("const x = { __proto__: null };", "__proto__"),
    "a setter": ("const x = { set a(b) {} };", "the word set"),
    "a generator": ("function* x() { yield 1; }", "generator"),
    "a name with escapes": (r"const x = f\u0065tch;", r"f\u0065tch"),
    "a tagged template": ("const x = TOKEN`a`;", "a tagged template"),
    "an import under another name": (
        "import { drawBytes as x } from './random.js';",
        "under another name",
    ),
    "a comment in the style of HTML": ("<!-- const x = 1;\n", "html comment"),
    "a line end of another script": ("const x = 1; //\u2028fetch(x)\n", "u2028"),
    "unreadable text": ("const = 1;", "not readable"),
}

NOT_LISTED = {
    "a browser's name": ("const x = Date;", "x may not use Date"),
    "the type of a name": ("const x = typeof process;", "process"),
    "a name that another block declares": (
        "const x = () => { { let fetch; } return fetch; };",
        "x may not use fetch",
    ),
    "a default value outside the body": (
        "const x = (a = navigator) => { const navigator = a; };",
        "x may not use navigator",
    ),
    "a member": ("const x = TOKEN.source;", "x may not use .source"),
    "a destructured member": ("const { source } = TOKEN;", ".source"),
    "a member in a parameter": ("const x = ({ a: { b } }) => b;", "x may not use .a"),
    "a computed member": ("const x = (a, b) => a[b];", "x may not use []"),
    "a key of an object": ("const x = { onerror: 1 };", "x may not use onerror:"),
    "a text": ("const x = '/leak';", 'x may not use "/leak"'),
    "a text in a template": ("const x = `/leak${1}`;", 'x may not use "/leak"'),
    "an import": (
        "import { drawBytes } from './random.js';",
        "(module) may not use ./random.js:drawBytes",
    ),
    "a loop": ("const x = (n) => { while (n) n -= 1; };", "x may not use loop"),
    "a power": ("const x = (n) => n ** n;", "x may not use power"),
    "a shift": ("const x = (n) => { n <<= 9n; };", "x may not use shift"),
    "a default in an array": ("const [x = 7n] = [];", "(module) may not use default"),
    "a default of a parameter": ("const x = (n = 7n) => n;", "x may not use default"),
    "a default in an object": ("const x = ({ slug = 7n }) => slug;", "x may not use default"),
    "an optional call": ("const x = (n) => n?.(7n);", "x may not use ?."),
    "a number": ("const x = (n) => n;\nx(99);", "(module) may not use 99"),
    "a large number": ("const x = 1_000n;", "x may not use 1000n"),
    "an infinite number": ("const x = 1e999;", "x may not use inf"),
    "a very long number": (f"const x = {'1' * 5_000}n;", "x may not use 1111"),
    "a comparison": ("const x = (a, b) => a > b;", "x may not use >"),
    "a branch": ("const x = (a, b) => a && b();", "x may not use branch"),
    "a calculation": ("const x = (a, b) => a * b;", "x may not use product"),
    "a change of a variable": ("const x = (a) => { a += a; };", "x may not use +="),
    "one more call": ("const x = (a) => { a(); };", "x may not use call"),
    "the key of a text": ('const x = "sent.warning";', 'x may not use "sent.warning"'),
    "a boolean": ("const x = !0;", "x may not use true"),
}


def failures(source: str) -> str:
    """Return the details of failed checks of a client whose `link.js` begins with a statement."""
    return "\n".join(module_failures({**MODULES, "link.js": source.encode() + MODULES["link.js"]}))


def with_module(name: str, source: bytes) -> dict[str, bytes]:
    """Return the served files of a client with one module replaced."""
    return join({**MODULES, name: source})


def test_the_client_passes_as_it_is_served_and_as_it_is_written():
    (check,) = check_access(SERVED)
    assert check.ok, check
    assert module_failures(source_files()) == []


def test_the_list_is_the_one_that_the_command_writes():
    text = list_file().read_text(encoding="utf-8")
    assert text == format_access(current_access()), (
        "run `python -m survey.audit.access` and review the diff"
    )
    assert read_access(text) == current_access()


def test_few_numbers_of_uses_depend_on_the_minifier():
    fewest, most = current_access()
    assert sum(fewest[key] != most[key] for key in most) < len(most) / 200


@pytest.mark.web
@pytest.mark.security
@pytest.mark.parametrize("table", [NEVER_ALLOWED, NOT_LISTED])
def test_a_function_that_touches_more_fails_by_module_position_and_name(table):
    for case, (source, reason) in table.items():
        detail = failures(source)
        assert reason in detail, (case, detail)
        assert detail.startswith("link.js:"), (case, detail)
    assert ("never allowed" in detail) == (table is NEVER_ALLOWED)


@pytest.mark.security
def test_one_more_use_of_a_listed_name_fails():
    source = MODULES["main.js"].replace(
        b"history.replaceState(", b"history.replaceState(),history.replaceState("
    )
    (check, *_) = check_access(with_module("main.js", source))
    assert "removeInvitation may not use history more than 1 times" in check.detail


@pytest.mark.security
@pytest.mark.parametrize(
    ("module", "old", "new", "reasons"),
    [
        (
            "main.js",
            '"hashchange"',
            '"pageshow"',
            ['(module) must use "hashchange" 1 times, not 0'],
        ),
        ("outbox.js", "9999", "9998", ["MAX_SURVEYS may not use 9998", "must use 9999"]),
        (
            "transport.js",
            "===201",
            "!==201",
            ["readOutcome may not use !=", "readOutcome must use =="],
        ),
    ],
)
def test_one_use_less_of_a_listed_name_fails(module, old, new, reasons):
    source = MODULES[module].decode()
    assert old in source
    checks = check_access(with_module(module, source.replace(old, new, 1).encode()))
    details = "\n".join(check.detail for check in checks)
    assert all(reason in details for reason in reasons), details


@pytest.mark.security
def test_an_unknown_and_a_missing_module_fail():
    for name in ("extra.js", "extra.json", "words.xx.json", "x.html"):
        unknown = check_access({**SERVED, name: b"export const a = 1;"})
        assert [check.detail for check in unknown] == [f"{name}: not a file of the client"]
    missing = module_failures({name: MODULES[name] for name in MODULES if name != "random.js"})
    assert missing == ["random.js: missing"]


@pytest.mark.security
def test_a_style_that_could_make_a_request_fails():
    for rule in ("a{background:url(/s/x)}", "@import '/x';", r"a{b:u\72l(/x)}"):
        style = SERVED["respond.css"] + rule.encode()
        (check,) = check_access({**SERVED, "respond.css": style})
        assert "could make a request" in check.detail


@pytest.mark.security
def test_a_style_in_another_encoding_fails():
    # Browsers obey a byte order mark, whatever encoding the headers state.
    style = f"\ufeff{SERVED['respond.css'].decode()}:checked{{background:url(/s/x)}}"
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        (check,) = check_access({**SERVED, "respond.css": style.encode(encoding)})
        assert check.detail == "respond.css: not in ASCII"


ICONS = {
    "a script": ("</svg>", "<script>f()</script></svg>", "<script>"),
    "an event": ('rx="8"', 'onload="f()"', "onload"),
    "an address": ('rx="8"', 'href="#a"', "href"),
    "an old address": ('rx="8"', 'xlink:href="#a"', "xlink"),
    "HTML": ("</svg>", "<foreignObject/></svg>", "<foreignObject"),
    "a style": ("</svg>", "<style>@import '/x'</style></svg>", "<style>"),
    "a style of an element": ('rx="8"', 'style="fill:url(/x)"', "style="),
    "an address as a color": ('fill="#fff"', 'fill="url(/x)"', "url(/x)"),
    "an entity": ("<svg ", '<!DOCTYPE svg [<!ENTITY a "b">]><svg ', "<!DOCTYPE"),
    "a reference to an entity": ("Survey", "&#83;", "&#83;"),
    "another namespace": ("2000/svg", "1999/xhtml", "xhtml"),
}


@pytest.mark.security
@pytest.mark.parametrize("case", ICONS)
def test_an_icon_may_contain_only_shapes(case):
    old, new, reason = ICONS[case]
    icon = SERVED["favicon.svg"].decode()
    assert old in icon
    (check,) = check_access({**SERVED, "favicon.svg": icon.replace(old, new, 1).encode()})
    assert check.detail.startswith("favicon.svg:1:"), check
    assert reason in check.detail, check


@pytest.mark.security
def test_texts_must_be_those_of_this_installation():
    texts = device_texts("pt").decode()
    for altered, reason in (
        (texts.replace("resposta", "aposta", 1), "aposta"),
        ("{}", "not a list of"),
        ("", "not a list of"),
        ("[" * 10_000, "not a list of"),
        (texts.replace(',"', ',"another","', 1), "not a list of"),
        (texts + " ", "another spelling"),
    ):
        (check,) = check_access({**SERVED, "words.pt.json": altered.encode()})
        assert check.detail.startswith("words.pt.json: "), check
        assert reason in check.detail, check


@pytest.mark.security
@pytest.mark.parametrize("collector", ["", "https://collector.example"])
def test_a_page_must_follow_from_its_files_and_collector(collector):
    page = Client.load(collector).page
    (check,) = check_access({**SERVED, INDEX: page}, collector)
    assert check.ok, check
    (check,) = check_access({**SERVED, INDEX: page}, "https://other.example")
    assert check.detail.startswith("index.html:"), check
    (check,) = check_access({**SERVED, INDEX: page.replace(b"</body>", b"<p></body>")}, collector)
    assert "<p></body>" in check.detail
    # A verification may load only the texts that the survey needs.
    some = {name: SERVED[name] for name in SERVED if name != "words.ar.json"}
    (check,) = check_access({**some, INDEX: page}, collector)
    assert check.ok, check
