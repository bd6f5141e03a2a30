"""The page about an import in a browser: it fits, passes the rules, and leads to the draft."""

from __future__ import annotations

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from tests.browser.research import sign_in
from tests.browser.test_every_page import ALL_LOOKS, faults_of
from tests.questionnaire.limesurvey_files import Item, every_format
from tests.questionnaire.test_limesurvey import ANSWERS, BOUNDS, ROWS

pytestmark = pytest.mark.web

ITEMS = [
    Item("job", "L", "Where do you work?", answers=ANSWERS),
    Item("pay", "F", "How satisfied are you?", parts=ROWS, answers=ANSWERS),
    Item("hours", "N", "How many hours?", attributes=BOUNDS | {"num_value_int_only": "0"}),
    Item("night", "Y", "At night?", settings={"relevance": "count(job) > 1", "mandatory": "Y"}),
    Item("areallylongcodewithoutanybreakinit", "P", "Why, {TOKEN:FIRSTNAME}?", parts=ROWS),
    Item("why", "T", "Tell us more."),
    Item("plan", "S", "What next?", attributes={"time_limit": "30"}),
]


def test_an_imported_file_shows_what_became_of_each_element(serve, store, researcher, new_device):
    url, device = serve(), new_device(viewport={"width": 1280, "height": 800}, is_mobile=False)
    device.context.add_init_script(AXE_SCRIPT)
    page = sign_in(device, url)
    page.goto(f"{url}/research/drafts/new")
    assert list(faults_of(page, ALL_LOOKS)) == []
    button = page.get_by_role("button", name="Create draft from file")
    wrong = {"name": "form.docx", "mimeType": "application/octet-stream", "buffer": b"PK"}
    page.locator("#file").set_input_files(wrong)
    button.click()
    expect(page.get_by_role("alert")).to_contain_text("not a questionnaire")
    assert list(faults_of(page, ALL_LOOKS)) == []
    content = every_format({"Work": ITEMS})["new.lss"]
    file = {"name": "work.lss", "mimeType": "text/xml", "buffer": content}
    page.locator("#file").set_input_files(file)
    page.get_by_label("Keep skip logic").check()
    button.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Work")
    headings = page.get_by_role("heading", level=2).all_inner_texts()
    assert headings == ["Dropped", "Changed", "Kept"]
    dropped = page.get_by_role("region", name="Dropped")
    expect(dropped.get_by_role("rowheader", name="why")).to_be_visible()
    assert list(faults_of(page, ALL_LOOKS)) == []
    page.get_by_role("link", name="Open the draft").click()
    expect(page.get_by_role("link", name="Where do you work?", exact=True)).to_be_visible()
