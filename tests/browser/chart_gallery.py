"""Pictures of every kind of chart, as people with color-vision deficiencies see them.

    python -m tests.browser.chart_gallery DIRECTORY [PAGE ...]

saves a picture of each page, or of the pages with these names, at two widths, in light and dark,
and under each deficiency that Chromium can simulate.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from playwright.sync_api import Page, sync_playwright

from survey.collect.publication import publish
from survey.mechanism.bit_vector import TickChannel
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, Store, StoredReport
from tests.browser.conftest import Device, Site, running_site
from tests.browser.research import sign_in
from tests.conftest import TODAY
from tests.store.reports import publish_pending

GALLERY = """
slug = "gallery"
title = "Every kind of chart"
introduction = "Simulated respondents."
epsilon = 2.0
bucket = "day"

[[pages]]
title = "All"
[[pages.questions]]
id = "bullied"
type = "yes_no"
text = "Were you bullied at work in the last 12 months?"
prefer_not_to_say = false
[[pages.questions]]
id = "leaving"
type = "single_choice"
text = "Are you looking for another job?"
options = [
  { id = "no", label = "No" },
  { id = "maybe", label = "Not yet, but I have thought about it more than once this year" },
  { id = "yes", label = "Yes" },
]
[[pages.questions]]
id = "satisfied"
type = "scale"
text = "All in all, how satisfied are you with your work?"
options = [
  { id = "very_dissatisfied", label = "Very dissatisfied" },
  { id = "dissatisfied", label = "Dissatisfied" },
  { id = "neither", label = "Neither" },
  { id = "satisfied", label = "Satisfied" },
  { id = "very_satisfied", label = "Very satisfied" },
]
[[pages.questions]]
id = "recommend"
type = "scale"
text = "Would you recommend this hospital as a place to work?"
low = 1
high = 4
low_label = "Never"
high_label = "Always"
prefer_not_to_say = false
[[pages.questions]]
id = "overtime"
type = "number"
text = "How many hours of unpaid overtime do you work in a usual week?"
low = 0
high = 12
unit = "hours"
[[pages.questions]]
id = "support"
type = "multiple_choice"
text = "Who at work supports you?"
options = [
  { id = "colleagues", label = "Colleagues" },
  { id = "manager", label = "My manager" },
  { id = "doctor", label = "الطبيب" },
]
"""

GROUPS = {"north": 0.8, "south": 1.0, "night shift on weekends and holidays": 1.6}
"""The groups, with how much more frequent later answers are than in the south."""

PAGES: Mapping[str, str] = {
    "dashboard": "/1",
    "scale": "/1/questions/satisfied",
    "scale-4": "/1/questions/recommend",
    "number": "/1/questions/overtime",
    "links": "/1/links?question=leaving",
    "links-mean": "/1/links?question=satisfied&part=mean",
    "trend": "/1/trend?question=leaving",
    "trend-mean": "/1/trend?question=satisfied&part=mean",
    "versions": "/1/versions?question=bullied",
    "crosstab": "/explore?first=leaving&second=bullied",
    "difference": "/explore/difference?question=leaving&a=link:north&b=link:south",
    "regression": "/explore/regression?question=bullied&predictor=leaving&predictor=link",
    "multinomial": "/explore/regression?question=leaving&predictor=satisfied",
}

DEFICIENCIES = ("none", "protanopia", "deuteranopia", "tritanopia", "achromatopsia")


def add_gallery(store: Store, n: int = 2400) -> PublishedSurvey:
    """Publish the survey, and release reports of three groups on eight days, one nearly empty."""
    survey = publish(store, load(GALLERY.encode(), "gallery.toml", Caps()), TODAY)
    for number in range(8):
        for place, (group, weight) in enumerate(GROUPS.items()):
            size = 30 if number == 4 else n // (place + 1)
            trend = weight * (1 + number / 8)
            rows = _codes(survey, size, trend, seed=10 * number + place)
            store.add_reports(
                [(survey.key, StoredReport(os.urandom(16), group, row)) for row in rows]
            )
            publish_pending(store, survey, 25, day=date(2026, 9, 1) + timedelta(9 * number))
    return survey


def _codes(survey: PublishedSurvey, n: int, weight: float, seed: int) -> list[bytes]:
    """Return reports in which later answers are more frequent after a "yes" to the first."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        code, is_bullied = b"", False
        for place, question in enumerate(survey.definition.questions):
            channel = question.channel
            options = np.arange(channel.options)
            if place:
                shares = np.exp(-((options - (1.5 * weight + 1.2 * is_bullied)) ** 2) / 3)
            else:
                shares = np.array([0.15 * weight, 1 - 0.15 * weight])
            truth = int(rng.choice(options, p=shares / shares.sum()))
            is_bullied = is_bullied or (place == 0 and truth == 0)
            ticks = [int(rng.random() < 0.3 + 0.2 * option) for option in options]
            answer = ticks if isinstance(channel, TickChannel) else truth
            code += question.encode(channel.perturb_one(answer, lambda k: int(rng.integers(k))))
        rows.append(code)
    return rows


def see_as(page: Page, deficiency: str) -> None:
    """Let a page look as with this deficiency; "none" is full color vision."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setEmulatedVisionDeficiency", {"type": deficiency})


def pictures(site: Site, names: Sequence[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the picture of each page, width, color scheme and deficiency."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
            args=["--no-sandbox"],
        )
        page = sign_in(Device(browser.new_context()), site.url)
        for name in names or PAGES:
            page.goto(f"{site.url}/research/surveys/gallery{PAGES[name]}")
            for width, scheme, deficiency in [
                *((width, scheme, "none") for width in (390, 1280) for scheme in ("light", "dark")),
                *((1280, "light", deficiency) for deficiency in DEFICIENCIES[1:]),
            ]:
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=scheme)
                see_as(page, deficiency)
                yield f"{name}-{width}-{scheme}-{deficiency}", page.screenshot(full_page=True)
                see_as(page, "none")
        browser.close()


def main(directory: str, *names: str) -> None:
    """Save all pictures into a directory."""
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as data, running_site(Path(data)) as site:
        site.read_keys()
        add_gallery(site.store)
        for name, picture in pictures(site, names):
            (target / f"{name}.png").write_bytes(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
