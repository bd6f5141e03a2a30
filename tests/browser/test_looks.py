"""Every page at phone and desktop widths: nothing overflows or is too small to tap.

SURVEY_TEST_SCREENSHOTS=DIRECTORY saves screenshots in light and dark mode for visual review.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pyotp
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from survey.collect.publication import close, publish
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.loading import load, parse
from survey.respondent_texts import LANGUAGES, say
from survey.settings import Caps
from survey.store import Plan, Store
from tests.browser.accessible import OUTER_SUMMARY, RULES, VIOLATIONS
from tests.browser.conftest import Device
from tests.browser.research import add_released, sign_in, visit
from tests.browser.respondent import choose, entry, heading, press, wait_sent, wait_waiting
from tests.conftest import EMAIL, PASSWORD, SMALL, TODAY, long_unless, wait_until
from tests.results.populations import add_people, shares_by_first_answer
from tests.surveys import EVERY_TYPE, SAMPLED, SKIPS, WORKPLACE

pytestmark = pytest.mark.web

DAILY_WORKPLACE = WORKPLACE.replace('slug = "workplace"', 'slug = "small"\nbucket = "day"')
LONG = (
    SMALL.replace("Did you fall asleep at work?", "Donaudampfschifffahrtsgesellschaft" * 4)
    .replace(
        "A small survey",
        "A survey whose title is as long as titles of surveys really are, "
        "with a Donaudampfschifffahrtsgesellschaftskapitän in it",
    )
    .replace("Once", "An answer that needs a whole sentence, as answers in real surveys often do")
    .replace("Often", "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverleihung")
)
INVALID = (
    SMALL.replace('"3/4"', "0.2")
    .replace('"often"', '"once"')
    .replace('title = "First page"', 'titel = "First page"')
)
DIRECTORY = os.environ.get("SURVEY_TEST_SCREENSHOTS")
SCHEMES = ("light", "dark") if DIRECTORY else ("light",)
BLANK_BYTES = 6_000
"""Upper limit for a blank screenshot of a phone's page, in bytes."""

TOO_SMALL = """
[...document.querySelectorAll("button,summary,label.choice,label.point,a,input,select")]
  .filter((e) => e.checkVisibility() && !e.closest("p,li,th,td,label.choice *,label.point *"))
  .map((e) => [e.textContent.trim() || e.name, e.getBoundingClientRect()])
  .filter(([, box]) => box.height < 44 || box.width < 44)
  .map(([text, box]) => `${text}: ${box.width} x ${box.height}`)"""
CLIPPED = """[...document.querySelectorAll("main *")]
  .filter((e) => e.checkVisibility() && !e.closest("pre,.scroll,svg,.unseen"))
  .filter((e) => {
    const box = e.getBoundingClientRect();
    return box.right > document.documentElement.clientWidth + 0.5 || box.left < -0.5;
  })
  .map((e) => `${e.tagName}.${e.className}: ${e.textContent.slice(0, 40)}`)"""


CHARTS_LOADED = """(scheme) => [...document.images].filter((i) => i.loading !== "lazy")
  .every((i) => i.complete && (!i.closest("picture") || i.currentSrc.includes(`-${scheme}.svg`)))"""
"""Tell whether the charts of a color scheme have loaded; dark mode has separate images."""

DESK = {"viewport": {"width": 1280, "height": 800}, "is_mobile": False}


@pytest.fixture(
    params=[pytest.param({}, id="phone"), pytest.param(DESK, id="desk", marks=pytest.mark.long)]
)
def device_in_look(request, new_device) -> Device:
    return new_device(**request.param).disable_retries()


@pytest.fixture
def look(tmp_path) -> Callable[[Page, str], None]:
    """Check a page's layout and take its picture, in light and dark."""
    directory = Path(DIRECTORY or tmp_path)
    directory.mkdir(parents=True, exist_ok=True)

    def check(page: Page, name: str) -> None:
        width = "document.documentElement.clientWidth"
        assert page.evaluate(f"document.scrollingElement.scrollWidth <= {width}"), name
        assert page.evaluate(CLIPPED) == [], name
        assert page.locator("h1").count() == 1
        assert page.evaluate(TOO_SMALL) == [], name
        if page.evaluate("'axe' in window"):
            assert page.evaluate(VIOLATIONS, RULES) == [], name
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            # The browser loads the charts of the new scheme when they become visible.
            page.wait_for_load_state("networkidle")
            wait_until(lambda scheme=scheme: page.evaluate(CHARTS_LOADED, scheme))
            width = page.viewport_size["width"]
            picture = page.screenshot(
                path=directory / f"{name}-{width}-{scheme}.png", full_page=True
            )
            assert len(picture) > BLANK_BYTES

    return check


def test_respondents_pages_fit_and_every_target_is_large_enough(site, device_in_look, look):
    survey = site.publish(DAILY_WORKPLACE)
    page = device_in_look.open(site.link(survey))
    heading(page, "Your working conditions")
    look(page, "respond-start")
    page.locator(OUTER_SUMMARY).last.click()
    look(page, "respond-start-numbers")
    press(page, "Start")
    look(page, "respond-question")
    press(page, "Continue")
    look(page, "respond-nudge")
    press(page, "Continue")
    heading(page, "How people treat each other")
    page.locator("label.choice").nth(4).tap()
    press(page, "Continue")
    press(page, "Continue")
    heading(page, "Hours and the future")
    page.locator("label.choice").nth(6).tap()
    press(page, "Continue")
    look(page, "respond-error")
    page.locator("label.choice").last.tap()
    press(page, "Continue")
    heading(page, "Check your answers")
    look(page, "respond-review")
    page.route("**/reports", lambda route: route.abort())
    press(page, "Send")
    wait_waiting(page)
    look(page, "respond-waiting")
    page.unroute_all()
    page.route(
        "**/reports",
        lambda route: route.fulfill(
            status=422,
            json={"detail": "code 3 of question 2 is not one of 0 to 2"},
            content_type="application/problem+json",
        ),
    )
    press(page, "Try now")
    heading(page, "The survey did not accept your lines")
    look(page, "respond-refused")
    page.unroute_all()
    press(page, "Try again")
    wait_sent(page)
    look(page, "respond-sent")
    page.locator(OUTER_SUMMARY).last.click()
    look(page, "respond-sent-open")
    page.reload()
    heading(page, "This device has already sent answers")
    look(page, "respond-mark")
    page.goto("about:blank")
    page.goto(f"{site.url}/s/{survey.slug}-none")
    # The page arrives with a notice in every language; the client replaces it.
    heading(page, "This survey cannot start")
    look(page, "respond-404")


def test_every_type_of_question_fits_and_every_target_is_large_enough(site, device_in_look, look):
    page = device_in_look.open(site.link(site.publish(EVERY_TYPE)))
    heading(page, "Work and health")
    page.locator(OUTER_SUMMARY).last.click()
    look(page, "types-start-numbers")
    press(page, "Start")
    for label in ("I was ill", "A child was ill", "I was tired"):
        choose(page, label)
    look(page, "types-ticks-too-many")
    press(page, "Continue")
    look(page, "types-ticks-error")
    choose(page, "None of these")
    press(page, "Continue")
    look(page, "types-number")
    entry(page).fill("90")
    press(page, "Continue")
    look(page, "types-number-error")
    entry(page).fill("38")
    press(page, "Continue")
    look(page, "types-date")
    entry(page).fill("1998-03-05")
    press(page, "Continue")
    look(page, "types-scale")
    choose(page, "4 (Very good)")
    press(page, "Continue")
    entry(page).fill("20,2")
    look(page, "types-decimal")
    press(page, "Continue")
    choose(page, "At home")
    choose(page, "A desk")
    page.locator("summary").first.click()
    look(page, "types-two-lists")
    press(page, "Continue")
    look(page, "types-review")
    press(page, "Send")
    wait_sent(page)
    page.locator(OUTER_SUMMARY).last.click()
    look(page, "types-sent-open")


def test_start_pages_with_skip_logic_and_sampling_fit(site, device_in_look, look):
    for name, toml in (("skips", SKIPS), ("drawn", SAMPLED)):
        page = device_in_look.open(site.link(site.publish(toml)))
        expect(page.get_by_role("button", name="Start")).to_be_visible()
        look(page, f"types-{name}-start")


WEAK_IN_FOUR_LANGUAGES = """
slug = "small"
title = { en = "Your nights", es = "Sus noches", pt = "Suas noites", ar = "لياليك" }
truth_probability = "3/4"
prefer_not_to_say = false
[[pages]]
[[pages.questions]]
id = "slept"
type = "yes_no"
text = { en = "Did you sleep?", es = "¿Durmió?", pt = "Você dormiu?", ar = "هل نمت؟" }
topic = { en = "sleep", es = "el sueño", pt = "o sono", ar = "النوم" }
[[pages.questions]]
id = "asleep"
type = "yes_no"
text = { en = "Were you asleep?", es = "¿Dormía?", pt = "Estava dormindo?", ar = "هل كنت نائمًا؟" }
topic = { en = "sleep", es = "el sueño", pt = "o sono", ar = "النوم" }
[[pages.questions]]
id = "drank"
type = "yes_no"
truth_probability = "99/100"
text = { en = "Did you drink?", es = "¿Bebió?", pt = "Você bebeu?", ar = "هل شربت؟" }
"""


@pytest.mark.parametrize("language", long_unless(["ar"], LANGUAGES))
def test_a_weak_label_fits_in_every_language(site, new_device, look, language):
    device = new_device(locale=language).disable_retries()
    toml = WEAK_IN_FOUR_LANGUAGES
    if language not in ("en", "es", "pt", "ar"):
        toml = toml.replace("title = { en = ", f'title = {{ {language} = "Title", en = ')
    page = device.open(site.link(site.publish(toml)))
    expect(page.locator(".privacy")).to_be_visible()
    look(page, f"label-start-{language}")
    press(page, say(language, "start.button"))
    for group in page.locator("fieldset").all():
        group.locator("label.choice").first.tap()
    press(page, say(language, "question.next"))
    heading(page, say(language, "review.heading"))
    look(page, f"label-review-{language}")
    press(page, say(language, "review.send"))
    heading(page, say(language, "sent.heading"))
    page.locator(OUTER_SUMMARY).last.click()
    look(page, f"label-sent-{language}")
    press(page, say(language, "memory.remember"))
    look(page, f"label-remembered-{language}")
    page = device.open(site.link(site.publish(toml)))
    press(page, say(language, "start.button"))
    heading(page, say(language, "memory.warning"))
    look(page, f"label-add-up-{language}")


def test_long_words_and_titles_wrap(site, device_in_look, look):
    page = device_in_look.open(site.link(site.publish(LONG)))
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    look(page, "respond-long-start")
    press(page, "Start")
    look(page, "respond-long-question")
    press(page, "Continue")
    press(page, "Continue")
    page.locator("label.choice").last.tap()
    press(page, "Continue")
    look(page, "respond-long-review")


WORD = "Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft"
LONG_TYPES = f"""
slug = "small"
title = "{WORD}"
epsilon = 0.5
[[pages]]
title = "{WORD}"
[[pages.questions]]
id = "n"
type = "number"
text = "{WORD}?"
low = 1000
high = 100000
step = 1000
unit = "Quadratkilometerjahresdurchschnittxxxxxx"
does_not_apply = "{WORD}"
[[pages.questions]]
id = "m"
type = "multiple_choice"
text = "Which?"
max_ticks = 2
options = [{{id = "a", label = "{WORD}{WORD}"}}, {{id = "b", label = "{WORD}"}}]
"""


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.long
def test_long_words_wrap_in_options_units_and_the_table_at_every_width(
    site, new_device, look, width
):
    narrow = new_device(viewport={"width": width, "height": 800}, is_mobile=width < 1000)
    page = narrow.open(site.link(site.publish(LONG_TYPES)))
    page.locator("summary").first.click()
    look(page, "types-long-start-numbers")
    press(page, "Start")
    look(page, "types-long-questions")
    entry(page).fill("5")
    press(page, "Continue")
    look(page, "types-long-error")
    entry(page).fill("5100")
    for row in (1, 2):
        page.locator("label.choice").nth(row).tap()
    press(page, "Continue")
    heading(page, "Check your answers")
    look(page, "types-long-review")
    press(page, "Send")
    wait_sent(page)
    page.locator(OUTER_SUMMARY).last.click()
    look(page, "types-long-sent")


def test_a_closed_survey_states_that_it_is_closed(site, device_in_look, look):
    survey = site.publish()
    close(site.store, survey.slug, TODAY)
    page = device_in_look.open(site.link(survey))
    expect(page.get_by_text("closed").first).to_be_visible()
    look(page, "respond-410")


CORE = ("workplace/1", "workplace/1/questions/injured", "workplace/explore", "workplace/collect")


def test_respondents_pages_pass_the_accessibility_rules(serve, store, researcher, new_device, look):
    url, device = serve(), new_device()
    device.context.add_init_script(AXE_SCRIPT)
    toml = DAILY_WORKPLACE.replace('slug = "small"', 'slug = "workplace"')
    survey = publish(store, load(toml.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 2400)
    page = sign_in(device, url)
    for path in CORE:
        visit(page, f"{url}/research/surveys/{path}")
        look(page, f"research-core-{path.replace('/', '-')}")


@pytest.mark.parametrize("width", long_unless([390], [320, 390, 1280]))
def test_the_home_page_fits_and_passes_the_accessibility_rules_in_light_and_dark(
    serve, store, researcher, new_device, look, width
):
    device = new_device(viewport={"width": width, "height": 800}, is_mobile=width < 1000)
    device.context.add_init_script(AXE_SCRIPT)
    page = sign_in(device, url := serve())
    owner = {store.researcher(EMAIL).key: "owner"}

    def look_at(name: str, address: str) -> None:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            visit(page, f"{url}/research/{address}")
            look(page, f"home-{name}-{scheme}")

    look_at("empty", "")
    for number in range(30):
        toml = LONG.replace('slug = "small"', f'slug = "ward-{number}"')
        title = "استبيان حول ظروف العمل في المستشفيات" if number % 3 else f"Ward {number}"
        survey = load(toml.encode(), "s.toml", Caps())
        survey = survey if number % 5 == 0 else survey.model_copy(update={"title": title})
        published = publish(store, survey, TODAY)
        store.set_plan(published.key, Plan(2_000))
    add_released(store, published, 50)
    for content in (DraftContent.new("", ""), draft_from(parse(LONG.encode(), "s.toml"))):
        store.add_draft(content.to_json(), EMAIL, 1_795_000_000, owner)
    look_at("list", "")
    look_at("search", "?q=ward&sort=title")
    look_at("nothing", "?q=nothing&state=draft")
    page.goto(f"{url}/research/")
    page.get_by_label("Title or short name").fill("ward 27")
    page.get_by_label("Title or short name").press("Enter")
    expect(page.locator(".surveys h2")).to_have_text(["Ward 27"])


@pytest.mark.long
@pytest.mark.parametrize("window", ["phone", "desk"])
def test_researchers_pages_fit_and_pass_the_accessibility_rules(
    serve, store, researcher, new_device, look, window
):
    url, device = serve(), new_device(**({} if window == "phone" else DESK))
    device.context.add_init_script(AXE_SCRIPT)
    page = device.open(f"{url}/research/")
    look(page, "research-sign-in")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    look(page, "research-sign-in-wrong")
    page.close()
    page = sign_in(device, url)
    look(page, "research-list-empty")
    joining = device.open(f"{url}{urlsplit(invited(page, url, 'people', look)).path}")
    look(joining, "research-join")
    joining.close()
    fill(store)
    look_at_research(page, url, look)


def invited(page: Page, url: str, where: str, look: Callable[[Page, str], None]) -> str:
    """Return a colleague's invitation from the page that creates it."""
    visit(page, f"{url}/research/{where}")
    page.get_by_role("button", name="Create link").click()
    look(page, f"research-{where.replace('/', '-')}")
    return page.locator(".share code").inner_text()


def look_at_accounts(page: Page, url: str, look: Callable[[Page, str], None]) -> None:
    for name in ("account", "account/password", "account/second-step", "people/log"):
        page.goto(f"{url}/research/{name}")
        look(page, f"research-{name.replace('/', '-')}")
    secret = page.goto(f"{url}/research/account/second-step") and page.locator(".secret")
    page.get_by_label("Code from the app").fill(pyotp.TOTP(secret.inner_text()).now())
    page.get_by_label("Current password").fill(PASSWORD)
    page.get_by_role("button", name="Switch on two-factor authentication").click()
    look(page, "research-recovery-codes")
    recovery_code = page.locator(".codes code").first.inner_text()
    page.goto(f"{url}/research/account/second-step")
    look(page, "research-replace-second-step")
    page.goto(f"{url}/research/account/second-step/remove")
    look(page, "research-remove-second-step")
    page.get_by_label("Code from your authenticator app").fill(recovery_code)
    page.get_by_label("Current password").fill(PASSWORD)
    page.get_by_role("button", name="Switch off two-factor authentication").click()
    look(page, "research-account-again")
    look_at_tokens(page, url, look)
    invited(page, url, "surveys/workplace/team", look)
    visit(page, f"{url}/research/surveys/workplace/team/log")
    look(page, "research-log")
    visit(page, f"{url}/research/surveys/workplace/collect")
    look(page, "research-collect")
    page.get_by_role("button", name="Close survey permanently").click()
    look(page, "research-collect-wrong")
    visit(page, f"{url}/research/surveys/heat/explore")
    look(page, "research-explore")
    for label, place in (("Question", 1), ("By question or group", 2)):
        choice = page.get_by_label(label, exact=True)
        value = choice.locator("option").nth(place).get_attribute("value")
        choice.select_option(value)
    page.get_by_role("button", name="Show").click()
    look(page, "research-explore-table")


def look_at_tokens(page: Page, url: str, look: Callable[[Page, str], None]) -> None:
    page.goto(f"{url}/research/account/programs")
    look(page, "research-tokens-none")
    page.get_by_role("button", name="Create token").click()
    look(page, "research-tokens-wrong")
    page.get_by_label("Name").fill("R on the laptop of the field office, nightly report")
    page.get_by_label("Read estimates").check()
    page.get_by_label("List your surveys").check()
    page.get_by_label("Current password").fill(PASSWORD)
    page.get_by_role("button", name="Create token").click()
    look(page, "research-tokens-made")


def fill(store: Store) -> None:
    """Publish a large survey, a small one with long words and a closed one with few reports."""
    surveys = (
        *(("workplace", DAILY_WORKPLACE, 2400), ("few", LONG, 600), ("none", SMALL, 40)),
        ("heat", SMALL, 4000),
    )
    for name, toml, n in surveys:
        definition = toml.replace('slug = "small"', f'slug = "{name}"')
        survey = publish(store, load(definition.encode(), "s.toml", Caps()), TODAY)
        add_released(store, survey, n)
        add_released(store, survey, n // 3, stratum="north")
    close(store, "none", TODAY)
    groups = SMALL.replace('slug = "small"', 'slug = "groups"')
    survey = publish(store, load(groups.encode(), "s.toml", Caps()), TODAY)
    for seed, (link, share) in enumerate((("north", 0.5), ("south", 0.3)), 1):
        add_people(store, survey, 4000, link, shares_by_first_answer(share), seed)


EXPLORED = {
    "difference": "groups/explore/difference?question=fell_asleep&a=link:north&b=link:south",
    "difference-answers": "groups/explore/difference?question=fell_asleep"
    "&a=answer:pressure:never&b=answer:pressure:once",
    "difference-choose": "groups/explore/difference",
    "difference-hidden": "few/explore/difference?question=fell_asleep"
    "&a=answer:pressure:never&b=answer:pressure:once",
    "weighting-choose": "groups/explore/weighting",
    "weighting-type": "groups/explore/weighting?question=fell_asleep&by=link",
    "weighting-wrong": "groups/explore/weighting?question=fell_asleep&by=link"
    "&margins=north,20%0Asouth,75",
    "weighting": "groups/explore/weighting?question=fell_asleep&by=link"
    "&margins=north,20%0Asouth,80",
    "weighting-answers": "groups/explore/weighting?question=fell_asleep&by=answer:pressure"
    "&margins=never,35%0Aonce,55%0Aoften,10",
    "regression-choose": "few/explore/regression",
    "regression-wrong": "groups/explore/regression?question=fell_asleep",
    "regression": "groups/explore/regression?question=fell_asleep&predictor=pressure"
    "&predictor=link",
}


def look_at_explore(page: Page, url: str, look: Callable[[Page, str], None]) -> None:
    for name, path in EXPLORED.items():
        may_be_rejected = name.endswith("-wrong")
        visit(page, f"{url}/research/surveys/{path}", may_be_rejected=may_be_rejected)
        look(page, f"research-{name}")


def look_at_reports(page: Page, url: str, look: Callable[[Page, str], None]) -> None:
    page.goto(f"{url}/research/methods")
    look(page, "research-methods")
    for name in ("report", "methods", "microdata"):
        visit(page, f"{url}/research/surveys/workplace/1/{name}")
        look(page, f"research-{name}-workplace")
    visit(page, f"{url}/research/surveys/none/1/report")
    look(page, "research-report-none")


def look_at_groups(page: Page, url: str, look: Callable[[Page, str], None]) -> None:
    visit(page, f"{url}/research/surveys/workplace/1")
    for summary in ("Analysis settings", "How to read", "Table", "Export"):
        page.locator("summary", has_text=summary).first.click()
    look(page, "research-dashboard-opened")
    page.get_by_role("link", name="Details").first.click()
    look(page, "research-question")
    for name in ("By group", "Over time"):
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_load_state("networkidle")
        expect(page.locator("#figures")).to_be_visible()
        assert page.locator("main svg").count() > 0
        look(page, f"research-{name.lower().replace(' ', '-')}")
    for name in ("links", "trend"):
        visit(page, f"{url}/research/surveys/none/1/{name}")
        look(page, f"research-{name}-none")


def look_at_research(page: Page, url: str, look: Callable[[Page, str], None]) -> None:
    for name in ("workplace", "few", "none"):
        visit(page, f"{url}/research/surveys/{name}/1")
        look(page, f"research-dashboard-{name}")
    look_at_groups(page, url, look)
    page.goto(f"{url}/research/")
    look(page, "research-list")
    look_at_explore(page, url, look)
    look_at_accounts(page, url, look)
    look_at_reports(page, url, look)
    page.goto(f"{url}/research/publish")
    look(page, "research-publish")
    page.get_by_label("Definition file").set_input_files(
        {"name": "survey.toml", "mimeType": "application/toml", "buffer": INVALID.encode()}
    )
    page.get_by_role("button", name="Check and publish").click()
    expect(page.get_by_role("alert")).to_be_visible()
    look(page, "research-publish-mistakes")
    assert page.goto(f"{url}/research/surveys/absent").status == 404
    look(page, "research-404")
    assert page.goto(f"{url}/").status == 200
    look(page, "home")
