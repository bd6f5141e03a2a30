"""The released reports as a file: what it is, why it may be given away, and the download itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any
from zipfile import ZIP_STORED, ZipFile

from flask import render_template, send_file
from flask_wtf import FlaskForm
from wtforms import RadioField, SelectChoice
from wtforms.validators import InputRequired

from survey.errors import SettingsError, SurveyError
from survey.parquet import export_reports
from survey.research.access import Route, Section
from survey.research.downloads import file_name
from survey.research.workspace import Workspace
from survey.results.exports.microdata import ZIP, write_documents, write_microdata
from survey.store import PublishedSurvey, Store, find_survey

FORMS = {"csv": "CSV, for any program", "parquet": "Parquet, for very many reports"}


class MicrodataForm(FlaskForm):  # type: ignore[misc]
    """In which form the reports are wanted."""

    form = RadioField(
        "Form of the reports",
        choices=[SelectChoice(form, label) for form, label in FORMS.items()],
        default="csv",
        validators=[InputRequired("Choose CSV or Parquet")],
    )


def sections(workspace: Workspace) -> list[Section]:
    """The pages of released reports: editors may download rows, viewers may not."""
    pages = _Pages(workspace)
    routes = [
        Route("GET", "/microdata", "editor", pages.explained),
        Route("POST", "/microdata", "editor", pages.given),
    ]
    return [Section("microdata", "/research/surveys/<slug>/<int:version>", routes)]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log = workspace.store, workspace.log
        self._caps = workspace.settings.caps
        self._minimum = workspace.settings.release_minimum

    def explained(self, slug: str, version: int) -> str:
        """What the file holds, and what publishing it means."""
        return self._page(find_survey(self._store, slug, version), MicrodataForm(formdata=None))

    def given(self, slug: str, version: int) -> Any:
        """The file, which is written before it is sent: nobody slow keeps the store waiting."""
        survey, form = find_survey(self._store, slug, version), MicrodataForm()
        if not form.validate_on_submit():
            return self._page(survey, form), 422
        if not self._store.n_released(survey.key):
            form.form.errors = ["No report is released yet: there is nothing to download"]
            return self._page(survey, form), 422
        # Without a name on the disk: it is gone when it is sent, whatever happens.
        file = TemporaryFile()  # noqa: SIM115
        try:
            n = WRITERS[form.form.data](file, self._store, survey)
        except SurveyError as refused:
            file.close()
            if not isinstance(refused, SettingsError):
                raise
            form.form.errors = [f"The file was not made: {refused}"]
            return self._page(survey, form), 422
        self._log.write("downloaded reports", slug, f"version {version}, {n} as {form.form.data}")
        file.seek(0)
        name = file_name(survey, f"reports-{form.form.data}.zip")
        return send_file(file, ZIP, as_attachment=True, download_name=name)

    def _page(self, survey: PublishedSurvey, form: MicrodataForm) -> str:
        return render_template(
            "research/microdata.html",
            survey=survey,
            definition=survey.definition,
            is_weakly_protected=survey.definition.epsilon > self._caps.warning,
            release_minimum=self._minimum,
            released=self._store.n_released(survey.key),
            form=form,
        )


def write_parquet(file: IO[bytes], store: Store, survey: PublishedSurvey) -> int:
    """The directory that `survey export --parquet` writes, with what stands beside it."""
    with TemporaryDirectory() as directory, ZipFile(file, "w", ZIP_STORED) as packed:
        manifest = export_reports(store, survey, Path(directory), lambda _: None)
        for written in sorted(Path(directory).iterdir()):
            packed.write(written, written.name)
        write_documents(packed, survey, manifest.n, manifest.release)
    return manifest.n


WRITERS: Mapping[str, Callable[[IO[bytes], Store, PublishedSurvey], int]] = {
    "csv": write_microdata,
    "parquet": write_parquet,
}
"""What writes each of `FORMS`."""
