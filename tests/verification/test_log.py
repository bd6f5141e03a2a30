"""The log of verifications is a hash chain: a kept head reveals every change before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.errors import SurveyError
from survey.verification.result import append_entry, check_log


def written(file: Path, n: int = 3) -> list[str]:
    return [append_entry(file, {"status": "identical", "visits": i}) for i in range(n)]


def test_the_head_is_that_of_the_last_entry(tmp_path):
    heads = written(tmp_path / "log")
    entries, head = check_log(tmp_path / "log")
    assert head == heads[-1]
    assert [entry["visits"] for entry in entries] == [0, 1, 2]


def test_a_changed_line_is_found(tmp_path):
    file = tmp_path / "log"
    written(file)
    file.write_text(file.read_text().replace("identical", "different", 1))
    with pytest.raises(SurveyError, match="line 2: it does not continue line 1"):
        check_log(file)


def test_a_removed_line_is_found(tmp_path):
    file = tmp_path / "log"
    written(file)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(lines[0] + lines[2])
    with pytest.raises(SurveyError, match="line 2"):
        check_log(file)


def test_only_a_kept_head_reveals_that_the_last_lines_were_removed(tmp_path):
    file = tmp_path / "log"
    heads = written(file)
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:2]))
    assert check_log(file)[1] == heads[1]
    assert check_log(file, heads[1])[1] == heads[1]
    with pytest.raises(SurveyError, match="has no line with the hash"):
        check_log(file, heads[2])


def test_a_damaged_log_is_not_continued(tmp_path):
    file = tmp_path / "log"
    written(file)
    file.write_text(file.read_text().rstrip("\n"))
    with pytest.raises(SurveyError, match="the last line is incomplete"):
        append_entry(file, {})


@pytest.mark.parametrize(("kept", "status"), [(1, 0), (2, 0), (None, 1)])
def test_the_command_checks_a_log(tmp_path, kept, status):
    file = tmp_path / "log"
    heads = written(file)
    head = "f" * 64 if kept is None else heads[kept]
    run = CliRunner().invoke(main, ["verify", "--check-log", str(file), "--head", head])
    assert run.exit_code == status
    assert run.output.startswith("CHANGED" if status else "complete: 3 verifications")
