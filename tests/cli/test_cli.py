"""The command line: its effects, its exit codes, and the demo in a new directory."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
import urllib.request
from http.cookiejar import CookieJar
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from survey.cli import BROKEN_PIPE, main
from survey.collect.publication import close, publish
from survey.demo import DEFINITION, prepare
from survey.errors import StoreBusyError, StoreError
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import find_survey, open_store
from tests.conftest import SECRET, SMALL, TODAY, free_port
from tests.store.reports import add, random_reports
from tests.surveys import EVERY_TYPE


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("SURVEY_DATABASE", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setenv("SURVEY_PASSWORD_COST", "1")
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    return lambda *arguments, **options: CliRunner().invoke(main, arguments, **options)


def test_a_survey_is_checked_published_estimated_exported_and_closed(run, tmp_path):
    file = str(tmp_path / "small.toml")
    checked = run("check", file)
    assert checked.exit_code == 0
    assert checked.stdout.startswith(
        f"The definition {file} is valid: 2 questions in 1 language.\n"
        "Privacy loss of one complete response: ε 3.584 (weak). One complete response changes the "
        "odds of a guess about someone by a factor of at most 36. A suspicion of 10% becomes at "
    )
    steps = (
        "m001_foundation",
        "m002_invitations",
        "m003_schedules",
        "m004_accounts",
        "m005_workspace",
        "m006_sealing",
        "m007_collaboration",
        "m008_pictures",
        "m009_release_notices",
        "m010_damage",
        "m011_sign_ins",
        "m012_digests",
        "m013_strata",
        "m014_short_ids",
        "m015_whole_ids",
        "m016_titles",
    )
    assert run("migrate").output == "".join(f"applied {step}\n" for step in steps)
    assert run("migrate").output == "nothing to do\n"
    published = run("publish", file)
    assert published.exit_code == 0
    digest = re.search(r"definition ([0-9a-f]{64})", published.output)[1]
    assert f"http://127.0.0.1:8000/s/small#d={digest[:32]}" in published.output
    assert "Not enough responses yet" in run("estimate", "small").output
    assert len(list(csv.DictReader(io.StringIO(run("export", "small").output)))) == 8
    target = tmp_path / "out.csv"
    run("export", "small", "--output", str(target))
    assert target.read_text(encoding="utf-8").startswith("survey_id,")
    assert run("close", "small").output == "closed small\n"
    assert run("close", "small").output == "small was already closed\n"


def test_check_prints_every_mistake_with_its_place_and_exits_with_1(run, tmp_path):
    file = tmp_path / "broken.toml"
    file.write_text(SMALL.replace('"3/4"', "0.2").replace('"often"', '"once"'), encoding="utf-8")
    response = run("check", str(file))
    assert response.exit_code == 1
    lines = response.stderr.splitlines()
    assert len(lines) == 3
    assert all(str(file) in line for line in lines)
    assert "option 3 (once), id" in response.stderr


def test_check_prints_mistakes_as_json_with_their_paths(run, tmp_path):
    file = tmp_path / "broken.toml"
    file.write_text(SMALL.replace('"often"', '"once"'), encoding="utf-8")
    response = run("check", str(file), "--json")
    assert response.exit_code == 1
    (mistake,) = json.loads(response.stdout)["mistakes"]
    assert mistake["path"] == ["pages", 1, "questions", 0, "options", 2, "id"]
    assert mistake["place"].endswith("option 3 (once), id")
    assert mistake["message"].startswith('"once" is used twice')
    assert (mistake["file"], mistake["line"]) == (str(file), None)
    file.write_text("slug =", encoding="utf-8")
    (mistake,) = json.loads(run("check", str(file), "--json").stdout)["mistakes"]
    assert (mistake["place"], mistake["path"]) == ("broken.toml", None)


def test_every_command_that_reads_a_file_prints_its_mistakes_as_json_in_one_form(
    run, tmp_path, monkeypatch
):
    for name, content in {
        "broken.toml": SMALL.replace('"often"', '"once"'),
        "cut.toml": 'slug = "a"\n\ntitle = = "b"',
        "cut.json": '{"title": "A",\n "pages": [}',
        "cut.lss": "<document>\n<surveys>\n</document>",
        "cut.tsv": 'class\ttype/scale\tname\ttext\nS\t\tlanguage\ten\nQ\tL\tq\t"open',
        "reports.csv": "a\n0\n1\n7\n",
        "channel.json": "[",
    }.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    path = ["pages", 1, "questions", 0, "options", 2, "id"]
    debias, sizes = ("debias", "reports.csv", "--channel"), ("--total", "3", "--n", "500")
    monkeypatch.chdir(tmp_path)
    run("migrate")
    cases = [
        (("check", "broken.toml"), "broken.toml", None, path),
        (("publish", "broken.toml"), "broken.toml", None, path),
        (("simulate", "broken.toml"), "broken.toml", None, path),
        (("convert", "broken.toml", "--to", "xlsform", "--output", "x"), "broken.toml", None, path),
        (("plan", "--questions", "broken.toml", *sizes), "broken.toml", None, path),
        (("publish", "cut.toml"), "cut.toml", 3, None),
        (("import", "cut.json"), "cut.json", 2, None),
        (("import", "cut.lss"), "cut.lss", 3, None),
        (("import", "cut.tsv"), "cut.tsv", 3, None),
        (("import", "none.lss"), "none.lss", None, None),
        ((*debias, "grr:k=3,p=0.5"), "reports.csv", 4, None),
        ((*debias, "channel.json"), "channel.json", None, None),
        ((*debias, "grr:k=3"), None, None, None),
        (("estimate", "nobody"), None, None, None),
    ]
    for arguments, file, line, place in cases:
        plain, answer = run(*arguments), run(*arguments, "--json")
        assert (plain.exit_code, answer.exit_code) == (1, 1), (arguments, answer.output)
        (mistake,) = json.loads(answer.stdout)["mistakes"]
        assert mistake.keys() == {"file", "line", "place", "path", "message"}
        assert mistake["message"] in plain.stderr, arguments
        actual = mistake["file"], mistake["line"], mistake["path"]
        assert actual == (file, line, place), arguments


def test_publication_conversion_and_plans_are_printed_as_json(run, tmp_path):
    file, output = tmp_path / "one.toml", tmp_path / "one.xlsx"
    file.write_text(SMALL.replace('slug = "small"', 'slug = "one"'), encoding="utf-8")
    answer = run("convert", str(file), "--to", "xlsform", "--output", str(output), "--json")
    converted = json.loads(answer.stdout)
    assert converted["output"] == str(output)
    assert any("nothing is randomized" in note for note in converted["notes"])
    run("migrate")
    published = json.loads(run("publish", str(file), "--json").stdout)
    store = open_store(f"sqlite:///{tmp_path / 'cli.db'}")
    survey = find_survey(store, "one")
    store.close_connections()
    assert (published["slug"], published["version"]) == ("one", 1)
    assert published["definition"] == survey.sha256
    assert "/s/one" in published["link"]
    options = ("--total", "3", "--n", "500", "--json")
    planned = json.loads(run("plan", "--questions", str(file), *options).stdout)
    assert planned["recommended"] in planned["designs"]
    assert [q["id"] for q in planned["recommended"]["questions"]] == [
        question.id for question in survey.definition.questions
    ]
    plan = json.loads(run("plan", "--epsilon", "1", "--n", "500", "--json").stdout)["plan"]
    assert (plan["possible"], plan["n"]) == (True, 500)


def test_a_new_definition_can_be_published_at_once_and_overwrites_nothing(
    run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert "survey check working-hours.toml" in run("new", "working-hours").output
    checked = run("check", "working-hours.toml")
    assert checked.exit_code == 0
    assert "3 questions" in checked.output
    Draft202012Validator(json.loads(run("schema").output)).validate(
        tomllib.loads((tmp_path / "working-hours.toml").read_text())
    )
    before = (tmp_path / "working-hours.toml").read_bytes()
    assert run("new", "working-hours").exit_code == 1
    assert (tmp_path / "working-hours.toml").read_bytes() == before
    refused = run("new", "../Hours")
    assert (refused.exit_code, refused.stderr[:27]) == (1, 'survey: NAME: "../Hours" do')
    names = {file.name for file in tmp_path.glob("*.toml")}
    assert names == {"small.toml", "working-hours.toml"}


def test_a_questionnaire_of_another_tool_is_imported_with_a_report(run, tmp_path):
    elements = [{"type": "boolean", "name": "tired"}, {"type": "comment", "name": "why"}]
    file, output = tmp_path / "theirs.json", tmp_path / "ours.json"
    file.write_text(json.dumps({"title": "Nights", "elements": elements}), encoding="utf-8")
    printed = run("import", str(file), "--output", str(output))
    assert printed.exit_code == 0, printed.output
    assert printed.output.splitlines() == [
        "kept  tired (boolean)",
        "dropped  why (comment): free text cannot be randomized",
        "1 kept, 0 changed, 1 dropped",
    ]
    assert run("check", str(output)).exit_code == 0
    report = json.loads(run("import", str(file), "--json").output)
    assert [element["outcome"] for element in report["elements"]] == ["kept", "dropped"]
    assert report["mistakes"] == []
    before = output.read_bytes()
    for arguments in ((str(file), "--output", str(output)), (str(tmp_path / "small.toml"),)):
        refused = run("import", *arguments)
        assert (refused.exit_code, len(refused.stderr.splitlines())) == (1, 1)
    assert output.read_bytes() == before


def test_a_definition_is_converted_to_an_xlsform_with_notes_on_the_rest(run, tmp_path):
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    source, output = str(tmp_path / "small.toml"), tmp_path / "theirs.xlsx"
    converted = run("convert", source, "--to", "xlsform", "--output", str(output))
    assert converted.exit_code == 0, converted.output
    assert "nothing is randomized" in converted.output
    assert ", 0 dropped" in run("import", str(output)).output.splitlines()[-1]
    before = output.read_bytes()
    for name in ("theirs.xlsx", "theirs.json"):
        refused = run("convert", source, "--to", "xlsform", "--output", str(tmp_path / name))
        assert (refused.exit_code, len(refused.stderr.splitlines())) == (1, 1)
    assert output.read_bytes() == before


def test_list_has_the_newest_version_of_each_survey_and_no_test_run(run, tmp_path):
    run("migrate")
    assert run("list").output == ""
    for title in ("A small survey", "A newer survey"):
        text = SMALL.replace("A small survey", title)
        (tmp_path / "small.toml").write_text(text, encoding="utf-8")
        run("publish", str(tmp_path / "small.toml"))
    store = open_store(f"sqlite:///{tmp_path / 'cli.db'}")
    trial = load(SMALL.encode(), "s.toml", Caps()).model_copy(update={"slug": "trial-1-small"})
    publish(store, trial, TODAY)
    assert run("list").output == "small: version 2, open, 0 responses. A newer survey\n"
    (row,) = json.loads(run("list", "--json").output)
    assert (row["slug"], row["version"], row["responses"]) == ("small", 2, 0)


def test_a_rejected_command_prints_one_line_and_exits_with_1(run, tmp_path):
    run("migrate")
    run("publish", str(tmp_path / "small.toml"))
    for arguments in (
        ["estimate", "none"],
        ["export", "none"],
        ["close", "none"],
        ["publish", "none.toml"],
        ["check", "none.toml"],
        ["researcher", "add", "nobody", "--password", "copper kite unfolds slowly"],
        ["researcher", "add", "a@example.org", "--password", "short"],
        ["serve"],
        ["export", "small", "--output", "/nonexistent/x.csv"],
        ["demo", "--directory", "/dev/null"],
        ["estimate", "\udcff"],
        ["estimate", "../../etc"],
        ["estimate", "small", "--level", "95"],
        ["estimate", "small", "--interval", "wald"],
        ["estimate", "small", "--target", "everybody"],
        ["export", "small", "--level", "nan"],
        ["export", "small", "--target", "respondents", "--interval", "wilson"],
    ):
        result = run(*arguments)
        assert result.exit_code == 1, arguments
        assert len(result.stderr.splitlines()) == 1, (arguments, result.stderr)
        assert "Traceback" not in result.output, arguments


def test_wrong_usage_exits_with_2(run):
    for arguments in (
        ["none"],
        ["check"],
        ["demo", "--port", "0"],
        ["serve", "--workers", "many"],
        ["estimate", "small", "--level", "much"],
        ["estimate", "small", "--csv", "--json"],
        ["simulate", "small", "--csv", "--json"],
    ):
        assert run(*arguments).exit_code == 2, arguments


def test_numbers_too_large_for_the_database_are_rejected_by_name(run, tmp_path):
    run("migrate")
    run("publish", str(tmp_path / "small.toml"))
    huge = str(10**20)
    for arguments, option in (
        (["schedule", "small", "--most", huge], "--most"),
        (["publish", str(tmp_path / "small.toml"), "--most", huge], "--most"),
        (["estimate", "small", "--version", huge], "--version"),
        (["export", "small", "--version", huge], "--version"),
        (["simulate", "small", "--version", huge], "--version"),
        (["simulate", "small", "--n", huge], "--n"),
        (["invite", "small", "--count", huge], "--count"),
        (["audit", "--samples", huge], "--samples"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert option in result.stderr, (arguments, result.stderr)


def test_a_nul_character_in_any_argument_is_wrong_usage(run):
    for command in (
        ["check", "\0"],
        ["publish", "a\0.toml"],
        ["estimate", "small\0"],
        ["export", "small", "--output", "\0"],
        ["researcher", "add", "a\0@example.org", "--password", "copper kite unfolds slowly"],
        ["backup", "file\0"],
        ["copy-store", "sqlite:///a\0", "sqlite:///b"],
    ):
        result = run(*command)
        assert result.exit_code == 2, command
        assert "NUL" in result.stderr, (command, result.stderr)


def test_migrate_does_not_create_the_directories_of_a_mistyped_path(run, monkeypatch, tmp_path):
    missing = tmp_path / "mistyped" / "survey.db"
    monkeypatch.setenv("SURVEY_DATABASE", f"sqlite:///{missing}")
    result = run("migrate")
    assert result.exit_code == 1
    assert result.stderr == f"survey: there is no directory {missing.parent}; create it first\n"
    assert not missing.parent.exists()


def test_a_closed_pipe_ends_a_command_without_a_message(run, tmp_path):
    file = tmp_path / "strong.toml"  # without a warning
    file.write_text(SMALL.replace('truth_probability = "3/4"', "epsilon = 1"), encoding="utf-8")
    command = [sys.executable, "-m", "survey.cli", "check", str(file)]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        result = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, timeout=60)
    assert result.stderr == b""
    assert result.returncode == BROKEN_PIPE


def test_without_a_database_every_command_names_survey_migrate(run):
    response = run("estimate", "small")
    assert response.exit_code == 1
    assert "survey migrate" in response.stderr


def test_a_researcher_is_added_once(run):
    run("migrate")
    arguments = ["researcher", "add", "a@example.org", "--password", "copper kite unfolds slowly"]
    assert "can sign in" in run(*arguments).output
    assert "already" in run(*arguments).stderr


def test_a_release_time_that_is_not_coarse_is_rejected_for_a_public_server(run, monkeypatch):
    for name, value in {**SAFE, "SURVEY_RELEASE_EVERY": "599"}.items():
        monkeypatch.setenv(name, value)
    assert "must be 600 or more" in run("serve").stderr


def test_a_release_by_hand_releases_nothing_early(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SURVEY_KEYS", str(tmp_path / "keys"))
    run("migrate")
    run("publish", str(tmp_path / "small.toml"))
    # The first pass gives the survey its key and finds nothing to release.
    assert run("release").output == "released 0 reports\n"
    store = open_store(f"sqlite:///{tmp_path / 'cli.db'}")
    add(store, store.surveys()[0], random_reports(80))
    store.close_connections()
    assert run("release").output == "released 0 reports\n"


def test_convert_writes_the_format_of_another_tool_and_notes_what_it_lacks(run, tmp_path):
    definition, output = tmp_path / "small.toml", tmp_path / "small.json"
    definition.write_text(EVERY_TYPE, encoding="utf-8")
    arguments = ["convert", str(definition), "--to", "surveyjs"]
    printed = run(*arguments, "--output", str(output))
    assert printed.exit_code == 0
    assert "note  contact: the contact has no counterpart" in printed.output
    assert json.loads(output.read_text(encoding="utf-8"))["title"] == "Work and health"
    assert run("import", str(output)).exit_code == 0
    again = run(*arguments, "--output", str(output))
    other = run(*arguments, "--output", str(tmp_path / "small.txt"))
    assert again.exit_code == other.exit_code == 1
    assert "must end in .json" in other.stderr
    assert not (tmp_path / "small.txt").exists()


def test_commands_print_the_address_of_their_readers(run, monkeypatch, tmp_path):
    monkeypatch.setenv("SURVEY_PUBLIC_URL", "https://survey.example.org/")
    monkeypatch.setenv("SURVEY_RESEARCH_URL", "https://research.example.org/")
    run("migrate")
    account = run("researcher", "add", "a@example.org", "--password", "copper kite unfolds slowly")
    assert "sign in at https://research.example.org/research/\n" in account.output
    published = run("publish", str(tmp_path / "small.toml"))
    assert "https://survey.example.org/s/small#d=" in published.output


def test_serve_rejects_unsafe_settings(run, monkeypatch):
    for variable, value, words in (
        ("SURVEY_SECRET", "short", "32 or more"),
        ("SURVEY_SECRET", "change-me-change-me-change-me-change-me", "32 or more"),
        ("SURVEY_SECRET", "x" * 64, "32 or more"),
        ("SURVEY_PUBLIC_URL", "http://survey.example.org", "https://"),
        ("SURVEY_PUBLIC_URL", "ftp://127.0.0.1", "https://"),
        ("SURVEY_RELEASE_EVERY", "hourly", "not a number"),
        ("SURVEY_RELEASE_EVERY", "604801", "from 1 to"),
        ("SURVEY_EPSILON_PER_SURVEY", "21", "to 20"),
        ("SURVEY_EPSILON_PER_SURVEY", "NaN", "not a number"),
        ("SURVEY_EPSILON_PER_QUESTION", "-1", "to 12"),
        ("SURVEY_EPSILON_WARNING", "NaN", "not a number"),
        ("SURVEY_TRUSTED_PROXIES", "1_0", "not a number"),
        ("SURVEY_TRUSTED_PROXIES", "\u0661", "not a number"),
        ("SURVEY_PASSWORD_COST", "0", "from 1 to"),
        ("SURVEY_PUBLIC_URL", "http://[::", "https://"),
        ("SURVEY_SECERT", SECRET, "unknown setting"),
        ("SURVEY_DATABASE", "mysql://x", "sqlite:///PATH"),
    ):
        with monkeypatch.context() as environment:
            environment.setenv("SURVEY_SECRET", SECRET)
            environment.setenv(variable, value)
            result = run("serve", "--port", str(free_port()))
        assert result.exit_code == 1, (variable, value)
        assert words in result.stderr, (variable, value, result.stderr)


SAFE = {
    "SURVEY_SECRET": SECRET,
    "SURVEY_PUBLIC_URL": "https://survey.example.org",
    "SURVEY_TRUSTED_PROXIES": "1",
}


@pytest.fixture
def server(run, tmp_path):
    """Return a function that runs `survey serve` until it exits because of unsafe settings."""
    run("migrate")
    environment = {
        "SURVEY_DATABASE": f"sqlite:///{tmp_path / 'cli.db'}",
        "PATH": os.environ["PATH"],
    }

    def run_server(*arguments, **variables):
        command = [sys.executable, "-m", "survey.cli", "serve", "--port", str(free_port())]
        return subprocess.run(
            [*command, *arguments],
            env=environment | SAFE | variables,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run_server


@pytest.mark.web
@pytest.mark.security
@pytest.mark.parametrize(
    ("arguments", "variables", "words"),
    [
        ([], {"SURVEY_SECRET": "please-change-me-before-production!!"}, "random characters"),
        ([], {"FLASK_DEBUG": "1"}, "debugging shows the content of requests"),
        ([], {"SURVEY_TRUSTED_PROXIES": "0"}, "the TLS proxy is not trusted"),
        (
            ["--address", "0.0.0.0"],
            {"SURVEY_TRUSTED_PROXIES": "0", "SURVEY_PUBLIC_URL": "http://127.0.0.1:8000"},
            "accepts plain http from other machines",
        ),
    ],
)
def test_the_server_does_not_start_with_unsafe_settings(server, arguments, variables, words):
    response = server(*arguments, **variables)
    assert response.returncode == 1
    assert words in response.stderr


@pytest.mark.security
def test_the_server_does_not_start_if_others_can_read_its_database(server, tmp_path):
    (tmp_path / "cli.db").chmod(0o644)
    response = server()
    assert response.returncode == 1
    assert "chmod 600" in response.stderr


@pytest.mark.security
def test_config_check_lists_unsafe_settings_with_remedies(run, monkeypatch, tmp_path):
    run("migrate")
    for name, value in SAFE.items():
        monkeypatch.setenv(name, value)
    safe = run("config", "check")
    assert safe.exit_code == 0, safe.output
    assert "refused" not in safe.output
    assert "the server would start;" in safe.output
    monkeypatch.setenv("FLASK_DEBUG", "1")
    (tmp_path / "cli.db").chmod(0o644)
    unsafe = run("config", "check")
    assert unsafe.exit_code == 1
    assert f"run: chmod 600 {tmp_path}" in unsafe.output
    assert "unset it" in unsafe.output
    assert "(2 refused)" in unsafe.stderr


def demo(directory, port, *arguments, **variables):
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "survey.cli",
            "demo",
            "--port",
            str(port),
            "--directory",
            str(directory),
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **variables},
    )


def printed_until(process, words):
    lines = []
    for line in process.stdout:
        lines.append(line)
        if words in line:
            return "".join(lines)
    raise AssertionError("".join(lines))


@pytest.mark.long  # every submission starts the demo from an installed package as well
def test_the_demo_prints_links_that_work_and_survives_ctrl_c(tmp_path):
    port = free_port()
    process = demo(tmp_path / "demo", port, "--respondents", "600")
    output = printed_until(process, "Ctrl-C")
    link = re.search(r"Answer the survey +(\S+)", output)[1]
    dashboard = re.search(r"Dashboard +(\S+)", output)[1]
    email, password = re.search(r"sign in with +(\S+) +(\S+)", output).groups()
    table = re.search(r"Estimates as CSV +(\S+)", output)[1]
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with opener.open(link) as page:
        assert page.status == 200
    with opener.open(dashboard) as page:
        token = re.search(r'name="csrf_token" type="hidden" value="([^"]+)"', page.read().decode())[
            1
        ]
        form = urlencode({"csrf_token": token, "email": email, "password": password})
        address = page.url
    with opener.open(address, data=form.encode()) as page:
        assert "Your working conditions" in page.read().decode()
    with opener.open(table) as download:
        rows = list(csv.DictReader(io.StringIO(download.read().decode())))
    # Each respondent is asked two of the eight questions.
    assert all(0 < int(row["n_reports"]) < 300 for row in rows)
    assert len({row["question_id"] for row in rows}) == 8
    assert {int(row["n_options"]) for row in rows} >= {2, 7}
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert process.returncode == 0
    again = open_store(f"sqlite:///{tmp_path / 'demo' / 'demo.db'}")
    (survey,) = again.surveys()
    assert again.tally(survey.key).n == 600
    assert survey.definition.ratio <= 20
    again.close_connections()


def reports_in(path) -> int:
    """Return the number of reports in a demo's database, or 0 if it does not exist yet."""
    store = open_store(f"sqlite:///{path}")
    try:
        return sum(store.n_released(s.key) + store.n_pending(s.key) for s in store.surveys())
    except (StoreError, StoreBusyError):
        return 0
    finally:
        store.close_connections()


@pytest.mark.long
def test_an_interrupted_demo_continues_where_it_stopped(tmp_path):
    path = tmp_path / "demo" / "demo.db"
    process = demo(path.parent, free_port(), "--respondents", "100000")
    while not reports_in(path):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert process.returncode == 1
    n_stored = reports_in(path)
    assert 0 < n_stored < 100_000
    process = demo(path.parent, free_port(), "--respondents", str(n_stored + 50))
    printed_until(process, "Ctrl-C")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert reports_in(path) == n_stored + 50


@pytest.mark.long
def test_a_second_demo_in_the_same_directory_is_rejected_in_one_line(tmp_path):
    process = demo(tmp_path / "demo", free_port(), "--respondents", "50")
    printed_until(process, "Ctrl-C")
    response = CliRunner().invoke(
        main, ["demo", "--fresh", "--port", str(free_port()), "--directory", str(tmp_path / "demo")]
    )
    assert response.exit_code == 1
    assert "another demo runs" in response.stderr
    assert reports_in(tmp_path / "demo" / "demo.db") == 50
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)


@pytest.mark.long
def test_the_demo_prints_its_links_despite_a_proxy_setting(tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    process = demo(tmp_path / "demo", free_port(), "--respondents", "0")
    assert "Dashboard" in printed_until(process, "Ctrl-C")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)


@pytest.mark.long
@pytest.mark.parametrize("change", ["closed", "changed"])
def test_a_demo_whose_survey_was_changed_or_closed_still_starts(tmp_path, change):
    (tmp_path / "demo").mkdir()
    store = open_store(f"sqlite:///{tmp_path / 'demo' / 'demo.db'}")
    store.migrate()
    prepare(store, TODAY)
    if change == "closed":
        close(store, "workplace", TODAY)
    else:
        text = DEFINITION.read_text(encoding="utf-8").replace('"leaving"', '"leave_soon"')
        publish(store, load(text.encode(), "w.toml", Caps()), TODAY)
    store.close_connections()
    process = demo(tmp_path / "demo", free_port(), "--respondents", "100")
    assert "--fresh starts over" in printed_until(process, "Ctrl-C")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)


@pytest.mark.long
def test_the_demo_opens_the_survey_in_a_browser_on_request(tmp_path):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    process = demo(
        tmp_path / "demo", free_port(), "--respondents", "0", "--open", BROWSER=f"{browser} %s"
    )
    output = printed_until(process, "Ctrl-C")
    while not (opened.exists() and opened.read_text()):
        assert process.poll() is None
    assert opened.read_text().strip() in output
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)


def test_a_weakly_protected_survey_causes_a_warning_before_publication(run, tmp_path):
    weak = tmp_path / "weak.toml"
    weak.write_text(SMALL.replace('truth_probability = "3/4"', "epsilon = 2.5"), encoding="utf-8")
    run("check", str(weak))  # without a database
    run("migrate")
    for command in ("check", "publish"):
        warned = run(command, str(weak))
        assert warned.exit_code == 0
        assert "Weak protection: one complete response changes the odds by" in warned.stderr
        assert "“Did you fall asleep at work?” alone changes the odds by" in warned.stderr


def test_check_and_publish_name_nearly_equal_questions_of_other_surveys(run, tmp_path):
    run("migrate")
    other = tmp_path / "other.toml"
    other.write_text(
        SMALL.replace('slug = "small"', 'slug = "other"')
        .replace("Did you fall asleep at work?", "Did you ever fall asleep at work?")
        .replace('truth_probability = "3/4"', "epsilon = 1"),
        encoding="utf-8",
    )
    assert "nearly equal" not in run("check", str(other)).stderr
    assert run("publish", str(tmp_path / "small.toml")).exit_code == 0
    for command in ("check", "publish"):
        warned = run(command, str(other))
        assert warned.exit_code == 0
        assert (
            "“Did you ever fall asleep at work?” is nearly equal to “Did you fall asleep at work?” "
            "in the survey “A small survey”"
        ) in warned.stderr
        assert "by a factor of at most 17." in warned.stderr  # 6 e
    # A new version is not compared with the versions before it.
    again = run("publish", str(tmp_path / "small.toml"))
    assert "in the survey “Other" not in again.stderr


@pytest.mark.long
def test_a_fresh_demo_deletes_the_data_of_the_previous_one(tmp_path):
    for arguments, n_stored in (
        (["--respondents", "60"], 60),
        (["--fresh", "--respondents", "0"], 0),
    ):
        process = demo(tmp_path / "demo", free_port(), *arguments)
        printed_until(process, "Ctrl-C")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=90)
        assert reports_in(tmp_path / "demo" / "demo.db") == n_stored


@pytest.mark.parametrize("command", ["demo", "serve"])
def test_a_port_in_use_prints_one_line_and_exits_with_1(tmp_path, command, monkeypatch):
    monkeypatch.setenv("SURVEY_SECRET", SECRET)
    monkeypatch.setenv("SURVEY_DATABASE", f"sqlite:///{tmp_path / 'x.db'}")
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}")
    store.migrate()
    store.close_connections()
    with socket.create_server(("127.0.0.1", 0)) as accepted:
        response = CliRunner().invoke(main, [command, "--port", str(accepted.getsockname()[1])])
    assert response.exit_code == 1
    assert len(response.stderr.splitlines()) == 1
    assert "choose another with --port" in response.stderr
