"""Raw images of the disks reveal nothing about a report but its codes among 24 others."""

from __future__ import annotations

import random

import pytest

from tests.conftest import long_unless
from tests.forensics.images import PLACES, N, investigate
from tests.forensics.search import Image, PlantedReport

pytestmark = [pytest.mark.security, pytest.mark.web]


@pytest.mark.parametrize("kind", long_unless(["sqlite"], PLACES))
def test_no_image_links_a_report_to_its_id_its_place_its_time_or_its_invitation(kind, tmp_path):
    outcome = investigate(kind, tmp_path)
    assert outcome.leaks == {}
    n_found = {figures.image: figures.n_found for figures in outcome.figures}
    # The search sees released codes, so it would see others.
    last = {name: n for name, n in n_found.items() if n and name.endswith("closed")}
    assert set(last.values()) == {N}
    assert len(last) >= 2
    assert not any(n for name, n in n_found.items() if name.endswith("pending"))
    assert outcome.n_destroyed >= 2


@pytest.mark.parametrize(
    ("mutant", "image"),
    [
        ("keep_private_keys", "key volume"),
        pytest.param("unlink_private_keys", "key volume", marks=pytest.mark.long),
        pytest.param("print_private_keys", "server log, released", marks=pytest.mark.long),
    ],
)
def test_a_private_key_that_outlives_its_period_is_found(mutant, image, tmp_path):
    outcome = investigate("sqlite", tmp_path, until="released", mutant=mutant)
    assert set(outcome.leaks) == {image}
    assert set(outcome.leaks[image]) == {"private_keys"}


@pytest.mark.parametrize(
    ("kind", "mutant", "until", "image", "figures"),
    [
        ("sqlite", "store_codes", "pending", "ext4 image", {"by_id", "in_order"}),
        *(
            pytest.param(*leak, marks=pytest.mark.long)
            for leak in (
                ("sqlite", "store_digest", "pending", "ext4 image", {"by_digest"}),
                (
                    "postgresql",
                    "store_codes",
                    "pending",
                    "archived WAL",
                    {"by_id", "by_time", "by_invitation"},
                ),
                ("postgresql", "store_digest", "pending", "pg_wal", {"by_digest"}),
                ("postgresql", "release_in_order_of_ids", "released", "data directory", {"by_id"}),
            )
        ),
    ],
)
def test_an_image_shows_what_a_broken_version_stores(kind, mutant, until, image, figures, tmp_path):
    leaks = investigate(kind, tmp_path, until=until, mutant=mutant).leaks
    assert set(leaks[f"{image}, {until}"]) >= figures
    assert not any("server log" in name or "key volume" in name for name in leaks)


def planted(n: int, rng: random.Random) -> list[PlantedReport]:
    return [
        PlantedReport(
            number, rng.randbytes(16), "", (rng.randbytes(8),), token=f"invitation {number:03}"
        )
        for number in range(n)
    ]


def block(order: list[PlantedReport]) -> bytes:
    return b"".join(report.codes[0] for report in order)


ORDERS = {
    "in_order": lambda report: report.number,
    "by_id": lambda report: report.id,
    "by_invitation": lambda report: report.invitation,
}


@pytest.mark.parametrize("n", [25, 200])
def test_an_order_in_a_block_of_any_size_is_found_and_a_random_one_is_not(n):
    rng = random.Random(n)
    reports = planted(n, rng)
    for figure, label in ORDERS.items():
        content = block(sorted(reports, key=label))
        assert Image("", content, reports, []).figures().leaks == {figure: n}
        backwards = block(sorted(reports, key=label, reverse=True))
        assert Image("", backwards, reports, []).figures().leaks == {figure: n}
    for _ in range(40):
        order = rng.sample(reports, n)
        ids = b"".join(
            report.id + report.invitation for report in sorted(reports, key=ORDERS["by_id"])
        )
        assert Image("", ids + block(order), reports, []).figures().leaks == {}


def test_copies_side_by_side_are_not_outside_blocks_but_an_incomplete_copy_is():
    rng = random.Random(1)
    reports = planted(26, rng)
    for _ in range(40):
        old, new = rng.sample(reports[:25], 25), rng.sample(reports[1:], 25)
        assert Image("", block(old) + block(new), reports, []).figures().outside_blocks == 0
    content = block(old) + bytes(5000) + block(new[:24])
    assert Image("", content, reports, []).figures().outside_blocks == 24
