/**
 * Moves a question of the outline by dragging its handle.
 *
 * Dropping it fills in and sends the question's own "Move to …" form, so that the buttons and the
 * handles change the order in the same way. Every page works without this script.
 */

(() => {
  /** @typedef {{target: Element, place: string}} Drop */

  const questions = [...document.querySelectorAll("li[data-place]")];
  /** @type {Element | null} */
  let dragged = null;

  /** @param {Element} item */
  const placeOf = (item) => Number(item.getAttribute("data-place"));

  /**
   * Return where a question would be dropped: at the place of another question, or on an empty page.
   *
   * @param {EventTarget | null} target
   * @returns {Drop | null}
   */
  function dropAt(target) {
    if (!dragged || !(target instanceof Element)) return null;
    const empty = target.closest("[data-empty-page]");
    if (empty) return { target: empty, place: empty.getAttribute("data-empty-page") ?? "" };
    const item = target.closest("li[data-place]");
    return item && item !== dragged ? { target: item, place: String(placeOf(item)) } : null;
  }

  /** @param {Drop | null} drop */
  function mark(drop) {
    for (const old of document.querySelectorAll(".drop-before, .drop-after, .drop-into")) {
      old.classList.remove("drop-before", "drop-after", "drop-into");
    }
    if (!drop || !dragged) return;
    const isBehind = placeOf(drop.target) > placeOf(dragged);
    const isPage = drop.target.hasAttribute("data-empty-page");
    drop.target.classList.add(isPage ? "drop-into" : isBehind ? "drop-after" : "drop-before");
  }

  for (const item of questions) {
    const handle = item.querySelector(".handle");
    const place = item.querySelector("select[name=place]");
    if (!(handle instanceof HTMLElement) || !(place instanceof HTMLSelectElement)) continue;
    handle.hidden = false;
    handle.addEventListener("dragstart", (event) => {
      dragged = item;
      item.classList.add("dragged");
      if (!event.dataTransfer) return;
      event.dataTransfer.effectAllowed = "move";
      // Firefox drags nothing without data.
      event.dataTransfer.setData("text/plain", "");
      event.dataTransfer.setDragImage(item, 16, 16);
    });
    handle.addEventListener("dragend", () => {
      mark(null);
      item.classList.remove("dragged");
      dragged = null;
    });
  }

  document.addEventListener("dragover", (event) => {
    const drop = dropAt(event.target);
    mark(drop);
    if (drop) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    const drop = dropAt(event.target);
    if (!drop || !dragged) return;
    event.preventDefault();
    const place = dragged.querySelector("select[name=place]");
    const button = dragged.querySelector("button[value^='question-move ']");
    if (!(place instanceof HTMLSelectElement) || !(button instanceof HTMLButtonElement)) return;
    place.value = drop.place;
    button.click();
  });
})();
