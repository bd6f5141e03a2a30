"""Commands for whole stores: their output, its stream, and their exit codes."""

from __future__ import annotations

import os
import pty
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.store.field_boxes import seal_box
from tests.conftest import ROOT
from tests.store.reports import add, publish_pending, random_reports
from tests.store.tablets import publish_for_tablets


@pytest.fixture
def run(monkeypatch, settings):
    def run(*arguments, database=settings.database):
        monkeypatch.setenv("SURVEY_DATABASE", database)
        monkeypatch.setenv("SURVEY_KEYS", settings.keys)
        return CliRunner().invoke(main, [str(item) for item in arguments])

    return run


@pytest.fixture
def filled(store, small):
    add(store, small, random_reports(40))
    publish_pending(store, small, 25)
    add(store, small, random_reports(7))
    return store


def test_a_consistent_store_is_confirmed_in_one_line(filled, run):
    checked = run("check-store")
    assert (checked.exit_code, checked.output) == (
        0,
        "1 survey, 40 released reports: every count and every digest agrees\n",
    )


def test_each_inconsistency_is_one_line_and_the_exit_status_is_1(filled, run, settings, tmp_path):
    with closing(sqlite3.connect(settings.database.removeprefix("sqlite:///"))) as connection:
        connection.execute("UPDATE counts SET n = 99 WHERE option = 0")
        connection.commit()
    checked = run("check-store")
    assert (checked.exit_code, checked.stdout) == (1, "")
    lines = checked.stderr.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith('survey "small" version 1, question "pressure", place 0: the blocks')
    assert lines[1].endswith("the counts say 99")
    # It may be the last backup that can be written.
    written = run("backup", tmp_path / "damaged.db")
    assert (written.exit_code, (tmp_path / "damaged.db").exists()) == (1, True)
    assert "was written, but it is damaged like the database" in written.stderr


def test_a_backup_is_written_restored_and_checked(filled, run, tmp_path):
    file, database = tmp_path / "kept.db", f"sqlite:///{tmp_path / 'again.db'}"
    response = run("backup", file)
    assert (response.exit_code, response.stderr) == (0, "")
    contents = "1 survey, 40 released reports and all pending reports"
    assert response.output == f"{file} contains {contents}\n"
    restored = run("restore", file, database=database)
    assert restored.output == (
        "restored 1 survey, 40 released reports and the readable pending reports\n"
    )
    assert run("check-store", database=database).exit_code == 0
    assert run("estimate", "small", database=database).output == run("estimate", "small").output


def test_a_restore_locks_the_keys_and_omits_all_pending_reports_only_with_yes(
    filled, run, tmp_path, keys
):
    file, database = tmp_path / "kept.db", f"sqlite:///{tmp_path / 'again.db'}"
    run("backup", file)
    with keys.lock():
        refused = run("restore", file, database=database)
    assert "another keeper uses the private keys" in refused.stderr
    for public_key in keys.public_keys():
        keys.destroy(public_key)
    refused = run("restore", file, database=database)
    assert refused.exit_code == 1
    assert refused.stderr.endswith("If the keys are permanently lost, add --yes\n")
    restored = run("restore", file, "--yes", database=database)
    assert restored.exit_code == 0
    assert "7 pending reports cannot be read" in restored.output


def test_copying_a_store_names_the_next_step(filled, run, settings, tmp_path):
    target = f"sqlite:///{tmp_path / 'moved.db'}"
    copied = run("copy-store", settings.database, target)
    assert (copied.exit_code, copied.stderr) == (0, "")
    assert copied.stdout == (
        "copied 1 survey, 40 released reports and all pending reports; every row agrees\n"
        "set SURVEY_DATABASE to DST and run `survey keeper --destroy-unused --yes` before\n"
        "you start the server again: it destroys the private keys that only SRC needs\n"
    )


@pytest.mark.security
def test_a_migration_merges_the_small_groups_of_an_earlier_version(store, small, run):
    """Otherwise, pages would show a group of one until the keeper's first pass."""
    for stratum, n in (("north", 60), ("west", 1), ("east", 30)):
        add(store, small, random_reports(n, stratum))
    publish_pending(store, small, 1)
    assert run("migrate").output == "nothing to do\n"
    assert {cell[0]: tally.n for cell, tally in store.tallies(small.key).items()} == {
        "north": 60,
        "other groups": 31,
    }


def test_a_keeper_deletes_and_destroys_only_with_yes(filled, run, settings, tmp_path, keys):
    unused = keys.create()
    for options, message in (
        (["--destroy-unused"], "1 private key would be destroyed"),
        (["--destroy-unused", "--yes"], "destroyed 1 private key that nothing uses\n"),
        (["--destroy-unused"], "destroyed 0 private keys that nothing uses\n"),
        (["--take-over"], "deleted 0 pending reports whose private key is lost\n"),
    ):
        assert message in run("keeper", *options).output
    assert keys.find(unused) is None
    for public_key in keys.public_keys():
        keys.destroy(public_key)
    assert "none of this database's private keys" in run("keeper", "--destroy-unused").output
    refusal = run("keeper", "--take-over")
    assert refusal.exit_code == 1
    assert "deletes the pending reports sealed with the missing keys" in refusal.output
    assert filled.n_pending(1) == 7
    assert run("keeper", "--take-over", "--yes").output.startswith("deleted 7 pending reports")


def test_a_rejected_command_prints_one_line_and_writes_nothing(filled, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text("a text")
    # The first command that uses or reserves a database creates the file of its lock.
    (tmp_path / "survey.db.use").touch(mode=0o600)
    before = sorted(path.name for path in tmp_path.iterdir())
    for arguments, message in (
        (["backup", "small.toml"], "small.toml already exists"),
        (["backup", "no/such/folder.db"], "No such file or directory"),
        (["restore", "nothing.db"], "there is no file nothing.db"),
        (["restore", "small.toml"], "not a database"),
        (["copy-store", "nowhere", "sqlite:///x.db"], "SRC: "),
        (["copy-store", "sqlite:///other.db", "mysql://x"], "DST: "),
        (["copy-store", "sqlite:///nothing.db", "sqlite:///x.db"], "there is no database at"),
        (["copy-store", "sqlite:///x.db", "sqlite:///x.db"], "are the same database"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1, arguments
        assert message in result.stderr, (arguments, result.stderr)
        assert len(result.stderr.splitlines()) == 1, (arguments, result.stderr)
        assert sorted(path.name for path in tmp_path.iterdir()) == before, arguments


@pytest.mark.long
def test_progress_is_shown_on_a_terminal_and_not_in_a_pipe(filled, settings, tmp_path):
    command = [sys.executable, "-m", "survey.cli", "backup"]
    environment = {**os.environ, "SURVEY_DATABASE": settings.database, "TERM": "xterm"}
    piped = subprocess.run(
        [*command, str(tmp_path / "1.db")], cwd=ROOT, env=environment, capture_output=True
    )
    assert (piped.returncode, piped.stderr) == (0, b"")
    ours, theirs = pty.openpty()
    on_terminal = subprocess.run([*command, str(tmp_path / "2.db")], cwd=ROOT, env=environment,
                           stdout=subprocess.DEVNULL, stderr=theirs, timeout=60)  # fmt: skip
    os.close(theirs)
    assert on_terminal.returncode == 0
    assert "writing" in (output := os.read(ours, 65536).decode())
    assert "100%" in output
    os.close(ours)


def test_an_invalid_tablet_file_is_named_and_the_others_are_imported(store, run, tmp_path):
    survey = publish_for_tablets(store, tmp_path)
    first, second, third = (
        seal_box(survey.definition, bytes(survey.definition.report_bytes)) for _ in range(3)
    )
    head = f"survey-field 1 small {survey.sha256}\n".encode()
    contents = {
        "one": head + first,
        "cut": head + second[:-9],
        "foreign": b"GIF89a",
        "other": head.replace(b"small", b"other") + second,
        "older": head.replace(survey.sha256.encode(), b"0" * 64) + second,
        "two": head + second + third,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    imported = run("import-tablet", "small", *(tmp_path / name for name in (*contents, "none")))
    assert imported.exit_code == 1
    assert imported.stdout == "".join(
        f"{tmp_path / name}: imported {slots}; the responses appear with the next releases\n"
        for name, slots in (("one", "1 slot"), ("two", "2 slots"))
    )
    reasons = {
        "cut": "truncated or altered",
        "foreign": "not a file that a tablet",
        "other": "belongs to the survey other",
        "older": "belongs to a version of small",
        "none": "No such file",
    }
    errors = imported.stderr.splitlines()
    for line, (name, reason) in zip(errors, reasons.items(), strict=True):
        assert line.startswith(f"{tmp_path / name}: ")
        assert reason in line
    assert store.n_pending(survey.key) == 3
    assert run("import-tablet", "small", tmp_path / "one").exit_code == 0
    assert run("import-tablet", "none", tmp_path / "one").stderr.startswith("survey: ")
