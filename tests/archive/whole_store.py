"""Fill every table of a store, and read all rows of a store."""

from __future__ import annotations

import hashlib
from datetime import date

from survey.store import (
    TABLES,
    Action,
    ApiToken,
    AttemptLimit,
    ColleagueLink,
    Plan,
    PublishedSurvey,
    ReleaseFailure,
    ReleaseNotice,
    ResultLink,
    Row,
    Schedule,
    Snapshot,
    Store,
    TeamLook,
)
from survey.store.report_identities import identity
from tests.store.reports import add, publish_pending, random_reports, report


def fill(store: Store, survey: PublishedSurvey) -> None:
    """Add rows to every table: pending reports, and released ones of two links and buckets."""
    tokens = [number.to_bytes(32, "big") for number in range(10)]
    store.add_invitations(survey.key, "north", tokens)
    invited = [report(n, stratum="north", invitation=tokens[n]) for n in range(4)]
    add(store, survey, random_reports(22))
    publish_pending(store, survey, bucket="2026-W47", minimum=1)
    add(store, survey, [*random_reports(18), *invited])
    publish_pending(store, survey, bucket="2026-W48", minimum=1)
    unsealed = random_reports(1)[0]
    add(store, survey, [*random_reports(15), report(9, stratum="north", invitation=tokens[9])])
    # An earlier version has left this one.
    store.insert_rows("inbox", [(survey.key, unsealed.id, "", unsealed.codes)])
    store.insert_rows("pending_id", [(survey.key, identity(unsealed.id))])
    store.set_schedule(survey.key, Schedule(opens=date(2026, 11, 1), maximum=500))
    store.add_researcher("ada@example.org", "hash")
    store.count_attempt([AttemptLimit(b"hash", 10)], 5, 900)
    store.add_failed_sign_in("ada@example.org", 5)
    store.set_two_factor_required(required=True)
    ada = store.researcher("ada@example.org").key
    store.start_session(b"token", ada, 5, 100)
    store.set_second_factor(ada, "SECRET", [bytes([n]) * 32 for n in range(10)])
    store.set_role(survey.slug, ada, "owner")
    store.add_colleague_link(b"link", ColleagueLink(survey.slug, "viewer", 99, ada))
    drafts = [store.add_draft('{"a": 1}', "ada@example.org", 5, {ada: "owner"}) for _ in range(2)]
    store.delete_draft(drafts[0].key, date(2026, 11, 2))
    picture = (hashlib.sha256(b"picture").hexdigest(), b"picture")
    described = f'{{"picture":"{picture[0]}"}}'
    store.save_draft(drafts[1], described, "ada@example.org", 6, [picture])
    store.add_comment(drafts[1].key, 0, ada, 5, "Shorter?")
    store.add_trend_note(survey.slug, "2026-11-17", 0, "New shifts")
    store.set_team_look(survey.slug, TeamLook("Work research", "plum", b"logo"))
    store.add_api_token(ApiToken(b"program", ada, "R", "surveys", 5))
    store.set_plan(survey.key, Plan(500, {"north": 30}))
    store.set_archived(survey.slug, archived=True)
    store.add_result_link(b"reader", ResultLink(survey.slug, "Ministry", 99, ada), 5)
    store.set_public_results(survey.slug, public=True, license_name="CC BY 4.0")
    store.add_release_notice(ReleaseNotice(survey.slug, ada, "https://hooks.example.org/a"))
    damaged = (survey.key, bytes(16), 1, "", 0, bytes(16), b"", b"a damaged box")
    store.insert_rows("damaged_batch", [damaged])
    store.set_failure(survey.key, ReleaseFailure(5, "StoreError"))
    store.add_action(Action(5, "ada@example.org", "published", survey.slug, "version 1"))


def all_rows(snapshot: Snapshot, table: str, limit: int) -> list[Row]:
    """Return all rows of a table, read page by page."""
    rows: list[Row] = []
    places = [TABLES[table].column_names.index(column) for column in TABLES[table].key]
    after = None
    while page := snapshot.rows(table, after, limit):
        assert len(page) <= limit
        rows += page
        after = tuple(page[-1][place] for place in places)
    return rows


def contents(store: Store, limit: int = 1000) -> dict[str, list[Row]]:
    """Return all rows of all tables in one snapshot."""
    with store.snapshot() as snapshot:
        return {table: all_rows(snapshot, table, limit) for table in TABLES}


def copied_rows(store: Store) -> dict[str, list[Row]]:
    """Return all rows that a copy keeps: neither sessions nor attempts to sign in."""
    return {**contents(store), "login_session": [], "sign_in_try": [], "failed_sign_in": []}


def without_boxes(rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Return rows without what changes when pending reports are sealed again."""
    readable = sorted((row[0], row[3], row[5], row[6]) for row in rows["pending"])
    return {**rows, "sealing_key": [], "pending": readable}
