/**
 * The views of field mode: the interviewer's page, and the views after Send.
 */

import {
  button,
  disclosure,
  element,
  heading,
  paragraph,
  paragraphs,
  passage,
  surveyElement,
  surveyText,
} from "./dom.js";
import { isoDayText } from "./field.js";
import { countField, sayField } from "./fieldwork-texts.js";
import { say } from "./texts.js";
import { whatWasSent } from "./view-delivery.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./dom.js").View} View
 * @typedef {import("./fieldwork-texts.js").FieldKey} FieldKey
 * @typedef {{key: FieldKey, status: number} | null} Status  how the last upload ended
 */

const SECOND = { class: "button second" };

/**
 * @param {string} name
 * @param {string} title
 * @param {Definition | null} definition
 * @param {...Node} children
 * @returns {View}
 */
function fieldView(name, title, definition, ...children) {
  const survey = definition
    ? [surveyElement("p", definition, definition.title, { class: "quiet" })]
    : [];
  const content = element("div", { class: `view ${name}` }, ...survey, heading(title), ...children);
  return { content, title: definition?.title ?? document.title };
}

/**
 * Say why the tablet cannot be prepared, or why interviews cannot start.
 *
 * @param {FieldKey} key
 * @param {() => void} [onTryAgain]
 */
export function problemView(key, onTryAgain) {
  const again = onTryAgain ? [button(sayField("fieldwork.again"), onTryAgain)] : [];
  const text = paragraph(sayField(key), "notice");
  return fieldView("field", sayField("fieldwork.prepareHeading"), null, text, ...again);
}

/**
 * @param {Definition} definition
 * @param {(status: HTMLElement) => void} onPrepare
 */
export function prepareView(definition, onPrepare) {
  const status = element("p", { role: "status" });
  return fieldView(
    "field prepare",
    sayField("fieldwork.prepareHeading"),
    definition,
    paragraph(sayField("fieldwork.prepareText")),
    paragraph(untilText(definition)),
    button(sayField("fieldwork.prepare"), ({ currentTarget }) => {
      /** @type {HTMLElement} */ (currentTarget).remove();
      status.textContent = sayField("fieldwork.preparing");
      onPrepare(status);
    }),
    status,
  );
}

/** @param {Definition} definition */
function untilText({ field }) {
  const day = isoDayText(field?.until ?? "", document.documentElement.lang);
  return sayField("fieldwork.until", { day });
}

/**
 * Create the interviewer's page. It shows the number of reports in the queue, and nothing else about
 * them.
 *
 * @param {object} of
 * @param {Definition} of.definition
 * @param {number} of.n  reports in the queue
 * @param {FieldKey | null} of.obstacle  why no interview can start now
 * @param {readonly FieldKey[]} of.notices
 * @param {string} of.other  the short name of another survey if its link was opened, or ""
 * @param {Status} of.status
 * @param {() => void} of.onStart
 * @param {() => void} of.onUpload
 * @param {() => void} of.onSave
 * @param {() => void} of.onRemove
 */
export function deskView(of) {
  const { definition, n, obstacle, notices, other, status } = of;
  const notice = (/** @type {string} */ text) => paragraph(text, "notice");
  const statusText = status ? sayField(status.key, { status: status.status }) : "";
  return fieldView(
    "field desk",
    sayField("fieldwork.deskHeading"),
    definition,
    ...(obstacle ? [notice(sayField(obstacle))] : []),
    ...(other ? [notice(sayField("fieldwork.otherSurvey", { survey: other }))] : []),
    element("p", {}, element("strong", {}, waitingText(n))),
    element("p", { role: "status" }, statusText),
    paragraph(untilText(definition)),
    ...notices.map((key) => paragraph(sayField(key))),
    ...(obstacle ? [] : [button(sayField("fieldwork.start"), of.onStart)]),
    ...(n > 0 && obstacle !== "fieldwork.late"
      ? [button(sayField("fieldwork.upload"), of.onUpload, obstacle ? {} : SECOND)]
      : []),
    ...(n > 0
      ? [
          paragraph(sayField("fieldwork.saveHint")),
          button(sayField("fieldwork.save"), of.onSave, SECOND),
        ]
      : []),
    button(sayField("fieldwork.remove"), of.onRemove, { class: "link" }),
  );
}

/** @param {number} n */
function waitingText(n) {
  return n === 0 ? sayField("fieldwork.noneWaiting") : countField("fieldwork.waiting", n);
}

/**
 * @param {object} of
 * @param {Definition} of.definition
 * @param {number} of.n  reports that would be lost
 * @param {boolean} of.isAlone  whether the survey is open in no other window
 * @param {() => void} of.onRemove
 * @param {() => void} of.onKeep
 */
export function removeView({ definition, n, isAlone, onRemove, onKeep }) {
  return fieldView(
    "field remove",
    sayField("fieldwork.removeHeading"),
    definition,
    paragraph(waitingText(n)),
    paragraph(
      sayField(n > 0 ? "fieldwork.removeLost" : "fieldwork.removeText"),
      n > 0 ? "notice" : "",
    ),
    ...(isAlone ? [] : [paragraph(sayField("fieldwork.otherWindow"), "notice")]),
    button(sayField("fieldwork.removeNo"), onKeep),
    ...(isAlone ? [button(sayField("fieldwork.removeYes"), onRemove, SECOND)] : []),
  );
}

/** @param {Definition} definition */
export function storingView(definition) {
  const text = paragraph(sayField("fieldwork.storing"));
  return fieldView("sending", sayField("fieldwork.storingHeading"), definition, text);
}

/** @param {Definition} definition @param {() => void} onTryAgain */
export function notStoredView(definition, onTryAgain) {
  return fieldView(
    "waiting",
    sayField("fieldwork.notStoredHeading"),
    definition,
    paragraph(sayField("fieldwork.notStored"), "notice"),
    button(sayField("fieldwork.again"), onTryAgain),
  );
}

/**
 * @param {object} of
 * @param {Definition} of.definition
 * @param {string} of.body
 * @param {() => void} of.onNext
 */
export function storedView({ definition, body, onNext }) {
  const { thanks } = definition;
  return fieldView(
    "sent",
    sayField("fieldwork.storedHeading"),
    definition,
    ...paragraphs(thanks, surveyText(definition, thanks)),
    paragraph(sayField("fieldwork.stored")),
    disclosure(sayField("fieldwork.what"), ...whatWasSent(definition, body, say("sent.warning"))),
    paragraph(say("sent.nextText")),
    button(say("sent.next"), onNext),
    ...passage(definition, "helpline"),
    ...passage(definition, "contact"),
  );
}

/** Create the button from the respondents' start page to the interviewer's page. @param {() => void} onOpen */
export function deskButton(onOpen) {
  return element("p", {}, button(sayField("fieldwork.deskButton"), onOpen, { class: "link" }));
}
