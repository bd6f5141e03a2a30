"""Random histories: no surface shows a pending report, and no two states differ by fewer than 25.

Everything readable must follow from released reports, researchers' actions and fixed times alone.
After each release, every surface is read twice: with and without the pending reports.
"""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import survey.cli.surveys
import survey.research.surveys
import survey.respond.reception
import survey.respond.views
from survey.cli import quantity
from survey.collect.invitations import new_tokens, token_hash
from survey.collect.publication import publish
from survey.collect.release import Keeper, day_of
from survey.disclosure import MINIMUM_REPORTS
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, open_store
from tests.conftest import EMAIL, SMALL, long_unless
from tests.faults.reports import JSON
from tests.store.databases import KINDS, DirectAccess
from tests.store.reports import NOON
from tests.web.researchers import send
from tests.web.routes import add_links
from tests.web.surfaces import MASKED, Surfaces, captured_log, response_text
from tests.web.test_few_answers import ONE_OF_TWO

pytestmark = [pytest.mark.web, pytest.mark.security]

ROUNDS = 5
INVITED = {"north": 150, "south": 60, "west": 25, "east": 25}
TESTED_INVITATION = "an invitation whose holder may have answered"
EXCEPTIONS = {TESTED_INVITATION}
"""Surfaces that an arriving report may change: `survey/methods/releases.md` says that the holder of
an invitation can find out whether it was used."""

EVENTS = {
    *("reports by the open link", "reports by invitation", "a limit", "a new version"),
    *("a tested invitation", "a restart", "an export", "a backup", "a closing"),
    "a report after the closing",
}
"""Events that every history must include."""

MIN_STATES, MIN_READINGS, MIN_COMPARISONS = 5, 2_000, 2_000
"""Minimum counts, so that a history tests enough."""

Groups = dict[tuple[str, ...], int]
"""Number of readable reports of each group: by version, stratum, bucket, and both."""


class History:
    """A survey with a random history; after each step, everything readable is read."""

    def __init__(self, store, settings, monkeypatch, seed: int, log: Sequence[str]) -> None:
        self.store, self.settings, self.log = store, settings, log
        self.random = random.Random(seed)
        self.hour = 0.0
        # Keepers, servers and commands run at the history's time.
        monkeypatch.setitem(Keeper.__init__.__kwdefaults__, "clock", self.now)
        servers = (survey.research.surveys, survey.respond.views, survey.respond.reception)
        for module in (survey.cli.surveys, *servers):
            monkeypatch.setattr(module, "utc_today", lambda: day_of(self.now()))
        self.bucket = ("none", "day", "week")[seed % 3]
        self.is_sampled = seed % 2 == 1
        self.closes_by_page = seed % 4 < 2
        self.surfaces = Surfaces(store, settings)
        self.client = self.surfaces.client()
        self.events: Counter[str] = Counter()
        self.states: list[Groups] = []
        self.exceptions: set[str] = set()
        self.closed: set[int] = set()
        self.n_readings = self.n_comparisons = self.n_released = 0
        self.accepted: list[bytes] = []
        self.used = ""
        self.survey = self.publish()
        store.set_role("small", store.researcher(EMAIL).key, "owner")
        self.first_version = self.survey
        if not self.is_sampled:
            # Enough reports for every page to show estimates.
            add_links(store, self.survey)
        self.unused = {stratum: new_tokens(n) for stratum, n in INVITED.items()}
        for stratum, tokens in self.unused.items():
            store.add_invitations(self.survey.key, stratum, list(map(token_hash, tokens)))
        self.read()

    def now(self) -> float:
        return NOON + 3600 * self.hour

    def publish(self) -> PublishedSurvey:
        """Publish the next version, which changes how many questions each person is asked."""
        version = len(self.store.versions("small")) + 1
        text = ONE_OF_TWO if self.is_sampled == version % 2 else SMALL
        text = text.replace("Two questions.", f"Two questions, version {version}.")
        definition = load(f'bucket = "{self.bucket}"\n{text}'.encode(), "s.toml", Caps())
        published = publish(self.store, definition, day_of(self.now()))
        self.keep()
        return published

    # -- reports

    def send_reports(self, group: str, n: int) -> None:
        """Send reports by the open link, or with invitations of a group."""
        for _ in range(n):
            if not group:
                answer = self.post(self.body(self.survey))
                self.events["reports by the open link"] += answer.startswith("201 ")
            elif self.unused[group]:
                token = self.unused[group].pop()
                answer = self.post(self.body_of_invitation(group, token))
                self.events["reports by invitation"] += answer.startswith("201 ")
                self.used = self.used or token

    def body(
        self, survey: PublishedSurvey, identity: str = "", stratum: str = "", token: str = ""
    ) -> bytes:
        codes: list[int | None] = [self.random.randrange(3), self.random.randrange(3)]
        if survey.definition.is_sampled:
            codes[self.random.randrange(2)] = None
        identity = identity or secrets.token_urlsafe(16)
        length = survey.definition.report_bytes
        return report_body(
            survey.sha256, identity, codes, stratum=stratum, invitation=token, length=length
        )

    def body_of_invitation(self, stratum: str, token: str) -> bytes:
        return self.body(self.first_version, stratum=stratum, token=token)

    def post(self, body: bytes) -> str:
        answer = self.client.post("/s/small/reports", data=body, headers=JSON)
        if answer.status_code == 201:
            self.accepted.append(body)
        return response_text(answer)

    # -- steps

    def steps(self) -> list[Callable[[], None]]:
        """Return rounds of arrivals and releases in which each other event occurs somewhere."""
        steps: list[Callable[[], None]] = [self.arrivals, self.release_time] * ROUNDS
        for event in (self.limit, self.limit, self.version, self.restart, self.backup):
            steps.insert(self.random.randrange(len(steps) - 1), event)
        return steps

    def arrivals(self, groups: Mapping[str, int] | None = None) -> None:
        """Send reports and run a keeper before the next release time; no surface may change."""
        before = self.texts
        for group, n in groups.items() if groups else self.random_groups():
            self.send_reports(group, n)
            assert self.keep() == "0 released 0 reports\n"
            self.hour = int(self.hour) + self.random.random()
        if groups or self.random.random() < 0.5:
            # The next reading tests this invitation.
            token = self.unused["south"][-1]
            answer = self.post(self.body_of_invitation("south", token))
            self.events["a tested invitation"] += answer.startswith("201 ")
        self.read()
        changed = self.differences(before, self.texts)
        self.exceptions |= changed
        assert changed <= EXCEPTIONS

    def random_groups(self) -> list[tuple[str, int]]:
        sizes = (1, 2, 24, 25, 30, 60, 60)
        return [
            (self.random.choice(["", "", "north", "west"]), self.random.choice(sizes))
            for _ in range(self.random.randrange(2, 5))
        ]

    def release_time(self) -> None:
        """Let a keeper work at a release time; then take the reports that are still pending away.

        Every surface must look the same without them.
        """
        self.hour = int(self.hour) + self.random.choice([1, 1, 3, 14, 40])
        n_released = self.n_released
        output = self.keep()
        self.read(is_complete=True)
        assert output == f"0 released {quantity(self.n_released - n_released, 'report')}\n"
        with DirectAccess(self.settings.database).without_pending() as n_pending:
            texts = self.surfaces.read(is_complete=True)
        assert n_pending >= MINIMUM_REPORTS or self.survey.version in self.closed
        self.n_readings += len(texts)
        assert self.differences(self.texts, texts) == set()

    def keep(self) -> str:
        return self.surfaces.run("release")

    def limit(self) -> None:
        """Set or remove the maximum number of responses."""
        maximum = self.random.choice([0, 1, 2, 4]) * 50
        maximum += self.store.n_released(self.survey.key) if maximum else 0
        limit = f"at most {maximum:,}" if maximum else "any number of"
        output = self.surfaces.run("schedule", "small", "--most", str(maximum))
        assert output == f"0 small accepts {limit} responses, from now until it is closed\n"
        self.events["a limit"] += 1
        self.read()

    def version(self) -> None:
        self.survey = self.publish()
        self.events["a new version"] += 1
        self.read()

    def restart(self) -> None:
        """Restart the server: nothing that can be read depends on its memory."""
        before = self.texts
        self.store.close_connections()
        self.store = self.surfaces.store = open_store(self.settings.database)
        self.client = self.surfaces.client()
        self.events["a restart"] += 1
        self.read()
        assert self.differences(before, self.texts) <= EXCEPTIONS

    def backup(self) -> None:
        file = Path(self.settings.keys).with_name(f"{self.n_readings}.backup")
        assert self.surfaces.run("backup", str(file)) == (
            f"0 {file} contains 1 survey, {quantity(self.n_released, 'released report')} "
            "and all pending reports\n"
        )
        self.events["a backup"] += 1

    def close(self) -> None:
        """Close the survey as its owner, on the page or with the command: nothing is released."""
        if self.closes_by_page:
            page = "/research/surveys/small/collect"
            client = self.surfaces.client()
            assert send(client, f"{page}/close", page=page, name="small").location == page
            (message,) = re.findall("small is closed[^<]*", MASKED.sub("", client.get(page).text))
            assert message == "small is closed. Its last release is at ."
            action = self.store.actions("small", 1)[0]
            assert (action.actor, action.event, action.detail) == (EMAIL, "closed", "")
        else:
            assert self.surfaces.run("close", "small") == "0 closed small\n"
        assert self.surfaces.run("close", "small") == "0 small was already closed\n"
        self.closed |= {version.version for version in self.store.versions("small")}
        self.events["a closing"] += 1
        n_released = self.n_released
        assert self.keep() == "0 released 0 reports\n"
        self.read()
        assert self.n_released == n_released

    def arrivals_after_closing(self) -> None:
        """Send new reports, which the closed survey rejects, and all accepted ones again."""
        n_accepted = len(self.accepted)
        self.arrivals({"": 2, **dict.fromkeys(INVITED, 2)})
        assert len(self.accepted) == n_accepted
        # Devices whose acknowledgement was lost learn that their report arrived, also those of a
        # group that was too small to be published.
        answers = Counter(self.resend(body) for body in self.accepted)
        assert {answer[:3] for answer in answers} == {"201"}
        assert len(answers) == 1
        self.events["a report after the closing"] += 1

    # -- what is read

    def read(self, *, is_complete: bool = False) -> None:
        """Read every surface and check the state; not one line may be logged since the start."""
        self.texts = {**self.surfaces.read(is_complete=is_complete), **self.probes()}
        self.events["an export"] += {"microdata 1", "parquet 1"} <= self.texts.keys()
        self.n_readings += len(self.texts)
        assert list(self.log) == []
        self.check_state(self.surfaces.rows())

    def probes(self) -> dict[str, str]:
        """Return the answers to an attacker's requests; their reports arrive as others do."""
        probes = {"a new report": self.post(self.body(self.survey))}
        tested = self.unused["south"].pop()
        probes[TESTED_INVITATION] = self.post(self.body_of_invitation("south", tested))
        for place, body in enumerate(self.accepted[:2]):
            again = self.body(self.first_version, json.loads(body)["report_id"])
            probes[f"resent {place}"] = self.resend(body)
            probes[f"other codes {place}"] = self.resend(again)
        if self.used:
            probes["a used invitation"] = self.post(self.body_of_invitation("north", self.used))
        # The other readings start a server each; this one has received the reports.
        for page in ("/s/small", "/research/surveys/small/1", "/research/surveys/small/collect"):
            probes[f"{page} of the running server"] = MASKED.sub(
                "", response_text(self.client.get(page))
            )
        return probes

    def resend(self, body: bytes) -> str:
        return response_text(self.client.post("/s/small/reports", data=body, headers=JSON))

    def differences(self, before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
        """Return the names of the surfaces of both readings that state something else."""
        names = before.keys() & after.keys()
        self.n_comparisons += len(names)
        return {name for name in names if before[name] != after[name]}

    def check_state(self, rows: dict[int, Counter[tuple[str, ...]]]) -> None:
        """Compare a state with all earlier ones: each group is equal or has 25 reports more."""
        state = groups_in(rows)
        for earlier in [{}, *self.states]:
            for group in state.keys() | earlier.keys():
                more = state.get(group, 0) - earlier.get(group, 0)
                self.n_comparisons += 1
                assert more == 0 or more >= MINIMUM_REPORTS, (group, more)
        # While a version is open, other numbers would tell how many reports have arrived.
        for (version, stratum, *_), n in state.items():
            if version and stratum and int(version) not in self.closed:
                assert n % MINIMUM_REPORTS == 0, (version, stratum, n)
        self.n_released = sum(sum(reports.values()) for reports in rows.values())
        if state not in self.states:
            self.states.append(state)


def groups_in(rows: dict[int, Counter[tuple[str, ...]]]) -> Groups:
    """Count the readable reports of every group that a reader can select."""
    groups: Counter[tuple[str, ...]] = Counter()
    for version, reports in rows.items():
        for (stratum, bucket, *_), n in reports.items():
            for place in product(("", str(version)), ("", f"={stratum}"), ("", f"={bucket}")):
                groups[place] += n
    return dict(groups)


@pytest.mark.parametrize("settings", long_unless(KINDS[:1], KINDS), indirect=True)
@pytest.mark.parametrize("seed", long_unless(range(1), range(40)))
def test_no_surface_shows_an_arrival_and_no_two_states_differ_by_fewer_than_25(
    store, settings, monkeypatch, capsys, seed
):
    settings = replace(settings, release_every=3600)
    start = time.monotonic()
    with captured_log() as log:
        seed = int(os.environ.get("SURVEY_SEED", seed))
        history = History(store, settings, monkeypatch, seed, log)
        history.arrivals({"": 60, "north": 60, "east": 3})
        history.release_time()
        for step in history.steps():
            step()
        history.close()
        history.arrivals_after_closing()
        history.release_time()
        history.arrivals_after_closing()
        # The same slug again: its closed versions stay as they are.
        history.version()
        history.arrivals({"": 80})
        history.release_time()
        history.store.close_connections()
    assert capsys.readouterr() == ("", "")
    with capsys.disabled():
        print(
            f"\nseed {seed}: {len(history.states)} states, {history.n_readings:,} readings, "
            f"{history.n_comparisons:,} comparisons, {time.monotonic() - start:.0f} s"
        )
    assert history.exceptions == EXCEPTIONS
    assert {event for event in EVENTS if not history.events[event]} == set()
    assert len(history.states) >= MIN_STATES
    assert history.n_readings >= MIN_READINGS
    assert history.n_comparisons >= MIN_COMPARISONS
