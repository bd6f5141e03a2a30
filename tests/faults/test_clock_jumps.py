"""Reports and releases continue when the clock jumps by hours or days in either direction."""

from __future__ import annotations

import shutil
import subprocess
from datetime import date, timedelta
from pathlib import Path

import pytest

from survey.archive import check
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, Store
from tests.conftest import SMALL, TODAY, wait_until
from tests.faults.load import Load
from tests.faults.reports import check_stored_once
from tests.store.databases import KINDS

JUMPS = ("+400d", "-400d")
MORE_JUMPS = ("+1h", "-1h", "+3d", "-3d", *JUMPS, "+0")


def faketime_variables(file: Path) -> dict[str, str]:
    """Return variables that set the clock of a process, but not its timers, from a file."""
    if shutil.which("faketime") is None:
        pytest.skip("no faketime on the path")
    # faketime itself reports the path of its library.
    completed = subprocess.run(
        ["faketime", "-f", "+0", "printenv", "LD_PRELOAD"], capture_output=True, text=True
    )
    return {
        "LD_PRELOAD": completed.stdout.strip(),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    """Return a file with the offset of the clock."""
    file = tmp_path / "clock"
    file.write_text("+0")
    return file


def jump(clock: Path, by: str) -> None:
    new = clock.with_suffix(".new")
    new.write_text(by)
    new.replace(clock)


@pytest.fixture
def daily_survey(store: Store) -> PublishedSurvey:
    """Publish the small survey with buckets of a day, which show the time of the server's clock."""
    definition = load(f'bucket = "day"\n{SMALL}'.encode(), "small.toml", Caps())
    return publish(store, definition, TODAY)


@pytest.mark.long
@pytest.mark.parametrize("settings", KINDS, indirect=True)
@pytest.mark.parametrize("jumps", [JUMPS, MORE_JUMPS], ids=len)
def test_a_clock_that_jumps_under_load_loses_nothing_and_stops_no_release(
    serve, store, daily_survey, clock, jumps
):
    variables = {"SURVEY_RELEASE_EVERY": "1", **faketime_variables(clock)}
    port = int(serve("--workers", "2", **variables).rpartition(":")[2])
    with Load(daily_survey, [port]) as reports:
        for by in jumps:
            reports.wait_for(40)
            jump(clock, by)
            reports.wait_for(40)
            # Count only from here: an earlier release may have begun before the jump.
            released = store.n_released(daily_survey.key)
            wait_until(lambda released=released: store.n_released(daily_survey.key) > released, 30)
    assert reports.statuses.keys() == {201}
    assert reports.n_broken == 0
    days = [date.fromisoformat(day) for _, day in store.tallies(daily_survey.key)]
    assert max(days) - min(days) >= timedelta(days=800), "the server's clock did not jump"
    check_stored_once(store, daily_survey, reports.acknowledged, reports.max_unacknowledged)
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
