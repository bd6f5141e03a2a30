"""A survey's texts are shown as text to respondents and researchers, whatever they contain."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from survey.collect import publication
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.browser.research import add_released, sign_in
from tests.browser.respondent import answer_and_send, entry, heading, press, wait_sent
from tests.conftest import TODAY

pytestmark = [pytest.mark.web, pytest.mark.security]

PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    '"><iframe src=//evil.example></iframe>',
    "javascript:alert(1)",
    '<a href="javascript:alert(1)">press</a>',
    "</title><script>alert(1)</script>",
    "{{ 7*7 }}{% raw %}${7*7}#{7*7}",
    "<style>*{background:url(//evil.example/x)}</style>",
    '<meta http-equiv=refresh content="0;url=//evil.example">',
    "'-alert(1)-' onfocus=alert(1) autofocus=\"",
    "&lt;script&gt;alert(1)&lt;/script&gt;<!--",
    "<base href=//evil.example/><form action=//evil.example><input name=x>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'>",
    "<object data=javascript:alert(1)>",
    "<embed src=//evil.example/x.swf>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<link rel=preload as=image href=//evil.example/p>",
    "<video><source onerror=alert(1)>",
    "<audio src=x onerror=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<marquee onstart=alert(1)>",
    "<body onload=alert(1)>",
    "<input onfocus=alert(1) autofocus>",
    "<select onfocus=alert(1) autofocus>",
    "<textarea onfocus=alert(1) autofocus>",
    "<button formaction=javascript:alert(1)>press",
    "<math><mi xlink:href=javascript:alert(1)>x",
    "<svg><animate onbegin=alert(1) attributeName=x>",
    "<svg><use href=data:image/svg+xml,x#x>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<p style='background:url(//evil.example/x)'>",
    "<a href=vbscript:msgbox(1)>",
    "<a href=data:text/html,<script>alert(1)</script>>",
    "</textarea></style></script><script>alert(1)</script>",
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "${alert(1)}`${alert(1)}`",
    "<img srcset='//evil.example/x 1x'>",
)
assert len(PAYLOADS) == len(set(PAYLOADS)) == 40
EVERYTHING = "\n\n".join(PAYLOADS)
PAGES = [PAYLOADS[start : start + 8] for start in range(0, len(PAYLOADS), 8)]


def definition() -> str:
    """Return a definition as JSON with a payload in every text."""
    return json.dumps(
        {
            "slug": "small",
            "title": " ".join(PAYLOADS[:6]),
            "introduction": EVERYTHING,
            "consent": EVERYTHING,
            "ethics": EVERYTHING,
            "helpline": {"en": EVERYTHING, "es": f"es {EVERYTHING}"},
            "contact": EVERYTHING,
            "thanks": EVERYTHING,
            "epsilon": "1/2",
            "pages": [
                {
                    "title": page[0],
                    "questions": [
                        {
                            "id": f"q{PAYLOADS.index(payload)}",
                            "type": "single_choice",
                            "text": {"en": f"{payload} {EVERYTHING[:700]}", "es": f"es {payload}"},
                            "help": EVERYTHING,
                            "prefer_not_to_say": f"{payload} no",
                            "options": [
                                {"id": "a", "label": {"en": payload, "es": f"es {payload}"}},
                                {"id": "b", "label": f"{payload} b"},
                            ],
                        }
                        for payload in page
                    ],
                }
                for page in PAGES
            ],
        }
    )


def publish(site):
    template = load(definition().encode(), "s.json", Caps())
    with_slug = template.model_copy(update={"slug": f"hostile-{next(site.numbers)}"})
    return publication.publish(site.store, with_slug, TODAY)


def assert_harmless(device, site, page: Page) -> None:
    assert device.messages == []
    assert [
        request.url for request in device.requests if not request.url.startswith(site.url + "/")
    ] == []
    assert page.evaluate("window.opener") is None
    kinds = "script, iframe, img, style, meta, base, form, a:not([href^='tel:'])"
    assert page.locator(f"main :is({kinds})").count() == 0
    assert page.url.startswith(site.url)


def test_payloads_in_every_text_of_a_survey_are_shown_as_text_to_respondents(site, device):
    survey = publish(site)
    page = device.open(site.link(survey))
    heading(page, survey.definition.title)
    for place in (".lead", ".consent", ".ethics", ".helpline", ".contact"):
        texts = page.locator(f"{place} p").all_text_contents()
        assert [text for text in texts if text in PAYLOADS] == list(PAYLOADS), place
    assert_harmless(device, site, page)
    page.locator("#tools select").select_option("es")
    expect(page.locator(".helpline p").first).to_have_text(f"es {PAYLOADS[0]}")
    page.locator("#tools select").select_option("en")
    press(page, "I agree, start")
    for payloads in PAGES:
        heading(page, payloads[0])
        for group, payload in zip(page.locator("fieldset").all(), payloads, strict=True):
            expect(group.locator("label.choice").first).to_have_text(payload)
            expect(group.locator("legend")).to_contain_text(payload)
            expect(group.locator(".hint")).to_contain_text("<script>")
            group.locator("label.choice").first.tap()
        assert_harmless(device, site, page)
        press(page, "Continue")
    heading(page, "Check your answers")
    assert [row.text_content() for row in page.locator("dd b").all()] == list(PAYLOADS)
    page.locator("#tools select").select_option("es")
    spanish = [f"es {payload}" for payload in PAYLOADS]
    assert [row.text_content() for row in page.locator("dd b").all()] == spanish
    page.locator("#tools select").select_option("en")
    assert_harmless(device, site, page)
    press(page, "Send")
    wait_sent(page)
    page.get_by_text("See what was sent").tap()
    assert page.title().startswith("<script>alert(1)</script>")
    assert_harmless(device, site, page)


def hostile_types() -> str:
    """Return a survey of ticks, a number and a date with a payload in every text."""
    short = PAYLOADS[1]
    common = {"text": PAYLOADS[0], "help": EVERYTHING, "prefer_not_to_say": f"{short} no"}
    ticks = {
        "id": "ticks",
        "type": "multiple_choice",
        "none_of_these": f"{short} none",
        "options": [{"id": "a", "label": short}, {"id": "b", "label": f"{short} b"}],
    }
    number = {"id": "number", "type": "number", "low": 0, "high": 9, "unit": short}
    date = {"id": "date", "type": "date", "low": "2020-01-01", "high": "2020-12-31"}
    pages = [{"questions": [{**common, **question}]} for question in (ticks, number, date)]
    return json.dumps({"slug": "small", "title": "Types", "epsilon": 1, "pages": pages})


def test_payloads_in_the_texts_of_every_type_are_shown_as_text(site, device):
    template = load(hostile_types().encode(), "s.json", Caps())
    with_slug = template.model_copy(update={"slug": f"hostile-{next(site.numbers)}"})
    page = device.open(site.link(publication.publish(site.store, with_slug, TODAY)))
    press(page, "Start")
    page.locator("label.choice").first.tap()
    press(page, "Continue")
    expect(page.locator(".unit")).to_have_text(PAYLOADS[1])
    entry(page).fill("3")
    assert_harmless(device, site, page)
    press(page, "Continue")
    entry(page).fill("2020-02-01")
    press(page, "Continue")
    heading(page, "Check your answers")
    values = [PAYLOADS[1], f"3 {PAYLOADS[1]}", "1 February 2020"]
    assert page.locator("dd b").all_inner_texts() == values
    press(page, "Send")
    wait_sent(page)
    page.get_by_text("See what was sent").tap()
    assert_harmless(device, site, page)


def test_payloads_are_shown_as_text_to_researchers_and_inside_charts(site, new_device):
    survey = publish(site)
    site.read_keys()
    add_released(site.store, survey, 400)
    device = new_device(has_touch=False, is_mobile=False)
    page = sign_in(device, site.url, f"/research/surveys/{survey.slug}/1")
    expect(page.locator("h1")).to_have_text(survey.definition.title)
    for payload in PAYLOADS:
        expect(page.locator("main").get_by_text(payload).first).to_be_attached()
    assert page.locator("main :is(script, iframe, img, style, meta, base)").count() == 0
    base = f"/research/surveys/{survey.slug}"
    links = {link.get_attribute("href") for link in page.locator("main a").all()}
    inside = (f"{base}/", f"{base}?", "?", "#q-")
    assert all(link == base or link.startswith(inside) for link in links), links
    first, second = (question.id for question in survey.definition.questions[:2])
    for path in (
        *("collect", "team", "team/log", f"explore?first={first}&second={second}"),
        f"explore/difference?question={first}",
        f"explore/weighting?question={first}&by=answer:{second}",
        f"explore/regression?question={first}&predictor={second}",
    ):
        page.goto(f"{site.url}{base}/{path}")
        expect(page.locator("h1")).to_be_visible()
        assert page.locator("main :is(script, iframe, img, style, meta, base)").count() == 0
    assert [line for line in device.messages if not line.startswith("Failed to load")] == []
    assert [
        request.url for request in device.requests if not request.url.startswith(site.url + "/")
    ] == []


@pytest.mark.parametrize("detail", PAYLOADS[:4])
def test_the_servers_own_words_are_not_shown(site, device, detail):
    page = device.open(site.link(site.publish()))
    page.route(
        "**/reports",
        lambda route: route.fulfill(
            status=422, body=json.dumps({"detail": detail}), content_type="application/problem+json"
        ),
    )
    answer_and_send(page)
    heading(page, "The survey did not accept your lines")
    expect(page.locator("main")).not_to_contain_text(detail)
    assert [line for line in device.messages if not line.startswith("Failed to load")] == []
