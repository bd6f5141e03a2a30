/**
 * Makes the builder quicker: says what an edit means while somebody writes, and saves by itself.
 *
 * Every page works without it. It only ever sends the form that stands on the page to the page's
 * own address, and writes texts; where a save would lose what somebody else wrote, it stops.
 */

const LOOK_MS = 150;
const SAVE_MS = 1500;

const form = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-draft]"));

/** @param {string} text */
function say(text) {
  const place = document.getElementById("saved");
  if (place) place.textContent = text;
}

/**
 * @param {HTMLFormElement} sheet
 * @param {"look" | "autosave"} what
 */
async function send(sheet, what) {
  const body = new FormData(sheet);
  body.set("do", what);
  const answer = await fetch(location.pathname, { method: "POST", body, redirect: "error" });
  const isTold = answer.headers.get("Content-Type")?.startsWith("application/json");
  if (!isTold) throw new Error(`status ${answer.status}`);
  return answer.json();
}

/**
 * @param {HTMLFormElement} sheet
 * @param {Record<string, string>} errors  by the names of fields
 */
function writeErrors(sheet, errors) {
  for (const old of sheet.querySelectorAll("p.error")) old.remove();
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

/** @param {Record<string, string>} live */
function writeLive(live) {
  for (const [name, text] of Object.entries(live)) {
    const place = document.getElementById(`live-${name}`);
    if (!place) continue;
    if (place instanceof HTMLAnchorElement) {
      const picture = place.querySelector("img");
      place.hidden = text === "";
      if (text && picture && place.getAttribute("href") !== text) {
        place.href = text;
        picture.src = text;
      }
      continue;
    }
    if (name === "warning") place.hidden = text === "";
    const shown = name === "epsilon" && !text ? "This question is not ready yet." : text;
    if (place.textContent !== shown) place.textContent = shown;
  }
}

/** @param {HTMLFormElement} sheet */
function watch(sheet) {
  let look = 0;
  let save = 0;
  let edits = 0;
  let told = 0;
  let kept = 0;
  /** @type {Promise<void>} */
  let saving = Promise.resolve();
  let isSaving = false;

  /** @param {"look" | "autosave"} what */
  const ask = async (what) => {
    const asked = edits;
    try {
      const answer = await send(sheet, what);
      if (answer.not_saved) {
        say(`Not saved: ${answer.not_saved}`);
        return;
      }
      if (asked >= told) {
        told = asked;
        writeErrors(sheet, answer.errors);
        writeSummary(sheet, answer.elsewhere, answer.errors);
        writeLive(answer.live);
      }
      if (what === "look") return;
      if (answer.revision) {
        const revision = /** @type {HTMLInputElement} */ (sheet.elements.namedItem("revision"));
        revision.value = String(answer.revision);
        kept = Math.max(kept, asked);
        if (asked === edits) say("Saved");
      } else {
        say(
          `Not saved: ${answer.who} changed ${answer.clashes.join(", ")} too. Press Save to see both.`,
        );
      }
    } catch {
      say("Not saved: the server cannot be reached. What you wrote stands here; press Save later.");
    }
  };

  sheet.addEventListener("input", () => {
    edits += 1;
    say("Not saved yet");
    clearTimeout(look);
    clearTimeout(save);
    look = setTimeout(() => ask("look"), LOOK_MS);
    save = setTimeout(() => {
      isSaving = true;
      saving = ask("autosave").finally(() => {
        isSaving = false;
      });
    }, SAVE_MS);
  });
  sheet.addEventListener("submit", (event) => {
    clearTimeout(look);
    clearTimeout(save);
    if (!isSaving) {
      kept = edits;
      return;
    }
    // A save under way has a revision to tell: without it, one would clash with oneself.
    event.preventDefault();
    const { submitter } = event;
    saving.then(() => setTimeout(() => sheet.requestSubmit(submitter)));
  });
  // Whoever leaves while something is not saved yet has it saved on the way.
  window.addEventListener("pagehide", () => {
    if (kept >= edits) return;
    const body = new FormData(sheet);
    body.set("do", "autosave");
    navigator.sendBeacon(location.pathname, body);
  });
  // Another type, or another question to depend on, has other fields.
  for (const name of ["type", "ask_question"]) {
    const choice = sheet.elements.namedItem(name);
    if (choice instanceof HTMLSelectElement) {
      choice.addEventListener("change", () => sheet.requestSubmit());
    }
  }
  addSlider(sheet);
}

/** @type {Record<string, [number, number, number]>} */
const RANGES = {
  truth_probability: [0.01, 0.99, 0.005],
  keep_probability: [0.01, 0.99, 0.005],
  epsilon: [0.05, 8, 0.05],
};

/**
 * A slider beside the number field: both say the same value.
 *
 * @param {HTMLFormElement} sheet
 */
function addSlider(sheet) {
  const value = sheet.elements.namedItem("value");
  const way = sheet.elements.namedItem("way");
  if (!(value instanceof HTMLInputElement) || !(way instanceof HTMLSelectElement)) return;
  const slider = document.createElement("input");
  slider.type = "range";
  slider.setAttribute("aria-label", "The same value as a slider");
  value.after(slider);

  const follow = () => {
    const range = RANGES[way.value];
    slider.hidden = !range;
    value.disabled = !range;
    if (!range) return;
    [slider.min, slider.max, slider.step] = range.map(String);
    const [over, under = "1"] = value.value.split("/");
    const typed = Number(over) / Number(under);
    if (Number.isFinite(typed) && value.value.trim()) slider.value = String(typed);
  };
  slider.addEventListener("input", () => {
    value.value = String(Number(Number(slider.value).toFixed(3)));
  });
  value.addEventListener("input", follow);
  way.addEventListener("change", () => {
    if (RANGES[way.value] && !value.value.trim()) {
      value.value = way.value === "epsilon" ? "1" : "0.6";
    }
    follow();
  });
  follow();
}

if (form) watch(form);
