/**
 * Asks again for a page that is still being computed.
 *
 * A refresh without a script loses the part of the address after "#", and with it the place on the
 * page that a link leads to.
 */

const MILLISECONDS = 1000;

// Restoring the position on this page would hide the place too.
history.scrollRestoration = "manual";
setTimeout(() => location.reload(), MILLISECONDS);
