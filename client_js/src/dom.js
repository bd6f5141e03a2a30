/**
 * What all views are made of: elements whose texts are only ever text, their stage, the privacy label.
 *
 * Nothing here parses markup, so no survey can smuggle any in.
 */

import {
  boundIn,
  bounds,
  frequencies,
  isProtectedLittle,
  leastProtected,
  namesOptions,
  oddsFactor,
  posteriorBounds,
  questions,
  saysAnswers,
  totalOddsFactor,
} from "./report.js";
import { count, figure, pieces, say } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./report.js").Bound} Bound
 * @typedef {Record<string, string>} Attributes
 * @typedef {Node | string} Child
 * @typedef {{content: HTMLElement, title: string, focus?: HTMLElement}} View
 *   `focus` is where reading goes on; without it, the view's heading
 */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * @param {string} tag
 * @param {Attributes} attributes
 * @param {...Node} children
 */
export function svgElement(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * The heading of a view; it takes focus when the view is shown.
 *
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function heading(text, attributes = {}) {
  return element("h1", { tabindex: "-1", ...attributes }, text);
}

/**
 * A text with blank lines as paragraphs.
 *
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function paragraphs(text, attributes = {}) {
  return text
    .split(/\n[^\S\n]*\n/)
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => element("p", attributes, part));
}

/**
 * @param {Child | Child[]} text  says what the button does
 * @param {(event: MouseEvent) => void} onPress
 * @param {Attributes} [attributes]
 */
export function button(text, onPress, attributes = {}) {
  const said = Array.isArray(text) ? text : [text];
  const made = element("button", { type: "button", class: "button", ...attributes }, ...said);
  made.addEventListener("click", onPress);
  return made;
}

/**
 * @param {Child} summary
 * @param {...Child} children
 */
export function disclosure(summary, ...children) {
  return element(
    "details",
    {},
    element("summary", {}, summary),
    element("div", { class: "details-body" }, ...children),
  );
}

/**
 * The attributes of a text the researcher wrote: its language, its own direction.
 *
 * @param {Pick<Definition, "language" | "untranslated"> | null} definition
 * @param {string} text
 * @returns {Attributes}
 */
export function surveyText(definition, text) {
  if (!definition) return {};
  return { lang: definition.untranslated.get(text) ?? definition.language, dir: "auto" };
}

/**
 * A text the researcher wrote, as an element.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Definition} definition
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function surveyElement(tag, definition, text, attributes = {}) {
  return element(tag, { ...attributes, ...surveyText(definition, text) }, text);
}

/**
 * A text the researcher wrote, to stand within a sentence of ours.
 *
 * @param {Definition} definition
 * @param {string} text
 */
export function quoted(definition, text) {
  return surveyElement("bdi", definition, text);
}

/**
 * Texts the researcher wrote, one after the other, each in its own language and direction.
 *
 * @param {Definition} definition
 * @param {readonly string[]} texts
 * @returns {Child[]}
 */
export function listed(definition, texts) {
  const comma = say("language.comma");
  return texts.flatMap((text, i) => [...(i ? [comma] : []), surveyElement("b", definition, text)]);
}

/**
 * The one place views appear: each replaces the last, names the document and takes focus.
 *
 * @param {HTMLElement} main
 */
export function createStage(main) {
  /** @type {() => View} */
  let last;
  return {
    /** @param {() => View} build  makes the view, again whenever the language changes */
    show(build) {
      last = build;
      const { content, title, focus } = build();
      main.replaceChildren(content);
      document.title = title;
      const target = focus ?? content.querySelector("h1");
      window.scrollTo(0, 0);
      target?.focus({ preventScroll: focus === undefined });
    },
    /** Say the same in another language; who chose it stays where the choice was made. */
    again() {
      const { content, title } = last();
      const entered = [...main.querySelectorAll("input")];
      main.replaceChildren(content);
      document.title = title;
      // What was entered and is no answer, too many ticks or half a number, is nobody's to forget.
      main.querySelectorAll("input").forEach((input, i) => {
        if (entered[i]) input.checked = entered[i].checked;
        if (entered[i]) input.value = entered[i].value;
      });
    },
    clear() {
      main.replaceChildren();
    },
  };
}

/**
 * What stands above every view: the choice of a language, and the way out.
 *
 * @param {object} of
 * @param {readonly string[]} of.languages
 * @param {string} of.language
 * @param {(language: string) => void} of.onLanguage
 * @param {() => void} of.onExit
 */
export function toolbar({ languages, language, onLanguage, onExit }) {
  const chooser = languages.length < 2 ? [] : [languageChooser(languages, language, onLanguage)];
  return [...chooser, button(say("exit.button"), onExit, { class: "button exit" })];
}

/**
 * @param {readonly string[]} languages
 * @param {string} language
 * @param {(language: string) => void} onLanguage
 */
function languageChooser(languages, language, onLanguage) {
  const select = element("select", { autocomplete: "off" });
  for (const each of languages) {
    const option = element("option", { value: each, lang: each }, nameOf(each));
    option.selected = each === language;
    select.append(option);
  }
  select.addEventListener("change", () => onLanguage(select.value));
  return element(
    "label",
    { class: "language" },
    element("span", {}, say("language.choose")),
    select,
  );
}

/** A language by the name that its speakers have for it. @param {string} language */
function nameOf(language) {
  const names = new Intl.DisplayNames([language], { type: "language" });
  const name = names.of(language) ?? language;
  return name.charAt(0).toLocaleUpperCase(language) + name.slice(1);
}

/** @typedef {ReturnType<typeof createStage>} Stage */

/** Of a shared device, when nobody touches it: how long until it asks, and then until it goes. */
const IDLE_SECONDS = { ask: 120, go: 60 };

/**
 * On a shared device nobody must find the answers of somebody who went away.
 *
 * @param {Window} window
 * @param {object} of
 * @param {() => boolean} of.canGo  whether nothing would be lost now
 * @param {() => void} of.onGone
 */
export function startAfreshWhenIdle(window, { canGo, onGone }) {
  const attributes = {
    ...{ class: "idle", role: "alertdialog" },
    ...{ "aria-labelledby": "idle-heading", "aria-describedby": "idle-text" },
  };
  const notice = element("dialog", attributes);
  let timer = 0;

  function ask() {
    // A browser without dialogs cannot ask.
    if (!notice.showModal) return onGone();
    const time = count("count.seconds", IDLE_SECONDS.go);
    notice.replaceChildren(
      element("h2", { id: "idle-heading" }, say("idle.heading")),
      element("p", { id: "idle-text" }, say("idle.text", { time })),
      button(say("idle.button"), () => notice.close()),
    );
    window.document.body.append(notice);
    notice.showModal();
    timer = window.setTimeout(onGone, IDLE_SECONDS.go * 1000);
  }

  function stay() {
    notice.remove();
    window.clearTimeout(timer);
    timer = window.setTimeout(() => (canGo() ? ask() : stay()), IDLE_SECONDS.ask * 1000);
  }

  // Gone before the finger is lifted, the notice would let the tap through to an answer beneath it.
  const sign = () => notice.open || stay();
  notice.addEventListener("close", stay);
  for (const name of ["pointerdown", "keydown", "scroll"]) window.addEventListener(name, sign);
  stay();
}

/**
 * Natural frequencies of one question, for its first option; reports that name none need other words.
 *
 * @param {Definition} definition
 * @param {Question} question
 */
export function frequencyParagraph(definition, question) {
  const { type, channel, options } = question;
  if (!namesOptions(question)) return element("p", {}, say("label.everyReport"));
  const of = frequencies(question);
  const [own, other] = options.map(({ label }) => quoted(definition, label));
  const values = { own, other, ownShare: about(of.own), otherShare: about(of.other) };
  const several = channel.kind === "subset_selection" && channel.d > 1;
  return element(
    "p",
    {},
    ...(several ? [say("label.severalNamed", { count: channel.d }), " "] : []),
    ...(isSampled(channel)
      ? pieces("label.frequencyOfSampledTick", {
          ...values,
          sampled: channel.sampled,
          m: channel.m,
        })
      : pieces(frequencyKey(type, channel, options.length), values)),
    ...(definition.sampling ? [" ", say("label.ofAsked")] : []),
  );
}

/**
 * @param {string} type
 * @param {import("./mechanism.js").Channel} channel
 * @param {number} options
 */
function frequencyKey(type, channel, options) {
  if (type === "multiple_choice") return "label.frequencyOfTick";
  if (options === 2) return "label.frequencyOfTwo";
  const isTable = channel.kind === "weight_table";
  return isTable ? "label.frequencyOfRarest" : "label.frequencyOfMany";
}

/** A share of 100 that rounds to nothing is still possible. @param {string} tenths */
function about(tenths) {
  if (tenths === "0") return say("label.fewer", { n: figure("0.1") });
  return say("label.about", { n: figure(tenths) });
}

/**
 * Whether a report speaks of some of the options only.
 *
 * @param {import("./mechanism.js").Channel} channel
 * @returns {channel is import("./mechanism.js").BitVector}
 */
function isSampled(channel) {
  return channel.kind === "bit_vector" && channel.sampled < channel.m;
}

/**
 * What one report can at most do about an answer.
 *
 * @param {Bound} bound
 */
export function boundSentence(bound) {
  const { from10, from50 } = posteriorBounds(bound);
  return say(bound.linked ? "label.linkedBounds" : "label.bounds", {
    factor: figure(oddsFactor(bound)),
    from10: becomes(from10),
    from50: becomes(from50),
  });
}

/** What a suspicion becomes; the bound rounds up, so 100 would say too much. @param {number} percent */
function becomes(percent) {
  return percent > 99 ? say("label.becomesNearly") : say("label.becomes", { percent });
}

/**
 * The frequencies of the question that is protected least, introduced by its text.
 *
 * @param {Definition} definition
 */
export function leastProtectedExample(definition) {
  const asked = questions(definition);
  const least = leastProtected(asked);
  const of = bounds(asked);
  const bound = boundIn(of, least.id);
  const alike = [...of.values()].every((one) => oddsFactor(one) === oddsFactor(bound));
  return element(
    "div",
    { class: "example" },
    element("p", { class: "quiet" }, alike ? say("start.example") : say("start.least")),
    surveyElement("p", definition, least.text, { class: "asked" }),
    frequencyParagraph(definition, least),
    ...(namesOptions(least) && !bound.linked
      ? []
      : [element("p", { class: "bound" }, boundSentence(bound))]),
  );
}

/**
 * A table with one row per question.
 *
 * @param {Definition} definition
 */
export function protectionTable(definition) {
  const asked = questions(definition);
  const columns = [say("label.columnQuestion"), ...columnTexts()];
  const of = bounds(asked);
  // The roles are explicit: on narrow screens the rows are laid out as blocks, and browsers then
  // no longer call it a table.
  return element(
    "table",
    { role: "table", class: "protection" },
    element("caption", {}, say("label.caption"), ...tableNotes(definition, of)),
    element(
      "thead",
      { role: "rowgroup" },
      element(
        "tr",
        { role: "row" },
        ...columns.map((text) => element("th", { scope: "col", role: "columnheader" }, text)),
      ),
    ),
    element(
      "tbody",
      { role: "rowgroup" },
      ...asked.map((question) => protectionRow(definition, question, boundIn(of, question.id))),
    ),
  );
}

/** What stands above the numbers of the table. */
function columnTexts() {
  return [
    say("label.columnOwn"),
    say("label.columnOther"),
    say("label.columnOdds"),
    say("label.columnFrom10"),
    say("label.columnFrom50"),
  ];
}

/**
 * Under which conditions the numbers of the table hold.
 *
 * @param {Definition} definition
 * @param {Map<string, Bound>} of
 */
function tableNotes(definition, of) {
  const isAnySampled = questions(definition).some(({ channel }) => isSampled(channel));
  const notes = [
    ...(definition.sampling ? [say("label.ofAsked")] : []),
    ...(isAnySampled ? [say("label.ofSampled")] : []),
    ...([...of.values()].some(({ linked }) => linked) ? [say("label.ofLinked")] : []),
  ];
  return notes.map((note) => element("span", { class: "note" }, note));
}

/** @param {Definition} definition @param {Question} question @param {Bound} bound */
function protectionRow(definition, question, bound) {
  const columns = columnTexts();
  const noShare = say("label.noShare");
  const { own, other } = frequencies(question);
  const shares = namesOptions(question) ? [share(own), share(other)] : [noShare, noShare];
  const { from10, from50 } = posteriorBounds(bound);
  const cells = [...shares, figure(oddsFactor(bound)), percent(from10), percent(from50)];
  return element(
    "tr",
    { role: "row" },
    surveyElement("th", definition, question.text, { scope: "row", role: "rowheader" }),
    ...cells.map((cell, i) =>
      element(
        "td",
        {
          role: "cell",
          "data-label": columns[i],
          ...(cell === noShare ? { class: "bare" } : {}),
        },
        element("span", {}, cell),
      ),
    ),
  );
}

/** @param {string} tenths */
function share(tenths) {
  return tenths === "0" ? say("label.shareFewer", { n: figure("0.1") }) : figure(tenths);
}

/** @param {number} whole */
function percent(whole) {
  return whole > 99 ? say("label.percentNearly") : say("label.percent", { n: whole });
}

/**
 * What all answers give away together, with a warning when that is much.
 *
 * @param {Definition} definition
 */
export function togetherNote(definition) {
  return element("p", {}, say("label.together", { factor: figure(totalOddsFactor(definition)) }));
}

/**
 * The warning for surveys whose answers together are protected little; none for others.
 *
 * @param {Definition} definition
 * @returns {HTMLElement[]}
 */
export function littleWarning(definition) {
  if (!isProtectedLittle(definition)) return [];
  const warning = element("strong", {}, say("label.little"));
  return [element("p", { class: "notice" }, warning, ` ${say("label.littleMeans")}`)];
}

/**
 * What is not protected, and the two fingerprints by which to check the page.
 *
 * @param {Definition} definition
 * @param {string} clientHash
 */
export function openSides(definition, clientHash) {
  const open = [
    say("label.openPart"),
    say("label.openAddress"),
    say("label.openDevice"),
    say("label.openCode"),
  ];
  return element(
    "section",
    {},
    element("h3", {}, say("label.openHeading")),
    element("ul", {}, ...open.map((side) => element("li", {}, side))),
    element(
      "dl",
      { class: "fingerprints" },
      ...fingerprint(say("label.definition"), definition.id),
      ...fingerprint(say("label.code"), clientHash),
    ),
  );
}

/** @param {string} name @param {string} hash */
function fingerprint(name, hash) {
  return [element("dt", {}, name), element("dd", {}, element("code", {}, hash))];
}

/**
 * What happens to the answers: replaced or not where all reports say answers, else mixed with chance.
 *
 * @param {Definition} definition
 */
export function randomStep(definition) {
  const isReplaced = questions(definition).every(saysAnswers);
  return [
    element("p", {}, isReplaced ? say("start.steps") : say("start.stepsByChance")),
    isReplaced
      ? randomStepDrawing(say("start.drawing"), replacing())
      : randomStepDrawing(say("start.drawingByChance"), mixing()),
  ];
}

/**
 * The figure: strokes in SVG, words in HTML so that they can grow and be translated.
 *
 * @param {string} alternative
 * @param {SVGElement[]} between  what lies between the answer and the report
 */
function randomStepDrawing(alternative, between) {
  return element(
    "figure",
    { class: "random-step" },
    strokes(alternative, between),
    element(
      "figcaption",
      { "aria-hidden": "true" },
      caption(say("start.drawingTruth"), say("start.drawingDevice")),
      caption(say("start.drawingStep"), say("start.drawingDevice")),
      caption(say("start.drawingReport"), say("start.drawingSent")),
    ),
  );
}

/** @param {string} what @param {string} where */
function caption(what, where) {
  return element("span", {}, element("b", {}, what), " ", element("span", {}, where));
}

/** @param {string} alternative @param {SVGElement[]} between */
function strokes(alternative, between) {
  return svgElement(
    "svg",
    { viewBox: "0 0 360 112", role: "img", "aria-label": alternative, focusable: "false" },
    shape("rect", "device", { x: "4", y: "4", width: "236", height: "104", rx: "14" }),
    shape("circle", "truth", { cx: "60", cy: "56", r: "15" }),
    shape("path", "tick", { d: "M53 56.5l5 5 9.5-10" }),
    ...between,
    shape("path", "route", { d: "M264 49l8 7-8 7" }),
    ...sheet(),
  );
}

/** Straight on, the answer itself; the branch below, a random one; then both are one report. */
function replacing() {
  return [
    shape("path", "route", { d: "M82 56H100C118 56 116 32 134 32H186C204 32 202 56 220 56H270" }),
    shape("path", "route random", { d: "M100 56C118 56 116 82 134 82H142" }),
    shape("path", "route random", { d: "M178 82H186C204 82 202 56 220 56" }),
    ...die(82),
  ];
}

/** One way only, and it leads through chance. */
function mixing() {
  return [
    shape("path", "route", { d: "M82 56H142" }),
    shape("path", "route random", { d: "M178 56H260" }),
    ...die(56),
  ];
}

/** @param {number} y  of its middle */
function die(y) {
  const dots = [
    [154, y - 6],
    [166, y - 6],
    [160, y],
    [154, y + 6],
    [166, y + 6],
  ];
  return [
    shape("rect", "die", { x: "146", y: `${y - 14}`, width: "28", height: "28", rx: "6" }),
    ...dots.map(([cx, cy]) => shape("circle", "dot", { cx: `${cx}`, cy: `${cy}`, r: "2.2" })),
  ];
}

function sheet() {
  return [
    shape("path", "sheet", { d: "M284 30h28l12 12v40h-40z" }),
    shape("path", "sheet", { d: "M312 30v12h12" }),
    shape("path", "line", { d: "M293 54h22M293 62h22M293 70h14" }),
  ];
}

/** @param {string} tag @param {string} name @param {Record<string, string>} attributes */
function shape(tag, name, attributes) {
  return svgElement(tag, { class: name, ...attributes });
}

/**
 * A text of the researcher's under a heading of ours; nothing when there is none.
 *
 * @param {Definition} definition
 * @param {"consent" | "ethics" | "helpline" | "contact"} name
 */
export function passage(definition, name) {
  const text = definition[name];
  if (text.trim() === "") return [];
  return [
    element(
      "section",
      { class: `passage ${name}` },
      element("h2", {}, say(`start.${name}`)),
      ...paragraphs(text, surveyText(definition, text)),
    ),
  ];
}
