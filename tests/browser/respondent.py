"""A respondent's actions."""

from __future__ import annotations

from collections.abc import Sequence

from playwright.sync_api import Locator, Page, expect

Answer = str | None
"""The label of an option, or None for a question that is left empty."""


SINGLE_TAPS = """addEventListener("click", (event) => {
  if (event.isTrusted) Object.defineProperty(event, "detail", { value: Math.min(event.detail, 1) });
}, true)"""
"""Tests tap faster than people: count each tap as a single one, not as half of a double tap."""


def press(page: Page, words: str) -> None:
    page.get_by_role("button", name=words, exact=True).tap()


def choose(page: Page, label: str) -> None:
    option(page, label).tap()


def option(page: Page, label: str) -> Locator:
    return page.locator("label.choice", has=page.get_by_text(label, exact=True))


def entry(page: Page) -> Locator:
    """Return the page's only text field."""
    return page.locator("input.entry")


def review(page: Page, question: str) -> Locator:
    """Return a question's row of the review."""
    return page.locator(f".answers [data-question={question}]")


def heading(page: Page, words: str) -> None:
    """Wait until the page has this heading."""
    expect(page.get_by_role("heading", level=1)).to_have_text(words)


def answer(page: Page, answers: Sequence[Answer]) -> None:
    """Go from the start page to the review, through pages of one question each."""
    press(page, "Start")
    for label in answers:
        title = page.get_by_role("heading", level=1).text_content()
        if label is None:
            press(page, "Continue")
        else:
            choose(page, label)
        press(page, "Continue")
        expect(page.get_by_role("heading", level=1)).not_to_have_text(title or "")
    heading(page, "Check your answers")


def answer_and_send(page: Page, answers: Sequence[Answer] = ("Yes", "Never")) -> None:
    answer(page, answers)
    press(page, "Send")


def wait_sent(page: Page) -> None:
    heading(page, "Sent. Thank you.")


def wait_waiting(page: Page) -> None:
    """Wait until the page announces the next try."""
    expect(page.get_by_role("status")).to_contain_text("Trying again in")


def stored_entries(page: Page) -> dict[str, str]:
    """Return the local storage of the page's origin."""
    stored: dict[str, str] = page.evaluate("({...localStorage})")
    return stored
