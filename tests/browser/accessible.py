"""A survey in English and Arabic, a walk through all of its states, and measurements in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from playwright.sync_api import Page, Route, expect

from survey.collect.publication import close
from survey.respondent_texts import say
from survey.store import PublishedSurvey, Schedule
from tests.browser.conftest import Device, Site
from tests.browser.respondent import heading, press
from tests.conftest import TODAY
from tests.surveys import EVERY_TYPE

OUTER_SUMMARY = "summary:not(details details summary)"
"""The elements that open a part of a page, except for nested parts."""

State = tuple[str, Page]
"""Name of a state, and the page that shows it."""

ARABIC = {
    "Work and health": "العمل والصحة",
    "Six questions about work.": "ستة أسئلة عن العمل.",
    "Why did you stay at home?": "لماذا بقيت في المنزل؟",
    "Think of the last month.": "فكّر في الشهر الماضي.",
    "I was ill": "كنت مريضًا",
    "A child was ill": "كان طفلي مريضًا",
    "I was tired": "كنت متعبًا",
    "How many hours did you work last week?": "كم ساعة عملت في الأسبوع الماضي؟",
    "hours": "ساعة",
    "Since when have you worked here?": "منذ متى تعمل هنا؟",
    "How do you feel at work?": "كيف تشعر في العمل؟",
    "Very bad": "سيئ جدًا",
    "Very good": "جيد جدًا",
    "Places and tools": "الأماكن والأدوات",
    "Where do you work?": "أين تعمل؟",
    "In an office": "في مكتب",
    "At home": "في المنزل",
    "Which of these do you use?": "أيًّا من هذه تستخدم؟",
    "How strong is your pain?": "ما شدة ألمك؟",
    "No pain": "لا ألم",
    "Unbearable": "لا يُحتمل",
    "What matters most to you at work?": "ما أهم شيء لك في العمل؟",
    "Pay": "الأجر",
    "Free time": "وقت الفراغ",
    "Colleagues": "الزملاء",
    "How satisfied are you with each of these?": "ما مدى رضاك عن كل مما يلي؟",
    "Your boss": "رئيسك",
    "Do you work at night?": "هل تعمل ليلًا؟",
    "You will take part of your own free will.": "مشاركتك طوعية.",
    "Thank you.": "شكرًا لك.",
}
"""Some texts stay in English, as in a survey whose translation is unfinished."""


def in_arabic_too(toml: str) -> str:
    for text, arabic in ARABIC.items():
        toml = re.sub(
            f'(?<!id) = "{re.escape(text)}"', f' = {{ en = "{text}", ar = "{arabic}" }}', toml
        )
    return toml


WHOLE = in_arabic_too(
    """
consent = "You will take part of your own free will."
ethics = "The committee of the university has approved this study."
helpline = "Call 112."
thanks = "Thank you."
"""
    + EVERY_TYPE
    + """
[[pages]]
[[pages.questions]]
id = "nights"
type = "single_choice"
text = "Do you work at night?"
options = [{id = "never", label = "Never"}, {id = "often", label = "Often"}]
"""
).replace("epsilon = 0.5", "epsilon = 0.2")
EVERY_STATE = WHOLE + in_arabic_too(
    """
[[pages]]
[[pages.questions]]
id = "pain"
type = "number"
text = "How strong is your pain?"
low = 0
high = 100
slider = true
low_label = "No pain"
high_label = "Unbearable"

[[pages]]
[[pages.questions]]
id = "matters"
type = "ranking"
text = "What matters most to you at work?"
options = [{id = "pay", label = "Pay"}, {id = "time", label = "Free time"},
           {id = "team", label = "Colleagues"}, {id = "safety", label = "Safety"},
           {id = "place", label = "A short way to work"}]

[[pages]]
[[pages.questions]]
id = "content"
type = "matrix"
text = "How satisfied are you with each of these?"
low = 1
high = 5
low_label = "Not at all"
high_label = "Very"
rows = [{id = "wage", text = "Pay"}, {id = "hours", text = "Working hours"},
        {id = "boss", text = "Your boss"}]
"""
)
"""The same survey with types that have other fields: slider, ranking and matrix."""
ENTRIES = ("", "38", "1998-03-05", "", "20.2", "", "")
"""The text typed on each page; "" where an option is chosen."""
OTHERWISE = ("", "", "")
WRONG: dict[int, Callable[[Page], object]] = {
    0: lambda page: [page.locator("label.choice").nth(i).tap() for i in range(3)],
    1: lambda page: page.locator("input.entry").fill("90"),
    2: lambda page: page.locator("input.entry").fill("1990-01-01"),
    8: lambda page: [page.locator(".rank-option").first.tap() for _ in range(2)],
}
"""On some pages, an invalid entry."""


def states(site: Site, device: Device, language: str) -> Iterator[State]:
    """Yield every state that a survey's page can show."""
    device.disable_retries()
    yield from obstacle_states(site, device)
    survey = site.publish(EVERY_STATE)
    page = device.open(site.link(survey))
    yield from start_states(page, language)
    yield from answer_states(page, language)
    yield from send_states(page, language)
    yield from return_states(page, language, f"survey-report:{survey.slug}")
    page.close()
    yield from shared_device_states(site, device, language)


def obstacle_states(site: Site, device: Device) -> Iterator[State]:
    survey = site.publish(EVERY_STATE)
    page = device.context.new_page()
    page.route("**/main.js", lambda route: route.abort())
    page.goto(site.link(survey))
    # The notice appears after some seconds.
    expect(page.locator("h1")).to_be_visible()
    yield "without code", page
    page.unroute_all()
    close(site.store, survey.slug, TODAY)
    invited = site.link(site.publish(f'access = "invitation"\n{EVERY_STATE}'))
    for name, address in (
        ("unknown", f"{site.url}/s/none"),
        ("wrong link", f"{site.url}/s/{site.publish(EVERY_STATE).slug}#d=0123456789abcdef"),
        ("closed", site.link(survey)),
        ("not open", site.link(publish_scheduled(site, Schedule(opens=TODAY.replace(year=2090))))),
        ("over", site.link(publish_scheduled(site, Schedule(closes=TODAY.replace(year=2020))))),
        ("not invited", invited),
        ("damaged link", f"{invited}&i=abc"),
    ):
        page.goto("about:blank")
        page.goto(address)
        expect(page.locator(".notice, .quiet").first).to_be_visible()
        yield name, page
    page.close()
    yield from states_without_storage(site, device)


def publish_scheduled(site: Site, schedule: Schedule) -> PublishedSurvey:
    survey = site.publish(EVERY_STATE)
    site.store.set_schedule(survey.key, schedule)
    return survey


LIMITATIONS = {
    "no generator": "crypto.getRandomValues = undefined",
    "no storage": "Object.defineProperty(window, 'localStorage', {get() { throw new Error() }})",
}


def states_without_storage(site: Site, device: Device) -> Iterator[State]:
    link = site.link(site.publish(EVERY_STATE))
    for name, script in LIMITATIONS.items():
        page = device.context.new_page()
        page.add_init_script(script)
        page.goto(link)
        expect(page.locator(".notice").first).to_be_visible()
        yield name, page
        page.close()


def start_states(page: Page, language: str) -> Iterator[State]:
    expect(page.locator(".view.start")).to_be_visible()
    yield "start", page
    page.locator(OUTER_SUMMARY).first.tap()
    page.locator(".pair .button").first.tap()
    press(page, say(language, "dice.hundred"))
    yield "start with dice", page
    page.locator(OUTER_SUMMARY).last.tap()
    yield "start with numbers", page
    press(page, say(language, "start.agree"))


def answer_states(page: Page, language: str) -> Iterator[State]:
    for at, typed in enumerate((*ENTRIES, *OTHERWISE)):
        yield f"page {at}", page
        press(page, say(language, "question.next"))
        page.locator("summary").first.tap()
        yield f"page {at} left out", page
        if at in WRONG:
            WRONG[at](page)
            press(page, say(language, "question.next"))
            yield f"page {at} wrong", page
        fill_in(page, typed)
        press(page, say(language, "question.next"))
    yield "review", page
    page.get_by_role("button", name=say(language, "review.change")).first.tap()
    yield "change", page
    press(page, say(language, "question.toReview"))


def fill_in(page: Page, typed: str) -> None:
    for group in page.locator("fieldset").all():
        entry = group.locator("input.entry")
        # The last option of a page is exclusive: choosing it clears the surplus ticks.
        entry.fill(typed) if entry.count() else group.locator("label.choice").last.tap()
    for row in page.locator(".matrix-row").all():
        row.locator("label").last.tap()


def send_states(page: Page, language: str) -> Iterator[State]:
    routes: list[Route] = []
    page.route("**/reports", lambda route: routes.append(route))
    with page.expect_request("**/reports"):
        press(page, say(language, "review.send"))
    heading(page, say(language, "sending.heading"))
    yield "sending", page
    routes.pop().abort()
    heading(page, say(language, "waiting.heading"))
    yield "waiting", page
    page.unroute_all()
    page.route("**/reports", refuse)
    press(page, say(language, "waiting.now"))
    heading(page, say(language, "refused.heading"))
    page.locator(OUTER_SUMMARY).last.tap()
    yield "refused", page
    page.unroute_all()
    press(page, say(language, "refused.again"))
    heading(page, say(language, "sent.heading"))
    page.locator(OUTER_SUMMARY).last.tap()
    yield "sent", page


def refuse(route: Route) -> None:
    problem = {"type": "urn:survey:full", "detail": "the survey is full"}
    route.fulfill(status=409, json=problem, content_type="application/problem+json")


def return_states(page: Page, language: str, key: str) -> Iterator[State]:
    page.reload()
    heading(page, say(language, "mark.heading"))
    yield "mark", page
    press(page, say(language, "mark.remove"))
    yield "removed", page
    page.evaluate("key => localStorage.setItem(key, 'not a report')", key)
    page.reload()
    heading(page, say(language, "damaged.heading"))
    yield "damaged", page


def shared_device_states(site: Site, device: Device, language: str) -> Iterator[State]:
    """Yield the states of a shared device."""
    page = device.context.new_page()
    page.clock.install()
    page.goto(site.link(site.publish(f"kiosk = true\n{EVERY_STATE}")))
    press(page, say(language, "start.agree"))
    page.clock.fast_forward(121_000)
    yield "shared and idle", page
    press(page, say(language, "idle.button"))
    for typed in (*ENTRIES, *OTHERWISE):
        fill_in(page, typed)
        press(page, say(language, "question.next"))
    press(page, say(language, "review.send"))
    heading(page, say(language, "sent.heading"))
    yield "shared and sent", page
    page.close()


RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
VIOLATIONS = """async (tags) => {
  // Further down, the toolbar covers part of the page, and axe counts what it covers as too small.
  scrollTo(0, 0);
  const rules = { "color-contrast-enhanced": { enabled: true } };
  const { violations } = await axe.run({ runOnly: tags, rules, resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target}: ${failureSummary}`));
}"""
"""The violations that axe-core reports, as texts."""
SPACED = """(isSpaced) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`* { line-height: 1.5 !important; letter-spacing: 0.12em !important;
    word-spacing: 0.16em !important } p { margin-bottom: 2em !important }`);
  document.adoptedStyleSheets = isSpaced ? [sheet] : [];
}"""
"""Set the text spacing of WCAG 1.4.12, or reset it."""
HIDDEN_TEXTS = """() => {
  scrollTo(0, 0);
  const root = document.querySelector("dialog[open]") ?? document.body;
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const ancestors = (e) => (e ? [e, ...ancestors(e.parentElement)] : []);
  const matches = [];
  while (texts.nextNode()) {
    const { parentElement: parent, data } = texts.currentNode;
    const around = ancestors(parent).map((e) => [e, getComputedStyle(e)]);
    const isHidden = !parent.checkVisibility() || around.some(([, s]) => s.clipPath !== "none");
    if (isHidden || data.trim() === "" || parent.matches("select *")) continue;
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    const cuts = around.filter(([, s]) => /hidden|clip/.test(s.overflowX + s.overflowY));
    const boxes = [...cuts.map(([e]) => e.getBoundingClientRect()),
                   { left: 0, right: innerWidth, top: -Infinity, bottom: Infinity }];
    for (const rect of range.getClientRects()) matches.push({ data, rect, boxes });
  }
  const overlap = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > Math.min(a.height, b.height) / 2;
  const isCut = ({ rect, boxes }) => boxes.some((box) => rect.left < box.left - 1 ||
    rect.right > box.right + 1 || rect.top < box.top - 1 || rect.bottom > box.bottom + 1);
  const isCovered = (a, i) => matches.slice(i + 1).some((b) => overlap(a.rect, b.rect));
  const { scrollWidth } = document.scrollingElement;
  return [...(scrollWidth > innerWidth ? [`${scrollWidth} wide`] : []),
          ...matches.filter((match, i) => isCut(match) || isCovered(match, i))
            .map(({ data }) => data)];
}"""
"""Texts that are clipped, covered by another text, or outside the window."""
MOVING = """() => {
  const moves = (e) => ["", "::before", "::after"].some((part) => {
    const { animationDuration, transitionDuration, scrollBehavior } = getComputedStyle(e, part);
    const isGradual = (durations) => !/^0s(, 0s)*$/.test(durations);
    return isGradual(animationDuration) || isGradual(transitionDuration) ||
      scrollBehavior !== "auto";
  });
  const all = [...document.querySelectorAll("*")];
  return all.filter(moves).map((e) => `moves: ${e.outerHTML.slice(0, 80)}`);
}"""
"""Elements that move or fade. An animation of no duration only delays how an element looks."""
FOCUSED = """() => {
  const e = document.activeElement;
  const shown = e.matches(".choice input") ? e.nextElementSibling : e;
  const { outlineStyle, outlineWidth } = getComputedStyle(shown);
  const box = shown.getBoundingClientRect();
  const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
  const hit = document.elementFromPoint((box.left + box.right) / 2, (top + bottom) / 2);
  return {
    name: (e.ariaLabel ?? (e.ariaLabelledByElements?.[0] ?? e.labels?.[0] ?? e).innerText).trim(),
    isLost: e === document.body || !e.isConnected,
    isOutlined: e.matches("h1") || (outlineStyle === "solid" && parseFloat(outlineWidth) >= 2),
    isSeen: shown.contains(hit) || hit === e,
  };
}"""
"""The focused element, and whether its focus is visible."""
FOREIGN = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const matches = [];
  while (texts.nextNode()) {
    const { parentElement: parent, data } = texts.currentNode;
    const isCode = parent.closest("code,pre,option,script,.opening") || !parent.checkVisibility();
    const isArabic = /\\p{sc=Arab}/u.test(data);
    if (isCode || isArabic === /[a-z]{2}/i.test(data)) continue;
    if (parent.closest("[lang]").lang !== (isArabic ? "ar" : "en")) matches.push(data);
  }
  return matches;
}"""
"""Texts in Arabic or English letters that are marked as another language.

The page without its code is left out: it says the same in all languages, and a test of the page's
source checks each."""
