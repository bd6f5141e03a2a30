/**
 * Reloads the page if one of its files did not load; if that does not help, shows a button to reload.
 * This is a separate script, because it must run even if a module is missing.
 */

/** Maximum number of automatic reloads. */
const MAX_RELOADS = 2;

/** Whether a file of the page is missing; several may be. */
let isIncomplete = false;

window.addEventListener(
  "error",
  ({ target }) => {
    if (isIncomplete || !(target instanceof HTMLScriptElement)) return;
    isIncomplete = true;
    const reloads = history.state?.reloads ?? 0;
    if (reloads >= MAX_RELOADS) return offerReload();
    history.replaceState({ reloads: reloads + 1 }, "");
    setTimeout(() => location.reload(), 1000 * (reloads + 1));
  },
  // Failed loads do not bubble.
  true,
);

/** Immediately show the notice that the page did not load, with a button in each language. */
function offerReload() {
  document.querySelector(".opening")?.classList.add("failed");
  for (const section of document.querySelectorAll("section")) {
    const button = document.createElement("button");
    button.className = "button reload";
    button.textContent = section.dataset.reload ?? "";
    button.addEventListener("click", () => location.reload());
    section.append(button);
  }
}
