/**
 * Reloads the page if a bad network lost one of its files; if that does not help, it offers a button.
 * This is a separate script, because it must run when a module is missing.
 */

/** How often the page reloads itself. */
const MAX_RELOADS = 2;

window.addEventListener(
  "error",
  ({ target }) => {
    if (!(target instanceof HTMLScriptElement)) return;
    const reloads = Number(history.state?.reloads ?? 0);
    if (reloads >= MAX_RELOADS) return offerReload();
    history.replaceState({ reloads: reloads + 1 }, "");
    setTimeout(() => location.reload(), 1000 * (reloads + 1));
  },
  // Failed loads do not bubble.
  true,
);

/** Show the notice that the page did not load, at once and with a button in each language. */
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
