/**
 * The entry point of field mode: many people answer one survey on one tablet, for days without a network.
 *
 * Nothing here depends on a clock: events and short timers start uploads, and the server decides
 * whether a report is late.
 */

import { questions } from "./answers.js";
import { loadDefinition } from "./definition.js";
import { translateDefinition } from "./definition-structure.js";
import {
  askBeforeLoss,
  createDisplay,
  leaveOnShift,
  restartWhenIdle,
  toolbar,
  translationNotice,
} from "./display.js";
import { element } from "./dom.js";
import {
  countUsed,
  freePlaces,
  isSame,
  openStorage,
  RESERVE,
  RemovedError,
  SLOTS,
} from "./fieldwork-queue.js";
import { storeFieldWords } from "./fieldwork-texts.js";
import { createSealer, hasEnded, hashBytes, queueFile, uploadQueue } from "./fieldwork-upload.js";
import {
  deskButton,
  deskView,
  notStoredView,
  prepareView,
  problemView,
  removeView,
  storedView,
  storingView,
} from "./fieldwork-view.js";
import { checkLink, parseLink, SLUG } from "./link.js";
import { createNavigation } from "./navigation.js";
import { createEarlierSurveys } from "./outbox.js";
import { loadPictures } from "./pictures.js";
import { createUniformBelow, drawBytes } from "./random.js";
import { makeReport } from "./report.js";
import { selectLanguage } from "./texts.js";
import { fetchDefinition, fetchPicture, fetchWords, obstacleOf } from "./transport.js";
import { obstacleView } from "./view-delivery.js";
import { createVisit } from "./visit.js";
import { availableWords, preferredLanguage } from "./words.js";

/**
 * @typedef {import("./answers.js").Answers} Answers
 * @typedef {import("./answers.js").Drawn} Drawn
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./dom.js").View} View
 * @typedef {import("./fieldwork-queue.js").FieldStorage} FieldStorage
 * @typedef {import("./fieldwork-queue.js").Installed} Installed
 * @typedef {import("./fieldwork-queue.js").Queue} Queue
 * @typedef {import("./fieldwork-texts.js").FieldKey} FieldKey
 * @typedef {import("./random.js").GetRandomValues} GetRandomValues
 * @typedef {{storage: FieldStorage, installed: Installed, original: Definition,
 *   survey: {definition: Definition}, sealer: import("./fieldwork-upload.js").Sealer}} Tablet
 */

/** Seconds until the next attempt to upload, while the page is open. */
const RETRY_SECONDS = 300;

/** Seconds for which a saved file stays in memory. */
const SAVING_SECONDS = 60;

/** Space for several copies of the queue, because the browser keeps the old one while it writes. */
const ROOM = 8;

const link = parseLink(location.hash);
const linkedSlug = new URLSearchParams(location.hash.slice(1)).get("slug") ?? "";
const collector = document.querySelector('meta[name="collector"]')?.getAttribute("content") ?? "";
const display = createDisplay(/** @type {HTMLElement} */ (document.getElementById("survey")));

/** The browser's storage and lock managers, which Safari 15.0 lacks. */
const { storage: room, locks } = /** @type {Partial<Navigator>} */ (navigator);

/** The lock that each window with a survey holds until it closes. */
const WINDOW_LOCK = "survey-field-window";

/** Whether this page has a report that is not stored yet. */
let isStoring = false;

/** Whether the browser must ask before it closes or reloads the page. */
let losesAnswers = () => false;

function reload() {
  losesAnswers = () => false;
  location.reload();
}

/** @type {GetRandomValues} */
const getRandomValues = (array) => crypto.getRandomValues(array);

/** Show the interface in the first of these languages that it has. @param {readonly string[]} languages */
function showIn(languages) {
  selectLanguage(document, languages);
  document.getElementById("version")?.replaceChildren(...translationNotice());
}

async function open() {
  await loadWords();
  showIn(navigator.languages);
  /** @type {FieldStorage} */
  let storage;
  try {
    storage = await openStorage(window.indexedDB);
  } catch {
    display.show(() => problemView("fieldwork.noStorage"));
    return;
  }
  const { installed } = await storage.read();
  if (installed) await startTablet(storage, installed);
  else if (linkedSlug === "") display.show(() => problemView("fieldwork.notPrepared"));
  else await offerPreparation(storage);
}

/** Load the texts in all languages, from the tablet once it is prepared. */
async function loadWords() {
  const own = new Map(
    availableWords({
      querySelectorAll: () => document.querySelectorAll('meta[name="field-words"]'),
    }).map((file) => [file.language, file]),
  );
  const words = availableWords(document).map(async (file) => {
    const ownFile = own.get(file.language) ?? file;
    const [texts, ownTexts] = await Promise.all([
      fetchWords(fetch, file),
      fetchWords(fetch, ownFile),
    ]);
    return { language: file.language, texts, own: ownTexts };
  });
  storeFieldWords(await Promise.all(words));
}

/** Load the survey of the link and offer to install it. @param {FieldStorage} storage */
async function offerPreparation(storage) {
  try {
    checkLink({ ...link, invitation: "", stratum: "", hadInvitation: link.prefix === "" });
    const isSlug = SLUG.test(linkedSlug);
    const server = `${collector}/s/${linkedSlug}`;
    const bytes = await fetchDefinition(fetch, isSlug ? `${server}/definition.json` : "");
    const original = await loadDefinition(
      bytes,
      linkedSlug,
      { ...link, ...NO_INVITATION },
      crypto.subtle,
    );
    if (!hasFieldMode(original)) return display.show(() => problemView("fieldwork.noField"));
    const installed = { slug: linkedSlug, server, bytes };
    if (await hasEnded({ fetch, installed, definition: original }))
      return display.show(() =>
        obstacleView({ reason: "closed", survey: original, onTryAgain: reload }),
      );
    const survey = createSurvey(original);
    const onPrepare = () => prepare({ storage, installed, original });
    display.show(() => prepareView(survey.definition, onPrepare));
  } catch (error) {
    display.show(() => obstacleView({ reason: obstacleOf(error), onTryAgain: reload }));
  }
}

/** A point of P-256 in base64url: 65 bytes that begin with 4. */
const FIELD_KEY = /^B[A-P][\w-]{84}[048AEIMQUYcgkosw]$/;
const FIELD_DAY = /^\d{4}-\d\d-\d\d$/;

/** Whether a survey is made for field mode. @param {Definition} definition */
function hasFieldMode({ field, kiosk, access }) {
  const isWhole = FIELD_KEY.test(field?.key ?? "") && FIELD_DAY.test(field?.until ?? "");
  return isWhole && kiosk && access === "open";
}

const NO_INVITATION = { invitation: "", stratum: "", hadInvitation: false };

/**
 * Install the client's files and the survey. No interview can start before all of it is on the tablet.
 *
 * @param {object} of
 * @param {FieldStorage} of.storage
 * @param {Omit<Installed, "pictures">} of.installed
 * @param {Definition} of.original
 */
async function prepare({ storage, installed, original }) {
  try {
    const sealer = createSealer(crypto.subtle, original);
    const dummies = await sealer.dummies(SLOTS);
    await room?.persist?.();
    const { quota = 0, usage = 0 } = (await room?.estimate?.()) ?? {};
    const needed = ROOM * SLOTS * dummies[0].length;
    if (quota > 0 && quota - usage < needed) {
      return display.show(() => problemView("fieldwork.noStorage"));
    }
    await installWorker();
    const pictures = await fetchPictures(original);
    await storage.install({ ...installed, pictures }, dummies);
    const { queue } = await storage.read();
    if (queue?.used.length !== SLOTS) throw new Error("the queue was not stored");
    history.replaceState(null, "", location.pathname);
    reload();
  } catch {
    display.show(() => problemView("fieldwork.prepareFailed", reload));
  }
}

/** Fetch all pictures of a survey and compare them with their hashes. @param {Definition} definition */
async function fetchPictures(definition) {
  const options = questions(definition).flatMap((question) => question.options);
  const names = new Set(options.flatMap(({ picture }) => (picture ? [picture.sha256] : [])));
  const entries = [...names].map(async (name) => {
    const content = await fetchPicture(fetch, `${collector}/pictures/${name}`, "");
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
    if (!isSame(hash, hashBytes(name))) throw new Error("a picture did not load");
    return /** @type {const} */ ([name, content]);
  });
  return new Map(await Promise.all(entries));
}

/** Install the service worker; resolves when it has stored all files. */
async function installWorker() {
  /** @type {any} */
  const { trustedTypes } = window;
  const policy = trustedTypes?.createPolicy("field", { createScriptURL: () => "worker.js" });
  const address = policy ? policy.createScriptURL("") : "worker.js";
  const registration = await navigator.serviceWorker.register(address, { updateViaCache: "none" });
  const worker = registration.installing ?? registration.waiting;
  if (registration.active || !worker) return;
  await new Promise((resolve, reject) => {
    worker.addEventListener("statechange", () => {
      if (worker.state === "activated") resolve(true);
      if (worker.state === "redundant") reject(new Error("the files could not be stored"));
    });
  });
}

/**
 * Show the survey in the browser's language, and let people change it.
 *
 * @param {Definition} original
 */
function createSurvey(original) {
  const languages = [original.language, ...Object.keys(original.translations)];
  const survey = { definition: original };
  document.documentElement.dataset.theme = original.theme;
  const tools = document.getElementById("tools");
  leaveOnShift(leave);

  /** @param {string} language */
  function choose(language) {
    survey.definition = translateDefinition(original, language);
    showIn([language]);
    const onLanguage = (/** @type {string} */ choice) => {
      choose(choice);
      display.refresh();
    };
    tools?.replaceChildren(...toolbar({ languages, language, onExit: leave, onLanguage }));
  }

  choose(preferredLanguage(languages, navigator.languages));
  return survey;
}

/** Tell other windows that this one is open, so that they do not remove its survey. */
function holdWindow() {
  locks?.request(WINDOW_LOCK, { mode: "shared" }, () => new Promise(() => {})).catch(() => {});
}

/** Whether no other window has a survey open, as far as the browser can tell. */
async function isOnlyWindow() {
  const { held = [] } = (await locks?.query()) ?? {};
  return held.filter(({ name }) => name === WINDOW_LOCK).length < 2;
}

/** Clear the page and start again, unless a report would be lost. */
function leave() {
  if (isStoring) return;
  display.clear();
  reload();
}

/** @param {FieldStorage} storage @param {Installed} installed */
async function startTablet(storage, installed) {
  const { bytes, pictures, slug } = installed;
  holdWindow();
  const original = await loadDefinition(
    bytes,
    slug,
    { prefix: "", ...NO_INVITATION },
    crypto.subtle,
  );
  // Its pictures are on the tablet, each under the name that ends its address.
  const findPicture = async (/** @type {URL | RequestInfo} */ url) =>
    new Response(pictures.get(String(url).slice(-64)));
  loadPictures(findPicture, "", original);
  const survey = createSurvey(original);
  const sealer = createSealer(crypto.subtle, original);
  const desk = await createDesk({ storage, installed, original, survey, sealer });
  const visit = createVisit({
    survey,
    display: {
      ...display,
      show: (build) => display.show(() => withDeskButton(build(), desk.show)),
    },
    navigation: createNavigation(window, history),
    getRandomValues,
    start: { link: { prefix: "", ...NO_INVITATION }, durable: false },
    earlierSurveys: createEarlierSurveys(null),
    onSend: (answers, drawn) => send({ storage, installed, sealer, survey }, answers, drawn),
    onError: (error) =>
      display.show(() => obstacleView({ reason: obstacleOf(error), onTryAgain: reload })),
  });
  losesAnswers = () => visit.hasAnswers() || isStoring;
  window.addEventListener("pagehide", () => {
    visit.forget();
    display.clear();
  });
  restartWhenIdle(window, { canRestart: () => !isStoring, onRestart: reload });
  desk.begin(visit.begin);
}

/** Add the button that opens the interviewer's page to the start page. @param {View} view @param {() => void} onOpen */
function withDeskButton(view, onOpen) {
  if (view.content.classList.contains("start")) view.content.append(deskButton(onOpen));
  return view;
}

/**
 * Create the interviewer's page and its uploads.
 *
 * @param {Tablet} tablet
 */
async function createDesk({ storage, installed, original, survey, sealer }) {
  /** @type {import("./fieldwork-view.js").Status} */
  let status = null;
  let isUploading = false;
  let isShown = false;
  let { queue } = await storage.read();
  let retry = 0;
  let beginVisit = () => {};
  const isKept = (await room?.persisted?.()) ?? false;
  const registration = await navigator.serviceWorker?.getRegistration();
  // After a forced reload, no worker controls the page; if the browser has deleted it, there is none.
  if (!registration?.active) installWorker().catch(() => {});
  const isOther = linkedSlug !== "" && !(linkedSlug === installed.slug && isLinked(original));

  /** @returns {FieldKey | null} */
  function obstacle() {
    if (!queue || queue.late) return "fieldwork.late";
    return freePlaces(queue).length < RESERVE ? "fieldwork.full" : null;
  }

  function show() {
    isShown = true;
    /** @type {FieldKey[]} */
    const notices = [
      ...(registration?.active ? [/** @type {const} */ ("fieldwork.ready")] : []),
      ...(isKept ? [] : [/** @type {const} */ ("fieldwork.notKept")]),
    ];
    display.show(() =>
      deskView({
        ...{ ...survey, n: queue ? countUsed(queue) : 0, obstacle: obstacle(), notices, status },
        other: isOther ? linkedSlug : "",
        onStart: () => {
          isShown = false;
          beginVisit();
        },
        onUpload: upload,
        onSave: save,
        onRemove: confirmRemoval,
      }),
    );
  }

  async function upload() {
    if (isUploading) return;
    isUploading = true;
    window.clearTimeout(retry);
    status = { key: "fieldwork.uploading", status: 0 };
    if (isShown) show();
    const parts = { storage, installed, definition: original, sealer, getRandomValues };
    const answer = await uploadQueue({
      fetch: (url, options) => fetch(url, options),
      ...parts,
    }).catch(() => ({ outcome: /** @type {const} */ ("noRoom"), status: 0 }));
    isUploading = false;
    status = { key: `fieldwork.${answer.outcome}`, status: answer.status };
    await refresh();
    const isTemporary = ["offline", "busy", "noRoom"].includes(answer.outcome);
    if (isTemporary) retry = window.setTimeout(upload, RETRY_SECONDS * 1000);
  }

  /** Read the queue again, because other windows change it too. */
  async function refresh() {
    const now = await storage.read();
    const isInstalled = now.installed && isSame(now.installed.bytes, installed.bytes);
    if (isShown && !isInstalled) return reload();
    ({ queue } = now);
    // Nobody should begin to answer a survey that has ended meanwhile.
    const isStart = document.querySelector(".start") !== null;
    if (isShown || (isStart && obstacle())) show();
  }

  async function save() {
    ({ queue } = await storage.read());
    if (!queue) return;
    const href = URL.createObjectURL(queueFile(queue, installed, original));
    element("a", { href, download: `field-${installed.slug}.queue` }).click();
    // Safari still reads it after the click.
    window.setTimeout(() => URL.revokeObjectURL(href), SAVING_SECONDS * 1000);
  }

  async function confirmRemoval() {
    isShown = false;
    await refresh();
    const isAlone = await isOnlyWindow();
    const n = queue ? countUsed(queue) : 0;
    const onRemove = () => remove(n);
    display.show(() => removeView({ ...survey, n, isAlone, onRemove, onKeep: show }));
  }

  /** Remove the survey, unless more than `n` reports or another window's would be lost. @param {number} n */
  async function remove(n) {
    if (!(await isOnlyWindow()) || !(await storage.remove(n))) return confirmRemoval();
    for (const one of await navigator.serviceWorker.getRegistrations()) await one.unregister();
    for (const name of await caches.keys()) await caches.delete(name);
    history.replaceState(null, "", location.pathname);
    reload();
  }

  return {
    show,
    /** Start an interview, or show why that is impossible. @param {() => void} begin */
    begin(begin) {
      beginVisit = begin;
      if (obstacle() || isOther) show();
      else begin();
      window.addEventListener("online", upload);
      document.addEventListener("visibilitychange", refresh);
      upload();
    },
  };
}

/** Whether the link names this definition. @param {Definition} definition */
function isLinked({ id }) {
  return link.prefix !== "" && id.startsWith(link.prefix);
}

/**
 * Randomize the answers once, seal the report and store it.
 *
 * @param {Pick<Tablet, "storage" | "installed" | "sealer" | "survey">} tablet
 * @param {Answers} answers
 * @param {Drawn} drawn
 */
function send(tablet, answers, drawn) {
  const uniformBelow = createUniformBelow(getRandomValues);
  try {
    const { definition } = tablet.survey;
    const id = drawBytes(getRandomValues, 16);
    const body = makeReport(definition, answers, uniformBelow, id, { ...NO_INVITATION, drawn });
    storeReport(tablet, body);
  } catch (error) {
    const reason = obstacleOf(error);
    display.show(() => obstacleView({ reason, onTryAgain: reload, hasAnswers: true }));
  } finally {
    uniformBelow.wipe();
  }
}

/**
 * Store a report, and say so only when it is on the disk. If this fails, "Try again" uses the same box.
 *
 * @param {Pick<Tablet, "storage" | "installed" | "sealer" | "survey">} tablet
 * @param {string} body
 */
async function storeReport({ storage, installed, sealer, survey }, body) {
  isStoring = true;
  /** @type {import("./fieldwork-queue.js").Bytes | undefined} */
  let box;
  while (isStoring) {
    display.show(() => storingView(survey.definition));
    try {
      box = box ?? (await sealer.report(body));
      await storage.add(installed, box, createUniformBelow(getRandomValues));
      isStoring = false;
    } catch (error) {
      if (error instanceof RemovedError) {
        isStoring = false;
        return display.show(() => problemView("fieldwork.removed"));
      }
      await new Promise((resolve) =>
        display.show(() => notStoredView(survey.definition, () => resolve(true))),
      );
    }
  }
  display.show(() => storedView({ ...survey, body, onNext: reload }));
}

askBeforeLoss(() => losesAnswers());

// A page restored from the browser's memory has forgotten its answers, so it starts again.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) reload();
});

window.addEventListener("hashchange", () => {
  if (!isStoring) reload();
});

open().catch(() => {
  display.show(() => obstacleView({ reason: "unexpected", onTryAgain: reload }));
});
