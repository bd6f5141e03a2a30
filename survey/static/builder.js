/**
 * Saves drafts automatically, and shows the effects of an edit while the researcher types.
 *
 * Every page works without this script. It sends only the form on the page, only to the page's own
 * address, and changes only texts and the number of answers. It stops if a save would overwrite another person's changes.
 */

const LOOK_MS = 150;
const SAVE_MS = 1500;

const form = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-draft]"));

/** @param {string} text */
function showStatus(text) {
  const place = document.getElementById("saved");
  if (place) place.textContent = text;
}

/**
 * @param {HTMLFormElement} sheet
 * @param {"look" | "autosave"} action
 */
async function send(sheet, action) {
  const body = new FormData(sheet);
  body.set("do", action);
  const response = await fetch(location.pathname, { method: "POST", body, redirect: "error" });
  const isJson = response.headers.get("Content-Type")?.startsWith("application/json");
  if (!isJson) throw new Error(`status ${response.status}`);
  return response.json();
}

/**
 * @param {HTMLFormElement} sheet
 * @param {Record<string, string>} errors  by field name
 * @param {Record<string, {label: string, action: string}>} remedies  by field name
 */
function writeErrors(sheet, errors, remedies) {
  for (const old of sheet.querySelectorAll("p.error, p.nearest")) old.remove();
  for (const [name, { label, action }] of Object.entries(remedies)) {
    const button = document.createElement("button");
    Object.assign(button, { className: "button second", name: "do", value: action });
    button.textContent = label;
    const line = document.createElement("p");
    line.className = "nearest";
    line.append(button);
    sheet.querySelector(`.field [name="${name}"]`)?.closest(".field")?.after(line);
  }
  for (const input of sheet.querySelectorAll("[name]")) {
    const text = errors[input.getAttribute("name") ?? ""];
    const place = input.closest(".field, .tick");
    const described = (input.getAttribute("aria-describedby") ?? "")
      .split(" ")
      .filter((id) => id && !id.endsWith("-error"));
    place?.classList.toggle("wrong", Boolean(text));
    if (text && place) {
      const error = document.createElement("p");
      error.className = "error";
      error.id = `${input.id}-error`;
      error.textContent = text;
      described.push(error.id);
      input.before(error);
    }
    if (described.length) input.setAttribute("aria-describedby", described.join(" "));
    else input.removeAttribute("aria-describedby");
  }
}

/**
 * @param {HTMLFormElement} sheet
 * @param {string[]} elsewhere
 * @param {Record<string, string>} errors
 */
function writeSummary(sheet, elsewhere, errors) {
  const summary = document.getElementById("mistakes");
  const list = summary?.querySelector("ul");
  if (!summary || !list) return;
  const entries = elsewhere.map((text) => {
    const entry = document.createElement("li");
    entry.textContent = text.charAt(0).toUpperCase() + text.slice(1);
    return entry;
  });
  for (const [name, text] of Object.entries(errors)) {
    const input = sheet.elements.namedItem(name);
    const entry = document.createElement("li");
    const link = document.createElement("a");
    link.textContent = text;
    if (input instanceof Element) link.href = `#${input.id}`;
    entry.append(link);
    entries.push(entry);
  }
  list.replaceChildren(...entries);
  summary.classList.toggle("none", entries.length === 0);
}

/**
 * Update the limits of the slider, which depend on the number of answers.
 *
 * @param {HTMLFormElement} sheet
 * @param {Record<string, [number, number]>} limits
 */
function writeLimits(sheet, limits) {
  const value = sheet.elements.namedItem("value");
  if (!(value instanceof HTMLInputElement)) return;
  value.dataset.limits = JSON.stringify(limits);
  sheet.dispatchEvent(new Event("limits"));
}

/** @param {Record<string, string>} live */
function writeLive(live) {
  for (const [name, text] of Object.entries(live)) {
    const place = document.getElementById(`live-${name}`);
    if (!place) continue;
    if (place instanceof HTMLAnchorElement) {
      const picture = place.querySelector("img");
      place.hidden = text === "";
      const isBroken = picture?.complete && picture.naturalWidth === 0;
      if (text && picture && (place.getAttribute("href") !== text || isBroken)) {
        place.href = text;
        const dark = place.querySelector("source");
        if (dark) dark.srcset = `${text}&look=dark`;
        picture.src = `${text}&look=light`;
      }
      continue;
    }
    if (name === "warning" || name === "level") place.hidden = text === "";
    const content = name === "epsilon" && !text ? "This question is not ready yet." : text;
    if (place.textContent !== content) place.textContent = content;
  }
}

/** @param {HTMLFormElement} sheet */
function watch(sheet) {
  let look = 0;
  let save = 0;
  let edits = 0;
  let lastShown = 0;
  let lastSaved = 0;
  /** @type {Promise<void>} */
  let saving = Promise.resolve();
  let isSaving = false;

  /** @param {"look" | "autosave"} action */
  const update = async (action) => {
    const edit = edits;
    try {
      const answer = await send(sheet, action);
      if (answer.not_saved) {
        showStatus(`Not saved: ${answer.not_saved}`);
        return;
      }
      if (edit >= lastShown) {
        lastShown = edit;
        writeErrors(sheet, answer.errors, answer.remedies);
        writeLimits(sheet, answer.limits);
        writeSummary(sheet, answer.elsewhere, answer.errors);
        // The server draws the chart from the saved question, so a draft that is not saved has none.
        const { chart, ...texts } = answer.live;
        writeLive(answer.revision || !chart ? answer.live : texts);
      }
      if (action === "look") return;
      if (answer.revision) {
        const revision = /** @type {HTMLInputElement} */ (sheet.elements.namedItem("revision"));
        revision.value = String(answer.revision);
        lastSaved = Math.max(lastSaved, edit);
        if (edit === edits) showStatus("Saved");
        showPreview();
      } else {
        showStatus(
          `Not saved: ${answer.who} also changed ${answer.clashes.join(", ")}. Press Save to compare.`,
        );
      }
    } catch {
      showStatus(
        "Not saved: the server cannot be reached. Your text is still here; press Save later.",
      );
    }
  };

  sheet.addEventListener("input", () => {
    edits += 1;
    showStatus("Not saved yet");
    clearTimeout(look);
    clearTimeout(save);
    look = setTimeout(() => update("look"), LOOK_MS);
    save = setTimeout(() => {
      isSaving = true;
      saving = update("autosave").finally(() => {
        isSaving = false;
      });
    }, SAVE_MS);
  });
  sheet.addEventListener("submit", (event) => {
    clearTimeout(look);
    clearTimeout(save);
    if (!isSaving) {
      lastSaved = edits;
      return;
    }
    // Wait for the save in progress: without its revision, this form would conflict with it.
    event.preventDefault();
    const { submitter } = event;
    saving.then(() => setTimeout(() => sheet.requestSubmit(submitter)));
  });
  // Save the last edits when the researcher leaves the page.
  window.addEventListener("pagehide", () => {
    if (lastSaved >= edits) return;
    const body = new FormData(sheet);
    body.set("do", "autosave");
    navigator.sendBeacon(location.pathname, body);
  });
  // The fields depend on the type and on the question of the condition.
  for (const name of ["type", "ask_question"]) {
    const choice = sheet.elements.namedItem(name);
    if (choice instanceof HTMLSelectElement) {
      choice.addEventListener("change", () => sheet.requestSubmit());
    }
  }
  addSlider(sheet);
  extendOptions(sheet);
}

/**
 * Let Enter in an answer, and the button below the answers, lead to the next one.
 *
 * @param {HTMLFormElement} sheet
 */
function extendOptions(sheet) {
  const list = sheet.querySelector("ol.options");
  if (!list) return;
  const rows = () => [...list.children];
  /** @param {Element | undefined} row */
  const focusRow = (row) => {
    const label = row?.querySelector("input:not([type=hidden])");
    if (label instanceof HTMLInputElement) label.focus();
  };
  const addRow = () => {
    const last = list.lastElementChild;
    const added = last?.cloneNode(true);
    if (!last || !(added instanceof Element)) return;
    const place = rows().length;
    added.classList.remove("wrong");
    for (const part of added.querySelectorAll("p.error")) part.remove();
    for (const part of added.querySelectorAll("*")) {
      for (const name of ["id", "name", "for"]) {
        const old = part.getAttribute(name);
        if (old) part.setAttribute(name, old.replace(/^options-\d+/, `options-${place}`));
      }
      part.removeAttribute("aria-describedby");
      part.removeAttribute("autofocus");
      if (part instanceof HTMLInputElement) part.value = "";
      if (part instanceof HTMLButtonElement) part.value = part.value.replace(/\d+$/, `${place}`);
      const text = part.lastChild;
      if (text instanceof Text) text.data = text.data.replace(/\d+$/, `${place + 1}`);
    }
    last.after(added);
    focusRow(added);
  };
  list.addEventListener("keydown", (event) => {
    const input = event.target;
    const isLabel = input instanceof HTMLInputElement && input.name.endsWith("-label");
    if (!(event instanceof KeyboardEvent) || event.key !== "Enter" || !isLabel) return;
    if (event.isComposing) return;
    event.preventDefault();
    const next = rows()[rows().findIndex((row) => row.contains(input)) + 1];
    if (next) focusRow(next);
    else addRow();
  });
  sheet.addEventListener("click", (event) => {
    const button = event.target;
    if (!(button instanceof HTMLButtonElement) || button.value !== "option-add") return;
    event.preventDefault();
    addRow();
  });
}

/** The narrowest window in which the preview fits beside the question. */
const BESIDE = "(min-width: 60rem)";

/** Show the saved question beside its form as respondents see it, where there is room. */
function showPreview() {
  const link = document.getElementById("preview");
  const page = link?.dataset.page;
  if (!link || !page || !window.matchMedia(BESIDE).matches) return;
  const shown = document.querySelector("iframe.preview");
  const frame = document.createElement("iframe");
  frame.className = "preview beside";
  frame.title = "Preview of this question";
  frame.loading = "lazy";
  frame.src = page;
  // A new frame adds no entry to the browser's history; a frame that navigates does.
  if (shown) shown.replaceWith(frame);
  else link.closest("p")?.after(frame);
}

/** The steps of the slider by way to state privacy. @type {Record<string, number>} */
const STEPS = { truth_probability: 0.005, keep_probability: 0.005, epsilon: 0.05 };

/** The slider's limits while the server knows none. @type {Record<string, [number, number]>} */
const WIDEST = {
  truth_probability: [0.01, 0.99],
  keep_probability: [0.01, 0.99],
  epsilon: [0.05, 8],
};

/**
 * Add a slider that shows the same value as the number field.
 *
 * @param {HTMLFormElement} sheet
 */
function addSlider(sheet) {
  const value = sheet.elements.namedItem("value");
  const way = sheet.elements.namedItem("way");
  if (!(value instanceof HTMLInputElement) || !(way instanceof HTMLSelectElement)) return;
  const slider = document.createElement("input");
  slider.type = "range";
  slider.setAttribute("aria-label", "Slider for the same value");
  value.after(slider);

  const follow = () => {
    const step = STEPS[way.value];
    slider.hidden = !step;
    value.disabled = !step;
    const place = value.closest(".field");
    if (place instanceof HTMLElement) place.hidden = !step;
    if (!step) return;
    /** @type {Record<string, [number, number]>} */
    const limits = JSON.parse(value.dataset.limits || "{}");
    const [low, high] = limits[way.value] ?? WIDEST[way.value];
    // All multiples of the step within the limits.
    slider.step = String(step);
    slider.min = (Math.ceil(low / step) * step).toFixed(3);
    slider.max = (Math.floor(high / step) * step).toFixed(3);
    const [numerator, denominator = "1"] = value.value.split("/");
    const number = Number(numerator) / Number(denominator);
    if (Number.isFinite(number) && value.value.trim()) slider.value = String(number);
  };
  slider.addEventListener("input", () => {
    value.value = String(Number(Number(slider.value).toFixed(3)));
  });
  value.addEventListener("input", follow);
  sheet.addEventListener("limits", follow);
  way.addEventListener("change", () => {
    if (STEPS[way.value] && !value.value.trim()) {
      value.value = way.value === "epsilon" ? "1" : "0.6";
    }
    follow();
  });
  follow();
}

if (form) watch(form);
showPreview();
