/**
 * Reloads a page that is still being computed.
 *
 * A refresh without a script drops the part of the address after "#", so that the page opens at its
 * top.
 */

const RELOAD_MILLISECONDS = 1000;

// Otherwise, the browser would restore the scroll position of this page and ignore the "#" part.
history.scrollRestoration = "manual";
setTimeout(() => location.reload(), RELOAD_MILLISECONDS);
