"""Files that researchers download: their names and headers, and the released reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any
from zipfile import ZIP_STORED, ZipFile

from flask import Response, render_template, send_file
from flask_wtf import FlaskForm
from wtforms import RadioField, SelectChoice
from wtforms.validators import InputRequired

from survey.disclosure import MINIMUM_REPORTS
from survey.errors import SettingsError, SurveyError
from survey.parquet import export_reports
from survey.questionnaire.privacy_loss import report_strength
from survey.research.access import Pages, Route, Section, Workspace
from survey.results.exports.microdata import ZIP, write_documents, write_microdata
from survey.store import PublishedSurvey, Store, find_survey

CSV = "text/csv; charset=utf-8"

FORMS = {"csv": "CSV, for any program", "parquet": "Parquet, for very many reports"}


def file_name(survey: PublishedSurvey, subject: str) -> str:
    """Return the name of a file about a version; files of test runs begin with TEST."""
    test = "TEST-" if survey.is_test_run else ""
    return f"{test}{survey.slug}-{survey.version}-{subject}"


def download(content: bytes | str, content_type: str, name: str) -> Response:
    """Return a file; its name must consist of slugs, numbers and identifiers."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, content_type=content_type, headers=headers)


class MicrodataForm(FlaskForm):  # type: ignore[misc]
    """The file format of a download."""

    form = RadioField(
        "File format",
        choices=[SelectChoice(form, label) for form, label in FORMS.items()],
        default="csv",
        validators=[InputRequired("Choose CSV or Parquet")],
    )


def sections(workspace: Workspace) -> list[Section]:
    """Declare the page and the download: for editors, not for viewers."""
    views = _MicrodataPages(workspace)
    routes = [
        Route("GET", "/microdata", "editor", views.page),
        Route("POST", "/microdata", "editor", views.download),
    ]
    return [Section("microdata", "/research/surveys/<slug>/<int:version>", routes)]


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
            n = WRITERS[form.form.data](file, self._store, survey)
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
        )


def write_parquet(file: IO[bytes], store: Store, survey: PublishedSurvey) -> int:
    """Write what `survey export --parquet` writes, and its documents, as ZIP; return n."""
    with TemporaryDirectory() as directory, ZipFile(file, "w", ZIP_STORED) as packed:
        manifest = export_reports(store, survey, Path(directory), lambda _: None)
        for part in sorted(Path(directory).iterdir()):
            packed.write(part, part.name)
        write_documents(packed, survey, manifest.n, manifest.release)
    return manifest.n


WRITERS: Mapping[str, Callable[[IO[bytes], Store, PublishedSurvey], int]] = {
    "csv": write_microdata,
    "parquet": write_parquet,
}
"""The function that writes each of `FORMS`."""
