"""Pages and files of all analyses: one view for pages, one for tables, one for charts.

The analyses themselves are declared in `survey.results.analyses`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial, wraps
from typing import Any, NamedTuple

from flask import Response, flash, redirect, render_template, request, url_for
from flask_wtf import FlaskForm
from flask_wtf.file import FileField, FileRequired
from wtforms import SubmitField

from survey.collect.simulation import true_values
from survey.disclosure import MINIMUM_REPORTS, next_release
from survey.errors import (
    ChannelError,
    ConflictError,
    CountsError,
    DesignError,
    FieldError,
    NotFoundError,
)
from survey.estimator.core.intervals import DEFAULT_INTERVAL
from survey.estimator.shares.proportions import POPULATION, RESPONDENTS
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.privacy_loss import (
    labels,
    linked_epsilons,
    report_strength,
    strengths,
)
from survey.research.access import Pages, Route, Section, Workspace
from survey.research.downloads import CSV, download, file_name
from survey.research.forms import NoteForm, whole_number
from survey.research.look import shown_look
from survey.research.result_pages import ResultPages
from survey.results.accents import accent_variants, with_accent
from survey.results.analyses import (
    CROSSTAB,
    DIFFERENCE,
    ESTIMATES,
    REGRESSION,
    SMALL_GROUPS,
    TREND,
    WEIGHTING,
    Analysis,
    figure_source,
)
from survey.results.charts import (
    FORMATS,
    PALETTES,
    FigureOptions,
    chart_file,
    has_intervals,
    has_numbers,
)
from survey.results.combinations import GROUP_HEADINGS, groups_to_compare
from survey.results.display_status import SUPPRESSED
from survey.results.estimates.chart import matrix_summary, middle_bars, share_bars
from survey.results.estimates.findings import key_findings
from survey.results.estimates.result import QuestionResult, SurveyResult
from survey.results.estimates.scale_bar import diverging_bar, has_diverging_bar
from survey.results.exports.csv import to_csv
from survey.results.exports.xlsx import XLSX
from survey.results.joint_counts import list_variables
from survey.results.number_format import percent_with_decimal
from survey.results.question_statistics import has_question, question_index
from survey.results.request import (
    INTERVAL_CHOICES,
    INTERVAL_NAMES,
    LEVEL_CHOICES,
    IntervalOptions,
    Request,
    options_to_query,
    parse_options,
)
from survey.results.small_groups import SmallGroupsResult
from survey.results.trend.request import OVER, PART_LABELS, PERIOD_CHOICES
from survey.results.trend.table import TrendResult, question_parts
from survey.results.weighting.request import decode_margins
from survey.store import MAX_NOTE_LENGTH, PublishedSurvey, draft_key, find_survey, team_slug

Context = dict[str, Any]


def sections(workspace: Workspace) -> list[Section]:
    """Declare the pages, files and figures of every analysis; a link reproduces its view."""
    views = AnalysisPages(workspace)
    version, explore = "/<int:version>", "/explore"

    def page(path: str, analysis: Analysis, name: str = "", **options: Any) -> Route:
        view = _bind(views.page, analysis, **options)
        return Route("GET", path, "viewer", view, name or analysis.name)

    def file(path: str, analysis: Analysis, kind: str = "csv") -> Route:
        view = _bind(views.table, analysis, kind)
        return Route("GET", path, "viewer", view, f"{analysis.name}_{kind}")

    def picture(path: str, analysis: Analysis, view: Callable[..., Any]) -> Route:
        name = f"{analysis.name}_{view.__name__}"
        return Route("GET", path, "viewer", _bind(view, analysis), name)

    question, path = replace(ESTIMATES, template="research/question.html"), "/questions/<question>"
    routes = [
        Route("GET", "", "viewer", views.newest),
        page(version, ESTIMATES, "dashboard", surroundings=views.dashboard_context),
        page(f"{version}{path}", question, "question", surroundings=views.question_context),
        file(f"{version}/estimates.csv", ESTIMATES),
        file(f"{version}/estimates.xlsx", ESTIMATES, "xlsx"),
        picture(f"{version}/figures/<question>-<part>.<kind>", ESTIMATES, views.figure),
        *(
            page(f"{version}/{over}", TREND, over, over=over, surroundings=views.trend_context)
            for over in OVER
        ),
        Route("POST", f"{version}/trend", "editor", views.add_note),
        Route("POST", f"{version}/trend/notes/<int:number>", "editor", views.delete_note),
        file(f"{version}/<over>.csv", TREND),
        picture(f"{version}/<over>-figure.<kind>", TREND, views.figure),
        file(f"{version}/<over>/model.csv", SMALL_GROUPS),
        picture(f"{version}/<over>/model-chart-<look>.svg", SMALL_GROUPS, views.chart),
        picture(f"{version}/<over>/model-figure.<kind>", SMALL_GROUPS, views.figure),
        page(explore, CROSSTAB),
        Route("GET", f"{explore}/show", "viewer", views.explore),
        file(f"{explore}/crosstab.csv", CROSSTAB),
        file(f"{explore}/crosstab.xlsx", CROSSTAB, "xlsx"),
        page(f"{explore}/difference", DIFFERENCE),
        file(f"{explore}/difference/difference.csv", DIFFERENCE),
        picture(f"{explore}/difference/figure.<kind>", DIFFERENCE, views.figure),
        page(f"{explore}/weighting", WEIGHTING, surroundings=views.upload_context),
        Route("POST", f"{explore}/weighting/upload", "viewer", views.weighting_upload),
        file(f"{explore}/weighting/weighted.csv", WEIGHTING),
        page(f"{explore}/regression", REGRESSION),
        file(f"{explore}/regression/regression.csv", REGRESSION),
        picture(f"{explore}/regression/figure.<kind>", REGRESSION, views.figure),
    ]
    return [Section("results", "/research/surveys/<slug>", routes)]


def _bind(view: Callable[..., Any], analysis: Analysis, *arguments: Any, **options: Any) -> Any:
    """Return a view of one analysis, which Flask calls with the parameters of the path."""

    @wraps(view)
    def bound(**path: Any) -> Any:
        return view(analysis, *arguments, **options, **path)

    return bound


class UploadForm(FlaskForm):  # type: ignore[misc]
    """A file of margins."""

    file = FileField("Or a CSV file", [FileRequired("Choose a CSV file")])
    submit = SubmitField("Upload")


class View(NamedTuple):
    """A parsed link to an analysis."""

    analysis: Analysis
    survey: PublishedSurvey
    options: IntervalOptions
    request: Request
    path: Mapping[str, str]

    @property
    def query(self) -> dict[str, Any]:
        """The query of links that repeat the view in another format."""
        if not self.analysis.level_only:
            return {**self.request.query, **options_to_query(self.options)}
        level, version = f"{self.options.level:g}", str(self.survey.version)
        return {"level": level, "version": version, **self.request.query}


Surroundings = Callable[[View, Any], Context]


class AnalysisPages(Pages):
    """The pages and files of every analysis, for readers of any kind."""

    def newest(self, slug: str) -> Any:
        """Redirect to the dashboard of the newest version."""
        version, options = find_survey(self._store, slug).version, parse_options(request.args)
        query: dict[str, Any] = options_to_query(options)
        return redirect(url_for("results.dashboard", slug=slug, version=version, **query))

    def page(
        self,
        analysis: Analysis,
        slug: str,
        version: int = 0,
        surroundings: Surroundings | None = None,
        **path: str,
    ) -> Any:
        """Show the page of an analysis: its form, and the result or why there is none."""
        view = self._parse(analysis, slug, version, path)
        result, errors = None, {}
        if view.request.is_complete:
            try:
                result = self.compute(view)
            except analysis.errors as error:
                if not analysis.error_field:
                    raise
                field = error.field if isinstance(error, FieldError) else analysis.error_field
                errors = {field: str(error)}
        return self.render(view, result, errors, surroundings)

    def table(
        self, analysis: Analysis, kind: str, slug: str, version: int = 0, **path: str
    ) -> Response:
        """Return the rows of an analysis as CSV, or its workbook."""
        view = self._parse(analysis, slug, version, path)
        result = self._compute_file(view)
        name = file_name(view.survey, f"{_file_stem(view, result)}.{kind}")
        if kind == "xlsx" and analysis.workbook is not None:
            return download(analysis.workbook(result), XLSX, name)
        return download(to_csv(result.rows, analysis.row_type), CSV, name)

    def figure(
        self, analysis: Analysis, slug: str, kind: str, version: int = 0, **path: str
    ) -> Response:
        """Return the chart of an analysis as a file."""
        view = self._parse(analysis, slug, version, path)
        if kind not in FORMATS:
            raise NotFoundError(f"there is no figure .{kind}: choose one of {', '.join(FORMATS)}")
        result, content = self.figure_file(view, kind, FigureOptions.parse(request.args))
        name = file_name(view.survey, f"{_file_stem(view, result)}.{kind}")
        return download(content, FORMATS[kind], name)

    def figure_file(self, view: View, kind: str, options: FigureOptions) -> tuple[Any, bytes]:
        """Return the result of an analysis and its chart as a file."""
        result, specification = self._chart(view)
        source = (
            view.analysis.source(result, view.request)
            if view.analysis.source
            else figure_source(view.survey, datetime.now(UTC))
        )
        if license_name := self._store.license_of_results(view.survey.slug):
            source = f"{source}\nLicense: {license_name}"
        accent = shown_look(self._store, view.survey.slug).accent
        specification = with_accent(specification, accent)
        return result, chart_file(view.survey, specification, kind, options, source)

    def chart(
        self, analysis: Analysis, slug: str, look: str, version: int = 0, **path: str
    ) -> Response:
        """Return the chart of an analysis as its page shows it."""
        view = self._parse(analysis, slug, version, path)
        if look not in PALETTES:
            raise NotFoundError(f"there is no chart in {look}: choose one of {', '.join(PALETTES)}")
        _, specification = self._chart(view)
        svg = analysis.svg(specification, look)
        if accent := shown_look(self._store, slug).accent:
            svg = svg.replace(PALETTES[look].accent, accent_variants(accent)._asdict()[look])
        return Response(svg, content_type=FORMATS["svg"])

    def explore(self, slug: str) -> Any:
        """Redirect to the table, chart or comparison of a question by another one or by groups."""
        names = ("first", "second", "method", "percent", "level", "version")
        query: dict[str, Any] = {
            name: request.args[name] for name in names if request.args.get(name)
        }
        survey = find_survey(self._store, slug, whole_number(query.get("version", "")) or None)
        # Groups are compared for a whole question, also if one of its options was chosen.
        question, by = query.get("first", "").partition(".")[0], query.get("second", "")
        if not question or by not in GROUP_HEADINGS:
            return redirect(url_for("results.crosstab", slug=slug, **query))
        groups = groups_to_compare(self._store, survey, question, by)
        for name in ("first", "second", "method", "percent"):
            query.pop(name, None)
        query["question"] = question
        if len(groups) > 2:
            query["version"] = survey.version
            endpoint = "results.versions" if by == "versions" else "results.links"
            return redirect(url_for(endpoint, slug=slug, **query))
        a, b = groups
        return redirect(url_for("results.difference", slug=slug, a=a.id, b=b.id, **query))

    def weighting_upload(self, slug: str) -> Any:
        """Read margins from a file and put them into the link."""
        view, form = self._parse(WEIGHTING, slug, 0, {}), UploadForm()
        try:
            if not form.validate_on_submit():
                raise DesignError((form.errors.get("file") or ["Send the form again"])[0])
            margins = decode_margins(form.file.data.read())
        except DesignError as error:
            return self.render(view, None, {"file": str(error)}, self.upload_context)
        query: dict[str, Any] = {**view.query, "margins": margins}
        return redirect(url_for("results.weighting", slug=slug, **query))

    def add_note(self, slug: str, version: int) -> Any:
        """Add a note on the trends of a survey; errors are shown beside its form."""
        view, form = self._parse(TREND, slug, version, {"over": "trend"}), NoteForm()
        if view.survey.definition.bucket == "none":
            raise DesignError("This survey does not record dates, so its charts show no notes")
        if form.validate_on_submit():
            try:
                self._store.add_trend_note(view.survey.team, form.day.data, 0, form.text.data)
            except ConflictError as error:
                form.text.errors = [f"The note was not added: {error}"]
            else:
                self._log.write("added a note", slug, f"{form.day.data}: {form.text.data}")
                return self._back_to_notes(view)
        surroundings = partial(self.trend_context, note_form=form)
        page, _ = self.render(view, self.compute(view), {}, surroundings)
        return page, 422

    def delete_note(self, slug: str, version: int, number: int) -> Any:
        """Delete a note on the trends of a survey."""
        view = self._parse(TREND, slug, version, {"over": "trend"})
        note = next(
            (n for n in self._store.trend_notes(view.survey.team) if n.number == number), None
        )
        if note is None or not self._store.remove_trend_note(view.survey.team, number):
            flash("This note has already been deleted.")
        else:
            self._log.write("deleted a note", slug, f"{note.day}: {note.text}")
            flash(f"The note of {note.day} has been deleted: “{note.text}”")
        return self._back_to_notes(view)

    def _back_to_notes(self, view: View) -> Any:
        query = {**view.query, "slug": view.survey.slug, "version": view.survey.version}
        return redirect(url_for("results.trend", _anchor="notes", **query))

    def _parse(self, analysis: Analysis, slug: str, version: int, path: Mapping[str, str]) -> View:
        query = request.args
        options: Mapping[str, str] = query
        survey_version: int | None = version
        if analysis.level_only:
            # Forms send these analyses too, with empty fields for the defaults.
            query, level = request.values, request.values.get("level", "")
            options = {"level": level} if level else {}
            survey_version = whole_number(query.get("version", "")) or None
        survey = find_survey(self._store, slug, survey_version)
        return View(analysis, survey, parse_options(options), analysis.parse(query, path), path)

    def compute(self, view: View) -> Any:
        """Return the result that a link to an analysis describes."""
        return view.analysis.compute(
            self._workspace.results, view.survey, view.request, view.options
        )

    def _compute_file(self, view: View) -> Any:
        """Compute the result for a file: an error that a page shows becomes the whole response."""
        try:
            result = self.compute(view)
        except (CountsError, ChannelError) as error:
            raise DesignError(str(error)) from error
        if isinstance(result, TrendResult) and not result.groups:
            raise NotFoundError(f"{view.survey.slug} has no groups of this kind")
        return result

    def _chart(self, view: View) -> tuple[Any, dict[str, Any]]:
        result = self._compute_file(view)
        if view.analysis.chart is None:
            raise NotFoundError(f"{view.analysis.name} has no chart")
        return result, view.analysis.chart(result, view.request)

    def render(
        self, view: View, result: Any, errors: Mapping[str, str], surroundings: Surroundings | None
    ) -> tuple[str, int]:
        """Return the page of a result and its status."""
        analysis = view.analysis
        context: Context = {
            "survey": view.survey,
            "definition": view.survey.definition,
            "questions": view.survey.definition.questions,
            "options": view.options,
            "levels": LEVEL_CHOICES,
            "chosen": view.request,
            "errors": errors,
            "query": view.query,
            "result": result,
            **analysis.form(self._workspace.results, view.survey, view.request),
            **(analysis.page_context(result) if result is not None else {}),
            **(surroundings(view, result) if surroundings else {}),
        }
        return render_template(analysis.template, **context), 422 if errors else 200

    def dashboard_context(
        self, view: View, result: SurveyResult, query: Mapping[str, Any] | None = None
    ) -> Context:
        """Return the context of a dashboard page, whose links have the parameters in `query`."""
        definition = view.survey.definition
        pages = ResultPages.of(
            definition.questions,
            request.args.get("page", ""),
            {name: str(value) for name, value in (query or view.query).items()},
        )
        links = _PageLinks("results.dashboard", view.survey, pages.parameters)
        questions = [result.at(place) for place in pages.places]
        return {
            "is_weakly_protected": report_strength(definition) == "weak",
            "pages": pages,
            "shown_questions": questions,
            "findings": key_findings(result),
            "is_public": self._store.has_public_results(view.survey.slug),
            "card_caution": _card_cautions(questions, closed=view.survey.state != "open"),
            "matrix_of": partial(matrix_summary, result),
            **self._results_context(view, links, self._store.versions(view.survey.slug)),
        }

    def question_context(self, view: View, result: SurveyResult) -> Context:
        """Return what the page of one question shows around it."""
        question_id = view.path["question"]
        links = _PageLinks("results.question", view.survey, {"question": question_id})
        return {
            "question": result.question(question_id),
            "labels": labels(view.survey.definition),
            "place": question_index(view.survey, question_id),
            "variable": _variable_in_explore(view.survey, question_id),
            **self._results_context(view, links, self._versions_with(view.survey, question_id)),
        }

    def trend_context(
        self, view: View, result: TrendResult, note_form: NoteForm | None = None
    ) -> Context:
        """Return what a page over links, time or versions shows around its figures."""
        request_ = result.request
        question = result.total.question(request_.question)
        links = _PageLinks(f"results.{request_.over}", view.survey, request_.query)
        versions = self._versions_with(view.survey, request_.question)
        return {
            "over": request_.over,
            "chosen": request_,
            "trend": result,
            "result": result.total,
            "parts": {name: PART_LABELS[name] for name in question_parts(question)},
            "note_form": note_form or NoteForm(formdata=None),
            "max_note_length": MAX_NOTE_LENGTH,
            "lengths": PERIOD_CHOICES.get(view.survey.definition.bucket, {}),
            "query": options_to_query(view.options),
            "view_query": {**request_.query, **options_to_query(view.options)},
            "choices": links.option_choices(view.options),
            "versions": links.version_choices(view.options, versions),
        }

    def upload_context(self, view: View, result: Any) -> Context:  # noqa: ARG002
        """Return the form that uploads margins."""
        return {"form": UploadForm(formdata=None)}

    def _results_context(
        self, view: View, links: _PageLinks, versions: list[PublishedSurvey]
    ) -> Context:
        """Return what every page of estimates shows above and around the figures."""
        definition = view.survey.definition
        return {
            "release_minimum": MINIMUM_REPORTS,
            "next_release": next_release(time.time(), self._settings.release_every),
            "choices": links.option_choices(view.options),
            "versions": links.version_choices(view.options, versions),
            "closed": view.survey.state != "open",
            "linked_epsilons": linked_epsilons(definition),
            "strengths": strengths(definition),
            **self._simulated_truths(view.survey),
            "share_bars": share_bars,
            "middle_bars": middle_bars,
            "has_diverging_bar": has_diverging_bar,
            "diverging_bar": diverging_bar,
            "has_numbers": has_numbers,
            "has_intervals": has_intervals,
            "percent_with_decimal": percent_with_decimal,
        }

    def _versions_with(self, survey: PublishedSurvey, question_id: str) -> list[PublishedSurvey]:
        versions = self._store.versions(survey.slug)
        return [version for version in versions if has_question(version, question_id)]

    def _simulated_truths(self, survey: PublishedSurvey) -> Context:
        """Return the true shares of a test run's simulated respondents, if they are known."""
        draft = None
        if survey.is_test_run:
            draft = self._store.draft(draft_key(team_slug(survey.slug)))
        if draft is None:
            return {"truths": {}, "truths_differed": False}
        typed = DraftContent.from_json(draft.content).typed_shares
        is_known = typed.simulated and not typed.differed
        truths = true_values(survey.definition, typed.shares) if is_known else {}
        return {"truths": truths, "truths_differed": typed.differed}


def _variable_in_explore(survey: PublishedSurvey, question_id: str) -> str:
    """Return a question's name in Explore, or that of its first option if the question is split.

    The name is empty for a ranking, which cannot be cross-tabulated.
    """
    place = question_index(survey, question_id)
    names = (variable.question.id for variable in list_variables(survey) if variable.place == place)
    return next(names, "")


def _card_cautions(
    questions: Sequence[QuestionResult], *, closed: bool
) -> Callable[[QuestionResult], str]:
    """Return the caution of a question's card: at most one, and none that every card would have."""
    shown = {question.disclosure for question in questions} - {SUPPRESSED}

    def caution(question: QuestionResult) -> str:
        caveats = question.caveats(closed=closed)
        is_like_all = question.disclosure == "caution" and shown == {"caution"}
        return "" if is_like_all or not caveats else caveats[0]

    return caution


def _file_stem(view: View, result: Any) -> str:
    # Only the result knows the question of a trend whose link names none.
    if isinstance(result, SmallGroupsResult):
        return result.file_stem
    source = result.request if isinstance(result, TrendResult) else view.request
    return str(source.file_stem)


class Choice(NamedTuple):
    """A link to the same page with another option; `is_current` marks the present one."""

    label: str
    address: str
    is_current: bool


class _PageLinks(NamedTuple):
    """Links from a page of results to the same page with other options or of another version."""

    endpoint: str
    survey: PublishedSurvey
    query: Mapping[str, Any]

    def address(self, options: IntervalOptions, **changes: Any) -> str:
        """Return the address of the page with these options."""
        values = {
            "slug": self.survey.slug,
            "version": self.survey.version,
            **self.query,
            **options_to_query(options),
        }
        return url_for(self.endpoint, **{**values, **changes})

    def option_choices(self, options: IntervalOptions) -> dict[str, list[Choice]]:
        """Return the links above the figures by heading, without invalid combinations."""

        def choice(label: str, **changes: Any) -> Choice:
            changed = replace(options, **changes)
            return Choice(label, self.address(changed), changed == options)

        choices = {
            "Intervals": [choice(f"{100 * level:g}%", level=level) for level in LEVEL_CHOICES],
            "Coverage": [
                choice("per estimate", simultaneous=False),
                choice("simultaneous", simultaneous=True),
            ],
            "Shares of": [
                choice("population", target=POPULATION),
                choice("respondents", target=RESPONDENTS, interval=DEFAULT_INTERVAL),
            ],
        }
        if options.target == POPULATION:
            choices["Method"] = [
                choice(INTERVAL_NAMES[name], interval=name) for name in INTERVAL_CHOICES
            ]
        return choices

    def version_choices(
        self, options: IntervalOptions, versions: list[PublishedSurvey]
    ) -> list[Choice]:
        """Return the links to the versions, the newest first; empty with one version only."""
        if len(versions) < 2:
            return []
        return [
            Choice(
                f"{version.version} ({version.state})",
                self.address(options, version=version.version),
                version.version == self.survey.version,
            )
            for version in versions
        ]
