/**
 * The entry: wires the parts together for this address and shows where things stand.
 */

import { encodeBase64url } from "./base64url.js";
import { createDelivery } from "./delivery.js";
import { element } from "./dom.js";
import { loadDefinition, reasonFor } from "./opening.js";
import { createOutbox } from "./outbox.js";
import { cannotView } from "./outcome.js";
import { createPause } from "./pause.js";
import { createUniformBelow, drawBytes } from "./random.js";
import { makeReport, questions } from "./report.js";
import { createStage } from "./stage.js";
import { sendReport } from "./transport.js";
import { createVisit } from "./visit.js";
import { words } from "./words.js";

/** @typedef {import("./definition.js").Definition} Definition */

const address = location.pathname.replace(/\/+$/, "");
const slug = address.slice(address.lastIndexOf("/") + 1);
const clientHash = document.body.dataset.clientHash ?? "";
const stage = createStage(/** @type {HTMLElement} */ (document.getElementById("survey")));
const reload = () => location.reload();

/** @type {import("./random.js").GetRandomValues} */
const getRandomValues = (array) => crypto.getRandomValues(array);

/** The browser may deny storage by throwing when it is named. */
function deviceStorage() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

/** Radio groups need a name; one made for this load alone means nothing to anyone else. */
function randomNames(/** @type {Definition} */ definition) {
  const names = new Map(
    questions(definition).map(({ id }) => [
      id,
      `n${encodeBase64url(drawBytes(getRandomValues, 12))}`,
    ]),
  );
  return (/** @type {string} */ question) => names.get(question) ?? "";
}

/** As much as a link carries; the start page prints all of it. @param {string} hash */
function fingerprint(hash) {
  return element("code", { title: hash }, hash.slice(0, 16));
}

/** @param {Definition} definition */
function printFingerprints(definition) {
  const { footer } = words;
  document
    .getElementById("fingerprints")
    ?.replaceChildren(
      element("p", {}, `${footer.definition} `, fingerprint(definition.id)),
      element("p", {}, `${footer.code} `, fingerprint(clientHash)),
    );
}

/**
 * @param {Definition} definition
 * @param {import("./outbox.js").Outbox} outbox
 * @param {ReturnType<typeof createDelivery>} delivery
 */
function visit(definition, outbox, delivery) {
  const uniformBelow = createUniformBelow(getRandomValues);
  /** @param {import("./report.js").Answers} answers */
  function onSend(answers) {
    try {
      const { entry, made } = outbox.freeze(() =>
        makeReport(definition, answers, uniformBelow, drawBytes(getRandomValues, 16)),
      );
      delivery.resume(entry, !made);
    } catch (error) {
      stage.show(cannotView(reasonFor(error), reload, true));
    } finally {
      uniformBelow.wipe();
    }
  }
  return createVisit({ stage, definition, clientHash, nameOf: randomNames(definition), onSend });
}

async function open() {
  const outbox = createOutbox(deviceStorage(), slug);
  /** @type {{definition: Definition | null, error: unknown}} */
  const { definition, error } = await loadDefinition(window, address, getRandomValues).then(
    (loaded) => ({ definition: loaded, error: null }),
    (failure) => ({ definition: null, error: failure }),
  );
  const send = (/** @type {string} */ body) => sendReport(fetch, `${address}/reports`, body);
  const delivery = createDelivery({ stage, outbox, definition, send, pause: createPause(window) });
  if (definition) printFingerprints(definition);
  const entry = outbox.read();
  if (entry.state !== "empty") delivery.resume(entry, false);
  else if (!definition) stage.show(cannotView(reasonFor(error), reload));
  else begin(visit(definition, outbox, delivery));
}

/** @param {ReturnType<typeof createVisit>} current */
function begin(current) {
  window.addEventListener("pagehide", () => {
    current.forget();
    stage.clear();
  });
  current.start();
}

// A page taken back from the browser's memory starts anew: what it held is forgotten.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) reload();
});

open().catch(() => stage.show(cannotView("unexpected", reload)));
