"""The handbook: complete, generated where it repeats code, linked, searchable and open to all."""

from __future__ import annotations

import re
from pathlib import Path

import click

from survey import handbook, methods
from survey.cli import main as command_line
from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.kinds import WRITTEN_KINDS
from survey.research.handbook import HELP
from tests.conftest import ROOT
from tests.handbook import write
from tests.handbook.drawings import DRAWINGS
from tests.web.researchers import sign_in

FILES = sorted(file for file in handbook.FOLDER.rglob("*.md") if file.parent.name != "handbook")
LINKING = [
    *handbook.FOLDER.rglob("*.md"),
    *(ROOT / name for name in ("README.md", "deploy/README.md", "client_js/README.md")),
    *(ROOT / ".github").glob("*.md"),
]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", re.M)
OWN = re.compile(
    r"https://(?:github|raw\.githubusercontent)\.com/ldp-survey/ldp-survey/(?:blob/)?main/"
)
"""Addresses of this repository: the README's links also work on PyPI."""


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`|^    .*$", "", text, flags=re.S | re.M)


def test_the_table_of_contents_names_every_page():
    names = {str(file.relative_to(handbook.FOLDER).with_suffix("")) for file in FILES}
    assert set(handbook.pages()) == names | {"changelog", "methods"}


def test_every_page_begins_with_the_title_that_the_table_of_contents_gives():
    for name, page in handbook.pages().items():
        if name == "methods":
            assert all(section.anchor in page.html for section in page.sections)
            continue
        text = (handbook.FOLDER / f"{name}.md").read_text(encoding="utf-8")
        assert text.replace("'", "’").startswith(f"# {page.title}\n"), name


def test_generated_parts_and_drawings_are_up_to_date():
    for file in handbook.FOLDER.rglob("*.md"):
        text = file.read_text(encoding="utf-8")
        assert write.written(text) == text, f"{file}: run python -m tests.handbook.write"
    for name, drawing in DRAWINGS.items():
        committed = (handbook.FOLDER / "pictures" / name).read_text(encoding="utf-8")
        assert committed == drawing, f"{name}: run python -m tests.handbook.write"


def test_every_generated_part_is_on_a_page():
    texts = "".join(file.read_text(encoding="utf-8") for file in FILES)
    assert {name for _, name, _ in write.MARKED.findall(texts)} == set(write.PARTS)


def test_the_reference_explains_every_question_type_and_mechanism():
    text = (handbook.FOLDER / "reference/question-types.md").read_text(encoding="utf-8")
    for heading, expected in (("", set(WRITTEN_KINDS)), ("## Mechanisms", set(DESIGNS))):
        section = text.split(heading)[-1] if heading else text
        rows = re.search(r"^\|---.*?\n(.*?)\n\n", f"{section}\n", re.S | re.M)[1].splitlines()
        documented = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
        assert documented == expected


def anchors(file: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", file.read_text(encoding="utf-8"), flags=re.S)
    headings = re.findall(r"^#+ (.+?)\s*$", text, re.M)
    return {handbook.anchor(heading.replace("`", "").replace("*", "")) for heading in headings}


COMMAND = re.compile(r"(?:^    |`)(survey [a-z][^`\n]*)`?", re.M)


def test_every_command_in_the_documentation_exists_with_its_options():
    texts = [*LINKING, ROOT / "survey/cli/new_survey.toml"]
    n_commands = 0
    for file in texts:
        text = file.read_text(encoding="utf-8")
        for line in re.split(r"\n| && ", "\n".join(COMMAND.findall(text))):
            if not line.startswith("survey "):
                continue
            name, options = known_command(line.split())
            n_commands += 1
            assert name, f"{file.relative_to(ROOT)}: {line}"
            used = re.findall(r"(?<=\s)--?[a-z][a-z-]*", line.partition("#")[0].partition("|")[0])
            assert set(used) <= options, f"{file.relative_to(ROOT)}: {line}"
    assert n_commands > 100


def known_command(words: list[str]) -> tuple[str, set[str]]:
    """Return the name of a command and its options; "" if there is none."""
    command, context = command_line, click.Context(command_line)
    for i, word in enumerate(words[1:]):
        if not isinstance(command, click.Group):
            break
        command = command.get_command(context, word.rstrip(".,;:)")) or click.Command("")
        words = words[: i + 2] if command.name else []
    options = {name for part in command.params for name in getattr(part, "opts", [])}
    return (command.name or ""), options | {"--help", "--version"}


def test_every_link_between_documents_leads_somewhere():
    n_links = 0
    for file in LINKING:
        for link in LINK.findall(without_code(file.read_text(encoding="utf-8"))):
            target = OWN.sub(f"{ROOT}/", "".join(link))
            path, _, fragment = target.partition("#")
            if re.match(r"[a-z]+:", target):
                assert target.startswith("https://"), f"{file}: {target}"
                continue
            linked = (file.parent / path).resolve() if path else file
            assert linked.exists(), f"{file.relative_to(ROOT)} links to {target}"
            if fragment:
                assert fragment in anchors(linked), f"{file.relative_to(ROOT)} links to {target}"
            n_links += 1
    assert n_links > 50


def test_links_become_addresses_of_the_application_and_html_becomes_text():
    for page in handbook.pages().values():
        assert not re.search(r'(href|src)="(?!/handbook/|https://|#)', page.html), page.name
    assert 'href="/handbook/explanation/trust"' in handbook.page("how-to/data-protection").html
    assert "<script>" not in handbook.render("A <script>alert()</script>.", "x.md")


def test_every_page_and_every_link_within_the_handbook_opens_without_an_account(app):
    client = app.test_client()
    targets = {page.address for page in handbook.pages().values()}
    for page in handbook.pages().values():
        targets |= set(re.findall(r'(?:href|src)="(/handbook[^"#]*)', page.html))
    assert any(target.endswith(".R") for target in targets)
    for target in targets:
        assert client.get(target).status_code == 200, target
    contents = client.get("/handbook").get_data(as_text=True)
    assert all(f'href="{page.address}"' in contents for page in handbook.pages().values())
    notebook = client.get("/handbook/tutorial/analysis.ipynb")
    assert notebook.mimetype == "application/x-ipynb+json"


def test_texts_are_filled_in_and_nothing_in_a_value_becomes_markup():
    values = {
        "FACTOR": "9",
        "BECOMES AT MOST THIS PERCENTAGE": "[x](https://evil.example) <b>*50*</b>\n# __%__ „स्थ“ –",
    }
    text = (handbook.FOLDER / "how-to/ethics.md").read_text(encoding="utf-8")
    conditions = dict.fromkeys(re.findall(r"^> IF ([A-Z ]+):", text, re.M), False)
    conditions["YOU USE INVITATIONS"] = True
    html = handbook.fill_in("how-to/ethics", values, conditions)
    assert "most <strong>9</strong>" in " ".join(html.split())
    assert (
        "<strong>[x](https://evil.example) &lt;b&gt;*50*&lt;/b&gt; # __%__ „स्थ“ –</strong>" in html
    )
    assert "list of invitations can find out" in html
    assert "Anybody who has the link" not in html
    assert " IF " not in html
    assert "FACTOR" not in html


def test_only_pages_and_their_files_are_served(app):
    client = app.test_client()
    for name in (
        "how-to/nothing",
        "pictures/no.svg",
        "__init__.py",
        "../version.py",
        "changelog.md",
    ):
        assert client.get(f"/handbook/{name}").status_code == 404, name
    assert client.get("/handbook/pictures/reports.svg").mimetype == "image/svg+xml"


def test_the_search_ranks_titles_before_headings_before_text():
    invitations = handbook.search("invitations")
    assert invitations[0].page.name == "how-to/invitations"
    assert handbook.search("metrics")[0].page.name == "reference/settings"
    found = handbook.search("survey_release_every")
    assert {match.page.name for match in found} >= {"reference/settings"}


def test_the_methods_are_open_to_all_readers_and_in_the_search(app):
    page = app.test_client().get("/handbook/methods").get_data(as_text=True)
    assert all(f'id="{anchor}"' in page for anchor in methods.sections())
    assert handbook.search("raking weights")[0].page.name == "methods"


def words_of(match: handbook.Match) -> str:
    return f"{match.page.title} {match.section.title} {match.section.text}".lower()


def test_the_search_finds_sections_with_all_words_by_their_beginnings():
    both = handbook.search("remind every")
    assert both
    assert all("remind" in words_of(match) and "every" in words_of(match) for match in both)
    assert handbook.search("how do I remind the people?") == handbook.search("remind people")


def test_the_search_falls_back_to_sections_with_most_words():
    assert handbook.search("zzz remind") == handbook.search("remind")
    assert handbook.search("zzz") == handbook.search("  ") == handbook.search("?!") == []
    pages = [match.page.name for match in handbook.search("analyse the data in R or SPSS")]
    assert "how-to/spss-stata-r" in pages
    assert all(re.search(r"\bR\b", words_of(m), re.I) for m in handbook.search("R"))


def test_the_search_shows_a_query_as_text(app):
    client = app.test_client()
    html = client.get("/handbook?q=<script>x").get_data(as_text=True)
    assert "<script>x" not in html
    assert "<mark>" in handbook.search("helpline")[0].excerpt
    assert client.get("/handbook?q=" + "a" * 5000).status_code == 200


def test_pages_link_to_the_handbook_where_it_explains_them(app, client, researcher):
    assert sign_in(client).status_code == 302
    endpoints = {rule.endpoint for rule in app.url_map.iter_rules()}
    blueprints = {endpoint.partition(".")[0] for endpoint in endpoints}
    for name, pages in HELP.items():
        assert name in endpoints | blueprints, name
        assert all(handbook.page(page) for page in pages)
    html = client.get("/research/account").get_data(as_text=True)
    assert 'href="/handbook/how-to/accounts"' in html
