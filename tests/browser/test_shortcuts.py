"""The builder's keyboard shortcuts and drag handles: both use the buttons of the page."""

from __future__ import annotations

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.drafts.edits import add_page, add_question
from tests.browser import test_looks
from tests.browser.research import sign_in
from tests.conftest import EMAIL

pytestmark = pytest.mark.web

look = test_looks.look


@pytest.fixture
def draft(store, researcher) -> str:
    """Store a draft of three questions, and of a second page without any; return its slug."""
    content = DraftContent.new("Draft", "draft")
    for text in ("First?", "Second?", "Third?"):
        content, key = add_question(content, 1, "yes_no")
        question = {**content.question(key), "text": {"en": text}}
        content = content.with_question(key, question)
    content = add_page(content)
    team = {store.researcher(EMAIL).key: "owner"}
    return store.add_draft(content.to_json(), EMAIL, 0, team).slug


def texts(store) -> list[list[str]]:
    """Return the texts of the draft's questions by page."""
    pages = DraftContent.from_json(store.drafts()[0].content).pages
    return [[question["text"].get("en", "") for question in page.questions] for page in pages]


def press(page: Page, *keys: str) -> None:
    """Press keys of which the last one leads to another page."""
    *first, last = keys
    for key in first:
        page.keyboard.press(key)
    with page.expect_navigation():
        page.keyboard.press(last)


def test_the_builder_is_used_by_keyboard_only(serve, store, draft, new_device):
    page = sign_in(new_device(**test_looks.DESK), serve(), f"/research/drafts/{draft}")
    press(page, "j", "j", "u")
    assert texts(store) == [["Second?", "First?", "Third?"], []]
    # The moved question keeps the focus, so that it can be moved on.
    press(page, "d")
    assert texts(store) == [["First?", "Second?", "Third?"], []]
    press(page, "z")
    assert texts(store) == [["Second?", "First?", "Third?"], []]
    press(page, "j", "j", "Enter")
    expect(page.get_by_label("Question", exact=True)).to_have_value("First?")
    press(page, "j")
    expect(page.get_by_label("Question", exact=True)).to_have_value("Third?")
    # In a field a key writes, and works as a shortcut only with Alt and Shift.
    page.get_by_label("Question", exact=True).focus()
    page.keyboard.press("End")
    page.keyboard.type("?kos")
    press(page, "Alt+Shift+S")
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    assert texts(store) == [["Second?", "First?", "Third??kos"], []]
    press(page, "Alt+Shift+K")
    expect(page.get_by_label("Question", exact=True)).to_have_value("First?")
    press(page, "o")
    expect(page.locator("h1")).to_have_text("Draft")
    press(page, "j", "c")
    press(page, "a")
    press(page, "Alt+Shift+O")
    assert texts(store) == [["Second?", "Second?", "First?", "Third??kos", ""], []]
    press(page, "p")
    expect(page.locator("h1")).to_contain_text("Preview")


def test_the_list_of_shortcuts_is_a_dialog_that_turns_single_keys_off(
    serve, store, draft, new_device, look
):
    device = new_device(**test_looks.DESK)
    device.context.add_init_script(AXE_SCRIPT)
    page = sign_in(device, serve(), f"/research/drafts/{draft}")
    page.keyboard.press("u")
    expect(page.locator("#shortcut-note")).to_have_text("Choose a question first: press J.")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    # It lists what the page has: this one has nothing to save or to undo.
    shown = dialog.locator("tbody tr:visible th")
    assert shown.all_inner_texts() == ["J", "K", "A", "C", "U", "D", "O", "P", "?"]
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    switch = dialog.get_by_label("Use single-key shortcuts")
    switch.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Escape")
    page.reload()
    for key in ("j", "u", "?", "a"):
        page.keyboard.press(key)
    expect(dialog).to_be_hidden()
    assert texts(store) == [["First?", "Second?", "Third?"], []]
    press(page, "Alt+Shift+J", "Alt+Shift+D")
    assert texts(store) == [["Second?", "First?", "Third?"], []]
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(dialog).to_be_visible()
    look(page, "builder-shortcuts")
    assert device.messages == []


def drag(page: Page, source: str, target: str) -> None:
    with page.expect_navigation():
        page.locator("li", has_text=source).locator(".handle").drag_to(page.locator(target).first)


def test_a_question_is_dragged_to_a_place_and_to_an_empty_page(serve, store, draft, new_device):
    # All places are visible, because the browser's driver cannot scroll while it drags.
    device = new_device(viewport={"width": 1280, "height": 2000})
    page = sign_in(device, serve(), f"/research/drafts/{draft}")
    drag(page, "Third?", "li:has-text('First?')")
    assert texts(store) == [["Third?", "First?", "Second?"], []]
    expect(page.get_by_role("status")).to_contain_text(["Question moved."])
    drag(page, "Third?", "li:has-text('First?')")
    assert texts(store) == [["First?", "Third?", "Second?"], []]
    drag(page, "First?", "[data-empty-page]")
    assert texts(store) == [["Third?", "Second?"], ["First?"]]
    press(page, "Alt+Shift+Z")
    assert texts(store) == [["First?", "Third?", "Second?"], []]
    assert device.messages == []
