/**
 * Follows an old link to a question that is on another page of the results.
 *
 * Such a link leads to the question's entry in the table of contents. Without this script, readers
 * follow the link of the entry.
 */

(() => {
  function follow() {
    const entry = document.getElementById(location.hash.slice(1));
    const link = entry?.matches(".outline li") && entry.querySelector("a");
    if (link) location.replace(link.href);
  }

  addEventListener("hashchange", follow);
  follow();
})();
