/**
 * Turns the respondents' page into a preview of a draft: it gets its definition from this page,
 * stores nothing on the device and sends nothing.
 *
 * It runs before the shipped modules, which it leaves unchanged. Without it they find no definition,
 * and the page's policy blocks every request except those for the shipped files.
 */

(() => {
  /** The prefix of the addresses of a preview's definition and reports; no server has them. */
  const NOWHERE = "preview:";
  /** An invitation in the right form, for surveys that only invited people can open. */
  const INVITATION = "A".repeat(43);

  /** @param {string} name */
  const setting = (name) =>
    document.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? "";
  const definition = setting("preview");

  // A report of the published survey on this device stays as it is, and no preview adds one.
  /** @type {Map<string, string>} */
  const stored = new Map();
  const storage = {
    getItem: (/** @type {string} */ key) => stored.get(key) ?? null,
    setItem: (/** @type {string} */ key, /** @type {string} */ value) => {
      stored.set(key, String(value));
    },
    removeItem: (/** @type {string} */ key) => {
      stored.delete(key);
    },
  };
  for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, name, { value: storage });
  }

  const { fetch } = window;
  window.fetch = (resource, options) => {
    const address = String(resource);
    if (!address.startsWith(NOWHERE)) return fetch(resource, options);
    if (address.startsWith(`${NOWHERE}/pictures/`))
      return fetch(address.slice(NOWHERE.length), options);
    if (address.endsWith("/definition.json")) return Promise.resolve(new Response(definition));
    return Promise.reject(new TypeError("a preview sends nothing"));
  };

  const language = setting("preview-language");
  if (language) Object.defineProperty(navigator, "languages", { value: [language] });

  // The modules find the survey's name, and an invitation if it needs one, after the "#".
  const { slug, access } = JSON.parse(definition);
  const hash = new URLSearchParams({ slug, d: setting("preview-hash") });
  if (access === "invitation") hash.set("i", INVITATION);
  history.replaceState(null, "", `#${hash}`);

  // Beside the builder's form, the modules would take the focus from the field that somebody fills in.
  const { focus } = HTMLElement.prototype;
  HTMLElement.prototype.focus = function focusInside(options) {
    if (window.parent === window || document.hasFocus()) focus.call(this, options);
  };

  /** @param {string} text */
  function notice(text) {
    const element = document.createElement("p");
    element.className = "notice";
    element.lang = "en";
    element.dir = "ltr";
    element.setAttribute("role", "status");
    element.textContent = text;
    return element;
  }

  document.addEventListener(
    "click",
    (event) => {
      const button = event.target instanceof Element ? event.target.closest("button") : null;
      if (!button) return;
      const isSend = button.matches(".view.review > .button");
      if (!isSend && !button.matches(".exit")) return;
      event.stopImmediatePropagation();
      event.preventDefault();
      if (isSend) {
        document.querySelector(".review > .button + .notice")?.remove();
        button.after(notice("This is a preview; nothing is sent."));
        return;
      }
      const { exit } = JSON.parse(definition);
      const target = exit ? `for ${exit}` : "for Wikipedia";
      document
        .getElementById("survey")
        ?.replaceChildren(notice(`Respondents leave the survey here, ${target}.`));
    },
    true,
  );

  // A preview of one question skips the start page, once.
  if (setting("preview-start")) {
    const observer = new MutationObserver(() => {
      const start = document.querySelector(".view.start > .button");
      if (!(start instanceof HTMLButtonElement)) return;
      observer.disconnect();
      start.click();
    });
    document.addEventListener("DOMContentLoaded", () => {
      observer.observe(document.body, { childList: true, subtree: true });
    });
  }
})();
