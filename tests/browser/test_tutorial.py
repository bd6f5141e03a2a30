"""The tutorial, followed as it is written, and the pictures that it shows."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from survey import handbook
from tests.browser.test_builder import press, write
from tests.conftest import ROOT, free_port

pytestmark = pytest.mark.web

PICTURES = handbook.FOLDER / "pictures"
TUTORIAL = handbook.FOLDER / "tutorial/first-survey.md"

DESK = {"viewport": {"width": 1024, "height": 700}, "is_mobile": False, "has_touch": False}
QUALITY = 80
"""Quality of pictures, from 0 to 100; at this one, text has no visible noise."""

NAMES = "h1, h2, h3, label, legend, button, th, nav a"
"""Parts of a page whose words do not depend on chance."""


def names_on(page: Page) -> str:
    """Return the names of a page's parts, without numbers."""
    names = page.locator("body").locator(NAMES).all_inner_texts()
    return "".join(f"{' '.join(re.sub(r'[0-9][0-9,.]*', '', name).split())}\n" for name in names)


class Pictures:
    """Pictures of pages: with SURVEY_TEST_PICTURES=write they are written, otherwise compared.

    A picture is outdated if the names on its page changed. Its pixels depend on fonts and chance.
    """

    def __init__(self) -> None:
        self.is_writing = os.environ.get("SURVEY_TEST_PICTURES") == "write"
        self.taken: list[str] = []

    def take(self, page: Page, name: str) -> None:
        self.taken.append(name)
        names = names_on(page)
        listed = ROOT / f"tests/handbook/pictures/{name}.txt"
        if self.is_writing:
            image = Image.open(io.BytesIO(page.screenshot()))
            image.save(PICTURES / f"{name}.webp", quality=QUALITY, method=6)
            listed.write_text(names, encoding="utf-8")
        assert (PICTURES / f"{name}.webp").exists()
        advice = "run SURVEY_TEST_PICTURES=write pytest -m web tests/browser/test_tutorial.py"
        assert listed.read_text(encoding="utf-8") == names, f"{name} is outdated: {advice}"


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[str]:
    """Run `survey demo` as the tutorial says, and yield what it prints."""
    command = [sys.executable, "-m", "survey.cli", "demo", "--directory", str(tmp_path / "demo")]
    with subprocess.Popen(
        [*command, "--port", str(free_port())],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        printed = ""
        assert process.stdout is not None
        for line in process.stdout:
            printed += line
            if "Ctrl-C" in line:
                break
        yield printed
        process.terminate()


def test_the_tutorial_works_as_it_is_written_and_its_pictures_are_current(demo, new_device):
    pictures = Pictures()
    address = re.search(r"Answer the survey +(\S+)", demo)[1]
    results = re.search(r"Dashboard +(\S+)", demo)[1]
    email, password = re.search(r"sign in with +(\S+) +(\S+)", demo).groups()

    phone = new_device().open(address)
    expect(phone.get_by_role("button", name="Start", exact=True)).to_be_visible()
    pictures.take(phone, "start")

    device = new_device(**DESK)
    page = device.open(results)
    write(page, "Email address", email)
    write(page, "Password", password)
    press(page, "Sign in")
    expect(page.get_by_role("heading", name="Key findings")).to_be_visible()
    page.set_viewport_size({"width": 1024, "height": 1150})
    pictures.take(page, "results")
    page.set_viewport_size(DESK["viewport"])

    page.get_by_role("link", name="Surveys", exact=True).click()
    page.get_by_role("link", name="New survey", exact=True).click()
    write(page, "Title", "Lunch at work")
    press(page, "Create draft")
    page.get_by_label("New question").select_option("single_choice")
    press(page, "Add a question to page 1")
    write(page, "Question", "Where do you usually eat lunch?")
    for number, label in enumerate(("At my desk", "In the canteen", "Elsewhere"), 1):
        write(page, f"Answer {number}", label)
    expect(page.locator("#live-epsilon")).to_contain_text("ln(3)")
    page.evaluate("scrollTo(0, 0)")
    page.set_viewport_size({"width": 1024, "height": 1000})
    pictures.take(page, "question")
    page.set_viewport_size(DESK["viewport"])
    press(page, "Save and return to all questions")
    page.get_by_label("New question").select_option("yes_no")
    press(page, "Add a question to page 1")
    write(page, "Question", "Do you skip lunch at least once a week?")
    press(page, "Save and return to all questions")
    page.get_by_label("New question").select_option("scale")
    press(page, "Add a question to page 1")
    write(page, "Question", "How satisfied are you with your lunch break?")
    write(page, "Lowest", "1")
    write(page, "Highest", "5")
    press(page, "Save and return to all questions")
    page.set_viewport_size({"width": 1024, "height": 1300})
    pictures.take(page, "questions")
    page.set_viewport_size(DESK["viewport"])

    page.get_by_role("link", name="Test run", exact=True).click()
    press(page, "Start test run")
    page.get_by_role("spinbutton", name="Simulated respondents").fill("2000")
    press(page, "Add test responses")
    page.get_by_role("link", name="Results of the test run").click()
    expect(page.get_by_text("TEST.")).to_be_visible()
    pictures.take(page, "test-run")
    page.get_by_role("link", name="Back to the draft").click()

    page.get_by_role("link", name="Publish", exact=True).click()
    page.get_by_label("I understand what I cannot change").check()
    page.get_by_role("button", name=re.compile("^Publish lunch-at-work")).click()
    expect(page.get_by_role("heading", name="Collect")).to_be_visible()
    page.get_by_role("link", name="Share", exact=True).first.click()
    expect(page.get_by_role("heading", name="Share", exact=True)).to_be_visible()
    pictures.take(page, "share")

    text = TUTORIAL.read_text(encoding="utf-8")
    assert re.findall(r"\(\.\./pictures/(\S+)\.webp\)", text) == pictures.taken
