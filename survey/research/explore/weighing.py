"""A question weighted to known margins, which are typed, or uploaded and put into the link."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_plus

from flask import Response, redirect, request, url_for
from flask_wtf import FlaskForm
from flask_wtf.file import FileField, FileRequired
from wtforms import SubmitField

from survey.errors import ChannelError, CountsError, DesignError, NotFoundError
from survey.research.access import Route, Section
from survey.research.downloads import CSV, download, file_name
from survey.research.explore.asking import Asked, asked, page, refusing
from survey.research.workspace import Workspace
from survey.results.exports.csv import to_csv
from survey.results.weighting.compute import (
    Weighted,
    WeightedRow,
    bases,
    categories,
    weightable,
    weighted,
)
from survey.results.weighting.request import PER_CENT, UNITS, Category, read_margins
from survey.results.weighting.sentences import caveats, to_write

FIELDS = ("question", "by", "unit", "margins")

LONGEST = 3_000
"""Characters of margins as a link carries them: servers on the way cut longer ones."""

TOO_LONG = (
    f"A link carries up to {LONGEST:,} characters of margins, as they are written in it; these "
    "have {:,}. Shorten the names to the ids of the options"
)


class MarginsForm(FlaskForm):  # type: ignore[misc]
    """A file of margins."""

    file = FileField("Or a CSV file", [FileRequired("Choose a CSV file")])
    submit = SubmitField("Upload")


def sections(workspace: Workspace) -> list[Section]:
    """The pages of weighting; a link reproduces its view."""
    pages = _Pages(workspace)
    routes = [
        Route("GET", "", "viewer", pages.weighting),
        Route("POST", "/upload", "viewer", pages.upload),
        Route("GET", "/weighted.csv", "viewer", pages.as_csv),
    ]
    return [Section("weighing", "/research/surveys/<slug>/explore/weighting", routes)]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store = workspace.store

    def weighting(self, slug: str) -> Any:
        """Choose a question and whose margins are known; type them; see what they change."""
        of, chosen = asked(self._store, slug), _chosen()
        found, refusals = None, {}
        if chosen["question"] and chosen["by"] and chosen["margins"].strip():
            try:
                found = self._weighted(of)
            except (DesignError, CountsError, ChannelError) as error:
                refusals = {"margins": str(error)}
        return self._page(of, refusals, found)

    def upload(self, slug: str) -> Any:
        """A file instead of typing: its text becomes part of the link."""
        of, form = asked(self._store, slug), MarginsForm()
        try:
            if not form.validate_on_submit():
                raise DesignError((form.errors.get("file") or ["Send the form once more"])[0])
            margins = _text(form.file.data.read())
        except DesignError as error:
            return self._page(of, {"file": str(error)}, None)
        query: dict[str, Any] = {**of.query, **_chosen(), "margins": margins}
        return redirect(url_for("weighing.weighting", slug=slug, **query))

    def as_csv(self, slug: str) -> Response:
        """The same shares, one row for each answer."""
        of = asked(self._store, slug)
        with refusing():
            rows = self._weighted(of).rows
        name = file_name(of.survey, f"{_chosen()['question']}-weighted.csv")
        return download(to_csv(rows, WeightedRow), CSV, name)

    def _page(self, of: Asked, refusals: dict[str, str], found: Weighted | None) -> Any:
        chosen, known = _chosen(), bases(self._store, of.survey)
        lines = self._categories(of) if chosen["by"] else []
        if not chosen["margins"].strip():
            chosen["margins"] = "\n".join(f"{one.label}, " for one in lines)
        return page(
            "research/weighting.html",
            of,
            chosen,
            refusals,
            bases=known,
            weightable=weightable(of.survey),
            units=UNITS,
            typing=bool(chosen["question"] and lines),
            lines=min(max(len(lines), 3), 12) + 1,
            form=MarginsForm(formdata=None),
            found=found,
            sentences=to_write(found) if found else [],
            caveats=caveats(found) if found else [],
        )

    def _categories(self, of: Asked) -> list[Category]:
        by = _chosen()["by"]
        if by not in bases(self._store, of.survey):
            raise NotFoundError(f"{of.survey.slug} has no margins of {by[:60]!r}")
        return categories(self._store, of.survey, by)

    def _weighted(self, of: Asked) -> Weighted:
        chosen = _chosen()
        length = len(quote_plus(chosen["margins"]))
        if length > LONGEST:
            raise DesignError(TOO_LONG.format(length))
        lines = self._categories(of)
        population = read_margins(chosen["margins"], lines, chosen["unit"])
        name, by = chosen["question"], chosen["by"]
        return weighted(self._store, of.survey, name, by, population, of.wanted)


def _chosen() -> dict[str, str]:
    said = {name: request.values.get(name, "") for name in FIELDS}
    if request.values.get("typed_for", said["by"]) != said["by"]:
        # These lines name other categories.
        said["margins"] = ""
    return {**said, "unit": said["unit"] or PER_CENT}


def _text(content: bytes) -> str:
    """The lines of a file: UTF-8, or what spreadsheets on Windows write."""
    if content.startswith(b"PK"):
        raise DesignError("This is a spreadsheet; save it as CSV first")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    lines = "\n".join(line.strip() for line in text.splitlines() if line.strip())
    if not lines or "\0" in lines:
        raise DesignError("This file has no lines of text")
    length = len(quote_plus(lines))
    if length > LONGEST:
        raise DesignError(TOO_LONG.format(length))
    return lines
