"""The commands of one survey, from a new definition file to its links and invitations."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

import click
from pydantic import TypeAdapter, ValidationError

from survey.cli import (
    PATH,
    combine,
    configured_settings,
    configured_store,
    json_option,
    mistakes_as_json,
    quantity,
)
from survey.collect.invitations import (
    QR_FORMATS,
    field_link,
    issue_invitations,
    new_tokens,
    qr_code,
    respondent_link,
    validate_stratum,
)
from survey.collect.publication import close as close_survey
from survey.collect.publication import publish as publish_survey
from survey.collect.publication import validate_schedule
from survey.collect.release import utc_today
from survey.errors import (
    ClosedError,
    DefinitionError,
    DesignError,
    NotFoundError,
    OutdatedError,
    ReportError,
    StoreError,
    SurveyError,
    naming_file,
)
from survey.questionnaire import is_test_run
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition
from survey.questionnaire.error_messages import printable, sentence
from survey.questionnaire.exports import WRITERS, export_questionnaire
from survey.questionnaire.imports import import_questionnaire
from survey.questionnaire.ledger import ledger, lines
from survey.questionnaire.loading import load_file, read_file
from survey.questionnaire.privacy_loss import (
    Questions,
    publication_warnings,
    report_heading,
    report_sentences,
)
from survey.questionnaire.schema import definition_schema
from survey.questionnaire.texts import Slug
from survey.results.exports.csv import links_csv
from survey.settings import Settings
from survey.store import PublishedSurvey, Schedule, Store, find_survey

TEMPLATE = Path(__file__).with_name("new_survey.toml")
"""The definition that `survey new` writes, with another name."""

DAY = click.DateTime(["%Y-%m-%d"])
LARGEST_LIMIT = 10**9
"""Responses; also the largest limit that the pages accept."""


schedule_options = combine(
    click.option("--opens", type=DAY, help="First day (UTC) on which responses are accepted."),
    click.option("--closes", type=DAY, help="Last day (UTC) on which responses are accepted."),
    click.option(
        "--most",
        "limit",
        type=click.IntRange(0, LARGEST_LIMIT),
        help="Maximum number of responses; 0 for no limit.",
    ),
)


def updated_schedule(
    schedule: Schedule, opens: datetime | None, closes: datetime | None, limit: int | None
) -> Schedule:
    """Return the schedule with the options that were given; None leaves a value unchanged."""
    if opens or closes:
        schedule = replace(schedule, is_damaged=False)
    if opens:
        schedule = replace(schedule, opens=opens.date())
    if closes:
        schedule = replace(schedule, closes=closes.date())
    return schedule if limit is None else replace(schedule, maximum=limit)


def describe_schedule(schedule: Schedule) -> str:
    """Describe a schedule as the end of a sentence.

    >>> describe_schedule(Schedule(maximum=500))
    'at most 500 responses, from now until it is closed'
    """
    maximum = f"at most {schedule.maximum:,}" if schedule.maximum else "any number of"
    start = f"from {schedule.opens}" if schedule.opens else "from now"
    end = f"to {schedule.closes}" if schedule.closes else "until it is closed"
    return f"{maximum} responses, {start} {end}"


@click.command()
@click.argument("name")
def new(name: str) -> None:
    """Write a commented definition to NAME.toml, with NAME as the survey's short name."""
    try:
        slug = TypeAdapter(Slug).validate_python(name)
    except ValidationError as error:
        raise DesignError(f"NAME: {sentence(error.errors()[0])}") from None
    file = Path(f"{slug}.toml")
    title = slug.replace("-", " ").capitalize()
    content = TEMPLATE.read_text(encoding="utf-8")
    content = content.replace("new-survey", slug).replace("New survey", title)
    with file.open("x", encoding="utf-8") as target:
        target.write(content)
    click.echo(f"{file}: a survey of three questions. Edit it, then run: survey check {file}")


@click.command("import")
@click.argument("file", type=PATH)
@click.option("--output", type=PATH, help="Write the definition to this file, which ends in .json.")
@json_option("Print the report, or errors, as JSON.")
@click.option("--skip-logic", is_flag=True, help="Keep questions that depend on earlier answers.")
def import_file(file: Path, output: Path | None, as_json: bool, skip_logic: bool) -> None:
    """Import a questionnaire FILE of another survey tool and report on each of its elements.

    The ending of its name tells the tool: .json SurveyJS, .xlsx XLSForm, and .lss, .txt or .tsv
    LimeSurvey.

    The report says whether each element was kept, changed or dropped, how and why. Mistakes that
    remain are listed last.
    """
    if output is not None and output.suffix != ".json":
        raise DesignError(f"{output}: the definition is written as JSON; use a name with .json")
    caps = configured_settings().caps
    with naming_file(file):
        imported = import_questionnaire(read_file(file), file.name, skip_logic=skip_logic)
    mistakes = [mistake.text for mistake in imported.check(caps).mistakes]
    if output is not None:
        text = json.dumps(imported.definition(caps), indent=2, ensure_ascii=False)
        with output.open("x", encoding="utf-8") as target:
            target.write(f"{text}\n")
    if as_json:
        elements = [asdict(element) for element in imported.elements]
        remaining = DefinitionError([("", text) for text in mistakes])
        remaining.file = str(output or "")
        listed = list(mistakes_as_json(remaining))
        click.echo(json.dumps({"elements": elements, "mistakes": listed}, indent=2))
        return
    for line in [*map(str, imported.elements), *(f"mistake  {text}" for text in mistakes)]:
        click.echo(printable(line))
    counts = Counter(element.outcome for element in imported.elements)
    click.echo(f"{counts['kept']} kept, {counts['changed']} changed, {counts['dropped']} dropped")


@click.command()
@click.argument("definition", type=PATH)
@click.option("--to", "form", type=click.Choice(sorted(WRITERS)), required=True, help="The format.")
@click.option(
    "--output", type=PATH, required=True, help="Write the questionnaire to this new file."
)
@json_option("Print the notes, or errors, as JSON.")
def convert(definition: Path, form: str, output: Path, as_json: bool) -> None:
    """Write a DEFINITION file in the format of another tool.

    The command prints a note on everything that the format cannot express.
    """
    exported = export_questionnaire(load_file(definition, configured_settings().caps), form)
    if output.suffix.lower() != exported.ending:
        raise DesignError(f"--output {output}: the file name must end in {exported.ending}")
    with output.open("xb") as target:
        target.write(exported.content)
    if as_json:
        click.echo(json.dumps({"output": str(output), "notes": exported.notes}, indent=2))
        return
    for note in exported.notes:
        click.echo(printable(f"note  {note}"))
    click.echo(f"wrote {output}: {quantity(len(exported.notes), 'note')}")


@click.command()
def schema() -> None:
    """Print the JSON Schema of definition files, for completion in editors."""
    click.echo(json.dumps(definition_schema(), indent=2))


@click.command("list")
@json_option("Print the surveys, or errors, as JSON.")
def list_surveys(as_json: bool) -> None:
    """List the newest version of each survey: short name, state, released responses, title."""
    store = configured_store()
    rows = [
        {
            "slug": survey.slug,
            "version": survey.version,
            "state": survey.state,
            "responses": survey.n_released,
            "title": find_survey(store, survey.slug).definition.title,
        }
        for survey in store.survey_heads()
        if not is_test_run(survey.slug)
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    for row in () if as_json else rows:
        head = f"{row['slug']}: version {row['version']}, {row['state']}"
        click.echo(f"{head}, {row['responses']:,} responses. {row['title']}")


@click.command()
@click.argument("slug")
@schedule_options
def schedule(slug: str, opens: datetime | None, closes: datetime | None, limit: int | None) -> None:
    """Change when SLUG accepts responses and how many, and print the schedule."""
    store = configured_store()
    survey = find_survey(store, slug)
    if survey.state == "closed":
        raise ClosedError(f"{slug} is closed; closing is permanent")
    changed = updated_schedule(survey.schedule, opens, closes, limit)
    validate_schedule(changed, survey.definition.field_until)
    if changed != survey.schedule:
        store.set_schedule(survey.key, changed)
    click.echo(f"{slug} accepts {describe_schedule(changed)}")


@click.command()
@click.argument("file", type=PATH)
@json_option("Print numbers or mistakes as JSON.")
def check(file: Path, as_json: bool) -> None:
    """List every mistake in a definition FILE; if there are none, show its privacy loss."""
    others: list[Definition] = []
    try:
        survey = load_file(file, configured_settings().caps)
    except DefinitionError as error:
        if as_json:
            raise
        for place, text in error.mistakes:
            click.echo(
                f"{file}: {place}: {text}" if place != file.name else f"{place}: {text}", err=True
            )
        sys.exit(1)
    definition = freeze(survey, 1)
    with suppress(StoreError):  # a file can be checked on a machine without a database
        others = _other_definitions(configured_store(), survey.slug)
    _warn(definition, others)
    privacy_loss = ledger(definition)
    if as_json:
        click.echo(json.dumps(privacy_loss.to_json(), indent=2))
        return
    n_asked = privacy_loss.questions_asked
    asked = (
        f", of which each person is asked {n_asked}" if n_asked < len(definition.questions) else ""
    )
    summary = [
        f"The definition {file} is valid: {quantity(len(definition.questions), 'question')} in "
        f"{quantity(len(definition.languages), 'language')}{asked}.",
        f"{report_heading(definition)}. {report_sentences(definition.ratio)}",
        f"To publish it: survey publish {file}",
        "",
        "Technical details",
        f"  report size: {definition.report_bytes:,} bytes",
    ]
    click.echo("\n".join([*summary, *lines(privacy_loss)]))


@click.command()
@click.argument("file", type=PATH)
@schedule_options
@json_option("Print the version, or errors, as JSON.")
def publish(
    file: Path,
    opens: datetime | None,
    closes: datetime | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Publish a definition FILE as a new version, which cannot be changed."""
    # Hashing the client is slow; the other commands of this module do not need it.
    settings, store = configured_settings(), configured_store()
    definition = load_file(file, settings.caps)
    _warn(freeze(definition, 1), _other_definitions(store, definition.slug))
    newest = next(iter(store.versions(definition.slug)), None)
    previous = newest.schedule if newest else Schedule()
    schedule = updated_schedule(previous, opens, closes, limit)
    survey = publish_survey(store, definition, utc_today(), schedule)
    if survey.version > 1:
        click.echo("links and invitations of earlier versions no longer work", err=True)
    link = respondent_link(survey, settings) if survey.definition.access != "invitation" else None
    if as_json:
        head = {"slug": survey.slug, "version": survey.version, "definition": survey.sha256}
        click.echo(json.dumps(head | {"link": link}, indent=2))
        return
    click.echo(f"published {survey.slug} version {survey.version}")
    click.echo(f"definition {survey.sha256}")
    click.echo(link or f"create its invitation links with: survey invite {survey.slug}")


@click.command()
@click.argument("slug")
def close(slug: str) -> None:
    """Close SLUG permanently.

    The next release includes its pending reports and deletes those of groups that are too small.
    """
    changed = close_survey(configured_store(), slug, utc_today())
    click.echo(f"closed {slug}" if changed else f"{slug} was already closed")


def _warn(definition: Definition, others: Iterable[Definition]) -> None:
    caps = configured_settings().caps
    for warning in publication_warnings(Questions.of(definition), caps, others):
        click.echo(f"warning: {warning}", err=True)


def _other_definitions(store: Store, slug: str) -> list[Definition]:
    """Return the open and closed surveys of the team of `slug`; without a team, all of them."""
    teams = {name for member in store.members(slug) for name in store.roles(member.researcher)}
    return [
        survey.definition
        for survey in store.surveys()
        if survey.slug != slug and not survey.is_test_run and survey.state in ("open", "closed")
        if not teams or survey.slug in teams
    ]


def _page_url(_ctx: click.Context, _parameter: click.Parameter, url: str) -> str:
    """Return the URL of a page on another host; reject URLs to which no fragment can be added."""
    if url and not re.fullmatch(r"https?://[^\s?#]+/(?:index\.html)?", url):
        raise click.BadParameter(
            f"{url!r} must be the URL of the folder that contains the page and end with /"
        )
    return url


page_option = click.option(
    "--page",
    default="",
    metavar="URL",
    callback=_page_url,
    help="Address of the page on another host (see `survey bundle`).",
)


@click.command()
@click.argument("slug")
@page_option
@click.option(
    "--qr", type=PATH, metavar="FILE", help="Also write it as a QR code to FILE.svg or FILE.png."
)
@click.option("--tablet", is_flag=True, help="Link that prepares a tablet for field mode.")
def link(slug: str, page: str, qr: Path | None, tablet: bool) -> None:
    """Print the open link of SLUG; anybody can use it any number of times."""
    survey = _open_survey(configured_store(), slug)
    if tablet and survey.definition.field is None:
        raise SurveyError(f"{slug} has no field mode; publish a version with field_until")
    if survey.definition.access == "invitation":
        raise SurveyError(
            f"{slug} accepts responses by invitation only; create links with: survey invite {slug}"
        )
    settings = _settings_of_links(page)
    address = respondent_link(survey, settings, page=page)
    if tablet:
        address = field_link(survey, settings, page)
    if qr:
        image_format = qr.suffix.lower().removeprefix(".")
        if image_format not in QR_FORMATS:
            raise SurveyError(f"--qr {qr}: the file name must end in .svg or .png")
        _check_new(qr)
        qr.write_bytes(qr_code(address, image_format))
    click.echo(address)


@click.command()
@click.argument("slug")
@click.option(
    "--count", required=True, type=click.IntRange(1, 100_000), help="Number of invitations."
)
@click.option(
    "--stratum", default="", help="Group of the invitations; the server sees it with each report."
)
@page_option
@click.option("--csv", "csv_file", type=PATH, metavar="FILE", help="Write the links to a new FILE.")
@click.option(
    "--qr", type=PATH, metavar="DIR", help="Write each link as a QR code (SVG) to a new DIR."
)
def invite(
    slug: str, count: int, stratum: str, page: str, csv_file: Path | None, qr: Path | None
) -> None:
    """Create single-use invitations to SLUG; the server keeps only their hashes."""
    store = configured_store()
    survey = _open_survey(store, slug)
    stratum = validate_stratum(store, survey, stratum, count)
    tokens = new_tokens(count)
    settings = _settings_of_links(page)
    links = [
        respondent_link(survey, settings, token=token, stratum=stratum, page=page)
        for token in tokens
    ]
    # Files first: an invitation that is issued but not written would be lost.
    with _invitation_files(links, stratum, csv_file, qr):
        issue_invitations(store, survey, stratum, tokens)
    if csv_file is None:
        click.echo("\n".join(links))
    else:
        click.echo(f"wrote {quantity(count, 'invitation')} to {csv_file}; each works once")


@click.command()
@click.argument("slug")
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...")
def import_tablet(slug: str, files: Sequence[Path]) -> None:
    """Import FILEs that tablets in field mode have saved; each response counts once.

    If a file cannot be imported, the command prints the reason, imports the other files and exits
    with 1.
    """
    from survey.collect.incoming_reports import Intake

    store = configured_store()
    find_survey(store, slug)
    intake, all_imported = Intake(store), True
    for file in files:
        try:
            n_slots = intake.receive_file(slug, file.read_bytes(), utc_today())
        except (ReportError, OutdatedError, ClosedError, NotFoundError) as error:
            message, all_imported = str(error), False
        except OSError as error:
            message, all_imported = str(error.strerror), False
        else:
            slots = quantity(n_slots, "slot")
            click.echo(f"{file}: imported {slots}; the responses appear with the next releases")
            continue
        click.echo(f"{file}: {message}", err=True)
    if not all_imported:
        sys.exit(1)


def _open_survey(store: Store, slug: str) -> PublishedSurvey:
    survey = find_survey(store, slug)
    if survey.state == "closed":
        raise ClosedError(f"{slug} is closed and accepts no responses")
    return survey


def _settings_of_links(page: str) -> Settings:
    """Return the settings; warn if the resulting links open only on this machine."""
    settings = configured_settings()
    if settings.opens_here_only and not page:
        click.echo("these links work on this machine only: set SURVEY_PUBLIC_URL", err=True)
    return settings


@contextmanager
def _invitation_files(
    links: Sequence[str], stratum: str, csv_file: Path | None, qr: Path | None
) -> Iterator[None]:
    """Write links to files that only their owner can read; remove them if the block fails."""
    for path in (csv_file, qr):
        if path:
            _check_new(path)
    try:
        if csv_file:
            descriptor = os.open(csv_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as open_file:
                open_file.write(links_csv(links, stratum))
                open_file.flush()
                os.fsync(descriptor)
        if qr:
            qr.mkdir(mode=0o700)
            width = len(str(len(links)))
            for n, address in enumerate(links, 1):
                (qr / f"{n:0{width}}.svg").write_bytes(qr_code(address))
        yield
    except BaseException:
        for file in [csv_file, *(qr.glob("*.svg") if qr else ())]:
            if file:
                file.unlink(missing_ok=True)
        raise


def _check_new(path: Path) -> None:
    if path.exists():
        raise SurveyError(f"{path} already exists; choose another name")
    if not path.absolute().parent.is_dir():
        raise SurveyError(f"there is no directory {path.absolute().parent}; create it first")
