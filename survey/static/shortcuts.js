/**
 * Keyboard shortcuts of the builder. A shortcut presses a button or link of the page, which has the
 * key in `data-key`, or moves the focus to the next question of the outline.
 *
 * A key alone counts only while no field has the focus, and the researcher can turn that off. With
 * Alt and Shift, it counts everywhere. Every page works without this script.
 */

(() => {
  const dialog = document.getElementById("shortcuts");
  const opener = document.getElementById("open-shortcuts");
  const note = document.getElementById("shortcut-note");
  const single = document.getElementById("single-keys");
  if (!(dialog instanceof HTMLDialogElement) || !(single instanceof HTMLInputElement)) return;
  if (!opener) return;

  /** The entry of the browser's storage that says that single keys are off. */
  const STORED = "builder-single-keys";
  const FIELDS = "input, select, textarea, [contenteditable]";
  const QUESTION = ".questions > li";
  const questions = [...document.querySelectorAll(QUESTION)];
  /** @type {Element | null} */
  let current = questions.length ? document.querySelector(`${QUESTION}:target`) : null;

  /** @param {Element | null | undefined} element */
  const questionOf = (element) => element?.closest(QUESTION) ?? null;

  /**
   * Return the button or link with a key that is nearest to the current question.
   *
   * @param {string} key
   */
  function target(key) {
    const found = [...document.querySelectorAll("[data-key]")].filter(
      (element) => element instanceof HTMLElement && element.dataset.key === key,
    );
    for (const scope of [current, current?.closest("section")]) {
      const near = found.find((element) => scope?.contains(element));
      if (near) return near;
    }
    const ofPage = found.filter((element) => !questionOf(element));
    return ofPage[ofPage.length - 1] ?? (found.length === 1 ? found[0] : undefined);
  }

  /** @param {number} step */
  function moveFocus(step) {
    const place = current ? questions.indexOf(current) + step : step > 0 ? 0 : questions.length - 1;
    const next = questions[Math.min(Math.max(place, 0), questions.length - 1)];
    const link = next?.querySelector("a[href]");
    if (!(link instanceof HTMLElement)) return;
    link.focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  /** @param {string} text */
  function say(text) {
    if (note) note.textContent = text;
  }

  /** @param {string} key */
  function canPress(key) {
    const moves = questions.length > 0 && (key === "j" || key === "k");
    return moves || document.querySelector(`[data-key="${CSS.escape(key)}"]`) !== null;
  }

  /** @param {string} key */
  function press(key) {
    say("");
    if (questions.length && (key === "j" || key === "k")) {
      moveFocus(key === "j" ? 1 : -1);
      return;
    }
    const element = target(key);
    if (element instanceof HTMLElement) element.click();
    else if (canPress(key)) say("Choose a question first: press J.");
  }

  function open() {
    if (!(dialog instanceof HTMLDialogElement)) return;
    for (const row of dialog.querySelectorAll("tr[data-shortcut]")) {
      const key = row.getAttribute("data-shortcut") ?? "";
      if (row instanceof HTMLElement) row.hidden = !canPress(key);
    }
    dialog.showModal();
  }

  /**
   * Return the pressed key. With Alt, a Mac writes another letter, so that the place of the key counts.
   *
   * @param {KeyboardEvent} event
   */
  function keyOf(event) {
    const key = event.key.toLowerCase();
    if (/^[a-z?]$/.test(key)) return key;
    return event.altKey && event.code.startsWith("Key") ? event.code.slice(3).toLowerCase() : "";
  }

  document.addEventListener("focusin", (event) => {
    const element = event.target instanceof Element ? event.target : null;
    current = questionOf(element) ?? current;
  });
  if (questionOf(document.activeElement)) current = questionOf(document.activeElement);

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.repeat || dialog.open) return;
    if (event.ctrlKey || event.metaKey) return;
    const key = keyOf(event);
    const isChord = event.altKey && event.shiftKey;
    const isField = event.target instanceof Element && event.target.matches(FIELDS);
    // A question mark needs Shift on most keyboards.
    const isAlone = !event.altKey && (!event.shiftKey || key === "?");
    const isSingle = isAlone && !isField && single.checked;
    if (!key || !(isChord || isSingle) || !canPress(key)) return;
    event.preventDefault();
    press(key);
  });

  opener.hidden = false;
  opener.addEventListener("click", open);
  single.checked = localStorage.getItem(STORED) !== "off";
  single.addEventListener("change", () => {
    if (single.checked) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, "off");
  });
})();
