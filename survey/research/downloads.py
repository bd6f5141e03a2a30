"""Files that researchers download: the released reports, and the printable report of a survey."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, TYPE_CHECKING, Any
from zipfile import ZIP_STORED, ZipFile

from flask import Response, render_template, request, send_file, url_for
from flask_wtf import FlaskForm
from wtforms import RadioField, SelectChoice
from wtforms.validators import InputRequired

from survey.disclosure import MINIMUM_REPORTS
from survey.errors import MissingPartError, SettingsError, SurveyError
from survey.methods import interval_anchor, mechanism_anchor, references, symbols, topics
from survey.parquet import export_reports
from survey.questionnaire.privacy_loss import report_strength
from survey.research.access import Pages, Route, Section, Workspace, static_file
from survey.research.handbook import application_page
from survey.research.look import embedded_logo, shown_look
from survey.results.accents import accent_stylesheet, leading_color
from survey.results.charts import has_intervals
from survey.results.estimates.chart import middle_bars, share_bars
from survey.results.estimates.findings import key_findings
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import EstimateRow
from survey.results.exports.formats import DEBIASED_COLUMNS, FORMATS, ReportFormat
from survey.results.exports.methods import (
    method_name,
    methods_statement,
    question_methods,
    sections_used,
    survey_facts,
    works_cited,
)
from survey.results.exports.microdata import (
    CODE_COLUMNS,
    ZIP,
    write_all_values,
    write_documents,
)
from survey.results.exports.package import Package
from survey.results.plan.compute import DEFAULT_N
from survey.results.request import options_to_query, parse_options
from survey.store import PublishedSurvey, Store, find_survey
from survey.version import __version__

if TYPE_CHECKING:
    from survey.parquet.export import Manifest

CSV = "text/csv; charset=utf-8"


def file_name(survey: PublishedSurvey, subject: str) -> str:
    """Return the name of a file about a version; files of test runs begin with TEST."""
    test = "TEST-" if survey.is_test_run else ""
    return f"{test}{survey.slug}-{survey.version}-{subject}"


def download(content: bytes | str, content_type: str, name: str) -> Response:
    """Return a file; its name must consist of slugs, numbers and identifiers."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, content_type=content_type, headers=headers)


def write_parquet(
    file: IO[bytes], store: Store, survey: PublishedSurvey, *, with_debiased: bool = False
) -> int:
    """Write what `survey export --parquet` writes, and its documents, as ZIP; return n."""
    with TemporaryDirectory() as directory, ZipFile(file, "w", ZIP_STORED) as packed:

        def export() -> Manifest:
            target = Path(directory)
            return export_reports(
                store, survey, target, lambda _: None, with_debiased=with_debiased
            )

        manifest = export()
        # Another release in between has other counts, on which some values depend.
        while (tally := store.tally(survey.key)).release != manifest.release:
            manifest = export()
        package = Package(packed)
        head = f"Debiased columns\n{DEBIASED_COLUMNS}\n" if with_debiased else ""
        write_documents(package, survey, tally, columns=head + CODE_COLUMNS)
        write_all_values(package, survey, tally)
        for part in sorted(Path(directory).iterdir()):
            # The documents have the definition already.
            if part.name not in package.digests:
                package.add_file(part.name, part)
    return manifest.n


_PARQUET = ReportFormat(
    "Parquet",
    "The codes in compressed columns; codebook.csv has their labels. For very many responses, "
    "in R, pandas, DuckDB and Spark.",
    write_parquet,
)

_DEBIASED_PARQUET = ReportFormat(
    "Parquet with debiased columns",
    "Codes, and columns whose plain averages are the published shares and means.",
    partial(write_parquet, with_debiased=True),
)

DOWNLOADS: Mapping[str, ReportFormat] = {
    "csv": FORMATS["csv"],
    "labels": FORMATS["labels"],
    "parquet": _PARQUET,
    "parquet-debiased": _DEBIASED_PARQUET,
    **FORMATS,
}
"""All formats of the page, in its order."""


class MicrodataForm(FlaskForm):  # type: ignore[misc]
    """The file format of a download."""

    form = RadioField(
        "File format",
        choices=[SelectChoice(name, form.title) for name, form in DOWNLOADS.items()],
        default="csv",
        validators=[InputRequired("Choose a file format")],
    )


def sections(workspace: Workspace) -> list[Section]:
    """Declare the printable report and the released reports: those for editors, not viewers."""
    views = _MicrodataPages(workspace)
    routes = [
        Route("GET", "/microdata", "editor", views.page),
        Route("POST", "/microdata", "editor", views.download),
    ]
    microdata = Section("microdata", "/research/surveys/<slug>/<int:version>", routes)
    return [microdata, _report_section(workspace)]


class _MicrodataPages(Pages):
    def page(self, slug: str, version: int) -> str:
        """Explain the contents of the file and the consequences of publishing it."""
        return self._render(find_survey(self._store, slug, version), MicrodataForm(formdata=None))

    def download(self, slug: str, version: int) -> Any:
        """Send the file. It is written completely first: a slow client must not block the store."""
        survey, form = find_survey(self._store, slug, version), MicrodataForm()
        if not form.validate_on_submit():
            return self._render(survey, form), 422
        if not self._store.n_released(survey.key):
            form.form.errors = [
                "No responses have been released yet, so there is nothing to download"
            ]
            return self._render(survey, form), 422
        # An unnamed temporary file is always deleted when it is closed.
        file = TemporaryFile()  # noqa: SIM115
        try:
            n = DOWNLOADS[form.form.data].write(file, self._store, survey)
        except SurveyError as error:
            file.close()
            if not isinstance(error, SettingsError):
                raise
            form.form.errors = [f"The file could not be created: {error}"]
            return self._render(survey, form), 422
        self._log.write("downloaded reports", slug, f"version {version}, {n} as {form.form.data}")
        file.seek(0)
        name = file_name(survey, f"reports-{form.form.data}.zip")
        return send_file(file, ZIP, as_attachment=True, download_name=name)

    def _render(self, survey: PublishedSurvey, form: MicrodataForm) -> str:
        return render_template(
            "research/microdata.html",
            survey=survey,
            definition=survey.definition,
            is_weakly_protected=report_strength(survey.definition) == "weak",
            release_minimum=MINIMUM_REPORTS,
            released=self._store.n_released(survey.key),
            form=form,
            formats=DOWNLOADS,
        )


STYLESHEET = Path(__file__).resolve().parent.parent / "static" / "report.css"
PDF = "application/pdf"

PDF_VARIANT = "pdf/ua-1"
"""ISO 14289: tagged, so that screen readers read the document in order."""

LEADING = "#78a3b2"
"""The color of a leading answer's bar on paper, as in the stylesheet, unless a team has its own."""

PDF_CACHE_SIZE = 8
"""Documents that are kept in memory: laying out thirty questions takes seconds."""


def _report_section(workspace: Workspace) -> Section:
    """Declare the report and methods, with the template functions that link to the methods."""
    views = _ReportPages(workspace)
    survey = "/surveys/<slug>/<int:version>"
    routes = [
        Route("GET", "/methods", "researcher", views.methods),
        Route("GET", f"{survey}/methods", "viewer", views.survey_methods),
        Route("GET", f"{survey}/report", "viewer", views.report),
        Route("GET", f"{survey}/report.pdf", "viewer", views.report_pdf),
        Route("GET", f"{survey}/application/<name>", "viewer", views.application),
        Route("GET", "/assets/<version>/report.css", "anybody", views.stylesheet, "stylesheet"),
    ]
    section = Section("reports", "/research", routes)
    section.app_context_processor(
        lambda: {
            "methods_url": methods_url,
            "method_anchor": method_anchor,
            "mechanism_anchor": mechanism_anchor,
        }
    )
    return section


def methods_url(survey: PublishedSurvey, anchor: str, query: dict[str, str] | None = None) -> str:
    """Return the address of a section of a survey's methods page."""
    values: dict[str, Any] = {"slug": survey.slug, "version": survey.version, **(query or {})}
    return url_for("reports.survey_methods", _anchor=anchor, **values)


def method_anchor(rows: list[EstimateRow]) -> str:
    """Return the section that explains the intervals of a table's rows."""
    method = method_name(rows)
    return interval_anchor(method) if method else "interval"


class _ReportPages(Pages):
    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._style = STYLESHEET.read_text(encoding="utf-8")
        self._style_hash, self.stylesheet = static_file(STYLESHEET, "text/css; charset=utf-8")

    def methods(self) -> str:
        """Show all methods, independent of any survey."""
        return _methods_page()

    def survey_methods(self, slug: str, version: int) -> str:
        """Show all methods, and above them those of a survey."""
        result = self._result(slug, version)
        return _methods_page(
            survey=result.survey,
            result=result,
            methods=question_methods(result),
            query=options_to_query(result.options),
        )

    def report(self, slug: str, version: int) -> str:
        """Show the report."""
        return self._report(self._result(slug, version), for_screen=True)

    def report_pdf(self, slug: str, version: int) -> Response:
        """Return the report as PDF on A4."""
        result = self._result(slug, version)
        page = self._report(result, for_screen=False)
        accent = shown_look(self._store, slug).accent
        style = self._style + (accent_stylesheet(accent) if accent else "")
        return download(to_pdf(page, style), PDF, file_name(result.survey, "report.pdf"))

    def application(self, slug: str, version: int, name: str) -> str:
        """Show texts for an ethics or data-protection application, with the survey's figures."""
        survey = find_survey(self._store, slug, version)
        n = self._store.plan(survey.key).n or DEFAULT_N
        return application_page(
            name,
            survey.definition,
            n,
            self._settings,
            survey=survey,
            endpoint="reports.application",
        )

    def _report(self, result: SurveyResult, *, for_screen: bool) -> str:
        look = shown_look(self._store, result.survey.slug)
        record = [
            *survey_facts(result.survey, result.n),
            ("Release", f"{result.release}, read {_read_at(result)}"),
            ("Intervals", result.options.description),
            ("Respondents’ page", f"version {__version__}"),
        ]
        return render_template(
            "research/report.html",
            for_screen=for_screen,
            report_css=url_for("reports.stylesheet", version=self._style_hash),
            look=look,
            logo=look.logo if for_screen else embedded_logo(self._store, result.survey.slug),
            leading=leading_color(look.accent) if look.accent else LEADING,
            survey=result.survey,
            definition=result.survey.definition,
            result=result,
            query=options_to_query(result.options),
            closed=result.survey.state != "open",
            findings=key_findings(result),
            share_bars=share_bars,
            middle_bars=middle_bars,
            has_intervals=has_intervals,
            record=record,
            read_at=_read_at(result),
            statement=methods_statement(result),
            methods=question_methods(result),
            sections=sections_used(result),
            references=works_cited(result),
        )

    def _result(self, slug: str, version: int) -> SurveyResult:
        survey = find_survey(self._store, slug, version)
        return self._workspace.results.result(survey, parse_options(request.args))


def _methods_page(**survey_context: Any) -> str:
    return render_template(
        "research/methods.html",
        topics=topics(),
        symbols=symbols(),
        references=references(),
        **survey_context,
    )


def _read_at(result: SurveyResult) -> str:
    """Return when the release was read, which is when its rows were computed."""
    return result.now.strftime("%Y-%m-%d %H:%M:%S UTC")


@lru_cache(maxsize=PDF_CACHE_SIZE)
def to_pdf(page: str, style: str) -> bytes:
    """Lay out a page with a stylesheet; load nothing from outside the page.

    Raises MissingPartError if the system lacks Pango, which sets the text.
    """
    try:
        # WeasyPrint loads Pango, which no other page needs.
        import weasyprint
    except OSError as missing:
        raise MissingPartError(
            "this server cannot make PDFs: it lacks Pango (on Debian: apt-get install "
            "libpango-1.0-0 libpangoft2-1.0-0 fonts-dejavu-core). You can print the report instead"
        ) from missing
    # The stylesheet also holds rules for screens, about which WeasyPrint warns.
    logging.getLogger("weasyprint").setLevel(logging.ERROR)
    # Texts of a survey must not make the server open an address.
    fetcher = weasyprint.urls.URLFetcher(allowed_protocols=("data",))
    document = weasyprint.HTML(string=page, url_fetcher=fetcher)
    sheet = weasyprint.CSS(string=style, url_fetcher=fetcher)
    pdf: bytes = document.write_pdf(stylesheets=[sheet], pdf_variant=PDF_VARIANT)
    return pdf
