"""The printable report and the methods: page, PDF and links from every number."""

from __future__ import annotations

import io
import re
import sys
from html import unescape

import pytest
from pypdf import PdfReader

from survey.collect.publication import publish
from survey.errors import MissingPartError
from survey.methods import sections, topics
from survey.questionnaire.loading import load
from survey.research.downloads import to_pdf
from survey.results.estimates.chart import share_bars
from survey.results.estimates.result import ResultCache
from survey.results.number_format import percent
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import SMALL, TODAY
from tests.surveys import EVERY_TYPE
from tests.web.researchers import sign_in

OF_SURVEY = "/research/surveys/small/1"

prints = pytest.mark.usefixtures("pango")


@pytest.fixture
def reader(client, researcher, store, small):
    add_released(store, small, 3000)
    assert sign_in(client).status_code == 302
    return client


@pytest.fixture(scope="session")
def pango() -> None:
    """Skip the test if Pango, which lays out PDFs, is missing."""
    try:
        import weasyprint  # noqa: F401
    except OSError:
        pytest.skip("no Pango on this machine (apt-get install libpango-1.0-0 libpangoft2-1.0-0)")


def text_of(page) -> str:
    """Return the text of a page without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.text)).split())


def pdf_and_text(answer) -> tuple[PdfReader, str]:
    assert answer.status_code == 200, answer.text
    pdf = PdfReader(io.BytesIO(answer.data))
    return pdf, " ".join(" ".join(page.extract_text() for page in pdf.pages).split())


def links(page) -> set[str]:
    return {unescape(address) for address in re.findall(r'href="([^"]+)"', page.text)}


def anchors(page) -> set[str]:
    return set(re.findall(r'id="([^"]+)"', page.text))


def test_every_researcher_can_read_the_methods(reader):
    page = reader.get("/research/methods")
    assert page.status_code == 200
    assert set(sections()) <= anchors(page)
    assert len(re.findall(r'id="', page.text)) == len(anchors(page))
    for topic in topics():
        for section in topic.sections:
            assert section.title in text_of(page)


def test_the_methods_of_a_survey_state_its_own_numbers(reader, store, small):
    page = reader.get(f"{OF_SURVEY}/methods")
    text = text_of(page)
    assert set(sections()) <= anchors(page)
    for phrase in ("0.7500", "0.1250", "1.792", "3,000 released reports", small.sha256):
        assert phrase in text
    first = ResultCache(store).result(small).questions[0].shares[0]
    assert f"= {first.estimate:.4f}" in text
    inside = {link[1:] for link in links(page) if link.startswith("#")} - {"main"}
    assert inside <= anchors(page)


@pytest.mark.parametrize("query", ["", "?level=0.9&simultaneous=1", "?target=respondents"])
def test_every_column_heading_links_to_an_existing_section(reader, query):
    page = reader.get(f"{OF_SURVEY}/questions/fell_asleep{query}")
    addresses = {link for link in links(page) if f"{OF_SURVEY}/methods" in link and "#" in link}
    assert {"share", "report-share", "answered"} <= {link.split("#")[1] for link in addresses}
    for link in addresses:
        path, _, anchor = link.partition("#")
        assert anchor in anchors(reader.get(path))
    method = "fixed-population" if query == "?target=respondents" else "feldman-cousins"
    assert any(link.endswith(f"#interval-{method}") for link in addresses)


def test_headings_of_means_medians_and_histograms_link_to_their_methods(reader, store):
    toml = EVERY_TYPE.replace('slug = "small"', 'slug = "every"')
    survey = publish(store, load(toml.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 3000)
    anchors = {
        link.split("#")[1]
        for question in survey.definition.questions
        for link in links(
            reader.get(f"/research/surveys/{survey.slug}/{survey.version}/questions/{question.id}")
        )
        if "/methods#" in link
    }
    assert {"mean", "histogram"} <= anchors
    assert anchors <= set(sections())


def test_a_cross_tabulation_links_to_its_methods(reader, small):
    first, second = (question.id for question in small.definition.questions)
    page = reader.get(f"/research/surveys/small/explore?first={first}&second={second}")
    addresses = {link.split("#")[1] for link in links(page) if "/methods" in link and "#" in link}
    assert {"crosstab", "independence"} <= addresses <= set(sections())


def test_the_dashboard_links_to_report_pdf_methods_and_microdata(reader):
    pdf = links(reader.get(OF_SURVEY))
    for name in ("report", "report.pdf", "methods", "microdata"):
        assert f"{OF_SURVEY}/{name}" in pdf


def test_the_report_has_the_dashboards_figures_and_the_methods(reader, store, small):
    page = reader.get(f"{OF_SURVEY}/report")
    text = text_of(page)
    for question in ResultCache(store).result(small).questions:
        assert question.question.text in text
        for row in question.shares:
            assert f"{row.option_label} {percent(row.estimate)} " in text
    for phrase in (small.sha256, "3,000 released reports", "p = 0.75", "epsilon = 1.792"):
        assert phrase in text
    # A bar in each row, and an axis below each table.
    widths = re.findall(r'<rect class="share[^"]*" width="([\d.]+)%"', page.text)
    questions = ResultCache(store).result(small).questions
    bars = [bar for part in questions for bar in share_bars(part, part.shares).bars]
    assert widths == [str(bar.dot) for bar in bars]
    assert page.text.count("<svg") == len(bars) + len(questions)


def test_a_report_uses_the_options_of_its_link(reader):
    page = reader.get(f"{OF_SURVEY}/report?level=0.9")
    assert "90% interval" in text_of(page)
    assert f"{OF_SURVEY}/report.pdf?level=0.9" in links(page)
    assert reader.get(f"{OF_SURVEY}/report?level=2").status_code == 422


@prints
@pytest.mark.web
def test_the_pdf_contains_the_text_of_the_page(reader, store, small):
    pdf, text = pdf_and_text(reader.get(f"{OF_SURVEY}/report.pdf"))
    for question in ResultCache(store).result(small).questions:
        assert question.question.text in text
        for row in question.shares:
            assert f"{row.option_label} {percent(row.estimate)}" in text
    assert small.sha256 in text.replace(" ", "")
    assert "3,000 released reports" in text
    assert f"1 / {len(pdf.pages)}" in text


@prints
@pytest.mark.web
def test_the_pdf_is_tagged_for_screen_readers(reader):
    """The PDF has tags, a language, a title and headings for navigation (PDF/UA)."""
    pdf, _ = pdf_and_text(reader.get(f"{OF_SURVEY}/report.pdf"))
    root = pdf.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"]
    assert root["/Lang"] == "en"
    assert "/StructTreeRoot" in root
    assert pdf.metadata.title == "A small survey: estimated results"
    assert len(pdf.outline) >= 1
    assert "pdfuaid:part" in root["/Metadata"].get_data().decode("utf-8")
    assert pdf.pages[0].mediabox.width == pytest.approx(595.28, abs=1)


WORD = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverleihung"
LONG_ANSWERS = (
    SMALL.replace("Never", "Nobody pressed me to stay longer than I had agreed to at any time")
    .replace("Once", "An answer that needs a whole sentence, as answers in real surveys often do")
    .replace("Often", WORD)
)
LONG_TYPES = EVERY_TYPE.replace("I was ill", WORD).replace(
    'unit = "hours"', f'unit = "{WORD[:40]}"'
)


@prints
@pytest.mark.web
@pytest.mark.parametrize("toml", [LONG_ANSWERS, LONG_TYPES], ids=["answers", "types"])
def test_no_table_of_the_pdf_runs_beyond_the_margin(client, researcher, store, monkeypatch, toml):
    import weasyprint

    def boxes_beyond(page: str, style: str) -> bytes:
        document = weasyprint.HTML(string=page).render(stylesheets=[weasyprint.CSS(string=style)])
        for sheet in document.pages:
            box = sheet._page_box
            edge = box.content_box_x() + box.width + 0.5
            beyond.extend(
                (cell.element_tag, getattr(cell, "text", ""))
                for cell in box.descendants()
                if right(cell) > edge
            )
        return b"%PDF"

    def right(box) -> float:
        return box.position_x + (box.width if isinstance(box.width, float) else 0)

    beyond: list[str] = []
    survey = publish(store, load(toml.encode(), "s.toml", Caps(survey=40)), TODAY)
    add_released(store, survey, 12_000)
    assert sign_in(client).status_code == 302
    monkeypatch.setattr("survey.research.downloads.to_pdf", boxes_beyond)
    assert client.get(f"{OF_SURVEY}/report.pdf").status_code == 200
    assert beyond == []


@prints
@pytest.mark.long
def test_no_question_is_split_between_two_pages(reader, store):
    pages = "\n".join(
        f"""
        [[pages.questions]]
        id = "q{i}"
        type = "yes_no"
        text = "Question number {i}?"
        truth_probability = "3/4"
        """
        for i in range(6)
    )
    toml = f'slug = "long"\ntitle = "Long"\n[[pages]]\n{pages}'
    survey = publish(store, load(toml.encode(), "s.toml", Caps(survey=40)), TODAY)
    add_released(store, survey, 500)
    pdf, _ = pdf_and_text(reader.get("/research/surveys/long/1/report.pdf"))
    texts = [" ".join(page.extract_text().split()) for page in pdf.pages]
    for number, question in enumerate(ResultCache(store).result(survey).questions, 1):
        begins = [text for text in texts if f"{number}. Question number" in text]
        assert begins
        assert question.remarks[-1] in begins[0].split(f"{number}. Question number")[1]
    assert len(texts) > 2


@prints
def test_the_report_suppresses_what_the_dashboard_suppresses(reader, store):
    survey = publish(
        store, load(SMALL.replace('"small"', '"few"').encode(), "s.toml", Caps()), TODAY
    )
    add_released(store, survey, 40)
    for name in ("report", "report.pdf"):
        response = reader.get(f"/research/surveys/few/1/{name}")
        text = text_of(response) if name == "report" else pdf_and_text(response)[1]
        assert "Not enough responses yet" in text
        assert "<svg" not in (response.text if name == "report" else "")
        assert "Feldman" not in text
        assert not re.search(r"\d% (interval|\d)", text.replace("95% intervals", ""))


@prints
def test_a_survey_without_releases_has_a_report(client, researcher, small):
    sign_in(client)
    page = client.get(f"{OF_SURVEY}/report")
    assert "0 released reports" in text_of(page)
    assert client.get(f"{OF_SURVEY}/report.pdf").status_code == 200


@prints
@pytest.mark.web
@pytest.mark.security
def test_the_texts_of_a_survey_neither_become_html_nor_cause_server_requests(reader, store):
    """An image in a title would tell its author whenever a researcher creates a report."""
    hostile = SMALL.replace('slug = "small"', 'slug = "hostile"').replace(
        'title = "A small survey"',
        "title = '<img src=\"http://127.0.0.1:9/x\"><script>1</script> A'",
    )
    survey = publish(store, load(hostile.encode(), "s.toml", Caps()), TODAY)
    page = reader.get(f"/research/surveys/{survey.slug}/1/report")
    assert "<img" not in page.text
    assert "<script" not in page.text
    _, text = pdf_and_text(reader.get(f"/research/surveys/{survey.slug}/1/report.pdf"))
    assert "<script>1</script>" in text


@prints
@pytest.mark.web
@pytest.mark.security
def test_a_pdf_loads_nothing_from_other_addresses(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret of the server", encoding="utf-8")
    page = (
        f'<html lang="en"><title>T</title><link rel="attachment" href="{secret.as_uri()}">'
        f'<p>Here</p><object data="{secret.as_uri()}"></object>'
        f'<img alt="none" src="{secret.as_uri()}"></html>'
    )
    pdf = to_pdf(page, "")
    assert b"the secret" not in pdf
    assert PdfReader(io.BytesIO(pdf)).attachments == {}


def test_a_server_without_pango_explains_how_to_print(reader, monkeypatch):
    """The import fails as it does on a server without the library."""

    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name == "weasyprint":
                raise OSError("cannot load library 'libpango-1.0-0'")

    monkeypatch.delitem(sys.modules, "weasyprint", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    to_pdf.cache_clear()
    with pytest.raises(MissingPartError, match="lacks Pango"):
        to_pdf("<p>Never set</p>", "")
    response = reader.get(f"{OF_SURVEY}/report.pdf")
    assert response.status_code == 501
    assert "libpango-1.0-0" in response.text
    assert reader.get(f"{OF_SURVEY}/report").status_code == 200
