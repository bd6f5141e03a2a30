"""Random histories: no surface changes between release times, nor ever by fewer than 25 reports."""

from __future__ import annotations

import json
import os
import random
import secrets
import time
from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from survey.collect.invitations import new_tokens, token_hash
from survey.collect.publication import close, publish
from survey.collect.release import Keeper, utc_today
from survey.disclosure import MINIMUM_REPORTS
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import Schedule, open_store
from tests.conftest import SMALL, long_unless
from tests.faults.reports import JSON
from tests.store.databases import KINDS
from tests.store.reports import NOON
from tests.web.surfaces import Surfaces, captured_log

pytestmark = [pytest.mark.web, pytest.mark.security]

STEPS = 10
INVITED = {"north": 150, "south": 60, "west": 25, "east": 25}

Groups = dict[tuple[str, ...], int]
"""Number of readable reports of each group: by version, stratum, bucket, and both."""


class History:
    """A survey with a random history; after each step, everything readable is read."""

    def __init__(self, store, settings, monkeypatch, seed: int) -> None:
        self.store, self.settings = store, settings
        self.random = random.Random(seed)
        self.hour = 0.0
        # `survey release` runs at the history's time.
        monkeypatch.setitem(
            Keeper.__init__.__kwdefaults__, "clock", lambda: NOON + 3600 * self.hour
        )
        bucket = self.random.choice(["none", "day"])
        self.text = f'bucket = "{bucket}"\n{SMALL}'
        self.surfaces = Surfaces(store, settings)
        self.client = self.surfaces.client()
        self.survey = self.publish()
        self.accepted: list[bytes] = []
        self.unused = {
            stratum: [(token, stratum) for token in new_tokens(n)] for stratum, n in INVITED.items()
        }
        for stratum, links in self.unused.items():
            tokens = [token_hash(token) for token, _ in links]
            store.add_invitations(self.survey.key, stratum, tokens)
        self.states: list[Groups] = []
        self.n_readings = self.n_comparisons = 0
        self.is_open = True
        self.survey_of_invitations = self.survey
        if seed % 2:
            store.set_schedule(self.survey.key, Schedule(maximum=100))
        self.read()

    def publish(self):
        survey = publish(self.store, load(self.text.encode(), "s.toml", Caps()), utc_today())
        self.keep()
        return survey

    # -- what happens

    def upload(self) -> None:
        """Reports arrive in one group, by the open link or with invitations."""
        group = self.random.choice(["", "", *INVITED])
        for _ in range(self.random.choice([1, 2, 24, 25, 30, 60, 60])):
            if group:
                if not self.unused[group]:
                    return
                token, stratum = self.unused[group].pop()
                self.post(self.body(self.survey_of_invitations, stratum, token))
            else:
                self.post(self.body(self.survey))

    def body(self, survey, stratum: str = "", token: str = "", identity: str = "") -> bytes:
        codes = [self.random.randrange(3), self.random.randrange(3)]
        identity = identity or secrets.token_urlsafe(16)
        length = survey.definition.report_bytes
        return report_body(
            survey.sha256, identity, codes, stratum=stratum, invitation=token, length=length
        )

    def post(self, body: bytes) -> str:
        response = self.client.post("/s/small/reports", data=body, headers=JSON)
        if response.status_code == 201:
            self.accepted.append(body)
        return f"{response.status_code} {response.text}"

    def keep(self) -> str:
        return self.surfaces.run("release")

    # -- steps

    def arrivals(self) -> None:
        """Reports arrive and a keeper works, but no release time passes: nobody sees a change."""
        before = self.last
        for _ in range(self.random.randrange(2, 5)):
            self.upload()
            assert self.keep() == "0 released 0 reports\n"
            self.hour = int(self.hour) + self.random.random()
        if self.random.random() < 0.3:
            self.restart()
        self.read()
        self.n_comparisons += len(before)
        assert {name: self.last[name] for name in before if self.last[name] != before[name]} == {}

    def release_time(self) -> None:
        self.hour = int(self.hour) + self.random.choice([1, 1, 3, 14])
        self.keep()
        self.read()

    def limit(self) -> None:
        """A researcher sets or removes a response limit."""
        maximum = self.random.choice([0, 60, 100, 200])
        self.store.set_schedule(self.survey.key, Schedule(maximum=maximum))
        self.read()

    def version(self) -> None:
        self.text = self.text.replace("Two questions.", "Two questions!", 1)
        if self.survey.version == 1:
            self.survey = self.publish()
        self.read()

    def restart(self) -> None:
        self.store.close_connections()
        self.store = self.surfaces.store = open_store(self.settings.database)
        self.client = self.surfaces.client()

    def close(self) -> None:
        close(self.store, "small", utc_today())
        self.is_open = False
        self.keep()
        self.read()

    # -- what is read

    def read(self) -> None:
        with captured_log() as lines:
            self.last = {**self.surfaces.read(), **self.probes()}
        self.last["log"] = "\n".join(lines)
        self.n_readings += len(self.last)
        self.check_state(groups_in(self.surfaces.rows()))

    def probes(self) -> dict[str, str]:
        """Return the answers to an attacker's requests; their reports arrive as others do."""
        probes = {"a new report": self.post(self.body(self.survey))}
        for place, body in enumerate(self.accepted[:2]):
            identity = json.loads(body)["report_id"]
            is_first = self.survey_of_invitations.sha256.encode() in body
            survey = self.survey_of_invitations if is_first else self.survey
            for name, again in {
                "resent": body,
                "other codes": self.body(survey, identity=identity),
            }.items():
                response = self.client.post("/s/small/reports", data=again, headers=JSON)
                probes[f"{name} {place}"] = f"{response.status} {response.text}"
        return probes

    def check_state(self, state: Groups) -> None:
        """Compare a state with all earlier ones: each group is equal or has 25 reports more."""
        for earlier in [{}, *self.states]:
            for group in state.keys() | earlier.keys():
                more = state.get(group, 0) - earlier.get(group, 0)
                self.n_comparisons += 1
                assert more == 0 or more >= MINIMUM_REPORTS, (group, more)
        if self.is_open:
            # Other numbers would tell how many have arrived.
            sizes = {group: n for group, n in state.items() if group[0] and group[1]}
            assert {group: n for group, n in sizes.items() if n % MINIMUM_REPORTS} == {}
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
@pytest.mark.parametrize("seed", long_unless(range(2), range(40)))
def test_no_surface_shows_an_arrival_and_no_two_states_differ_by_fewer_than_25(
    store, settings, monkeypatch, capsys, seed
):
    settings = replace(settings, release_every=3600)
    history = History(store, settings, monkeypatch, int(os.environ.get("SURVEY_SEED", seed)))
    start = time.monotonic()
    steps = [history.arrivals, history.release_time]
    for number in range(STEPS):
        others = [history.limit, history.version] if history.random.random() < 0.15 else []
        history.random.choice(others or [steps[number % 2]])()
    history.close()
    history.arrivals()
    with capsys.disabled():
        print(
            f"\nseed {seed}: {len(history.states)} states, {history.n_readings:,} readings, "
            f"{history.n_comparisons:,} comparisons, {time.monotonic() - start:.0f} s"
        )
    assert len(history.states) > 1
    history.store.close_connections()
