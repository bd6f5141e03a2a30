/**
 * The service worker of field mode: stores the client's files after checking their hashes, and serves
 * them, and nothing else, to the pages below its own address.
 *
 * The server writes the list of files in front of this code. A release with different files has a
 * different worker, which starts when all its files are stored and no page of the old one is open.
 */

/** @type {any} */
const worker = self;

/** @type {{release: string, files: [string, string][]}} */
const { release, files } = worker.fieldClient;

const PREFIX = "survey-field-";

/** The hash of each file by its address. */
const hashes = new Map(files.map(([path, hash]) => [new URL(path, worker.location).href, hash]));

/** Fetch a file; the browser compares it with its hash. @param {string} address */
function fetchFile(address) {
  return fetch(address, {
    integrity: hashes.get(address) ?? "",
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    referrerPolicy: "no-referrer",
  });
}

/** Store all files or fail, in which case the browser keeps the old worker. */
async function storeFiles() {
  const cache = await caches.open(PREFIX + release);
  await Promise.all(
    [...hashes.keys()].map(async (address) => {
      const response = await fetchFile(address);
      if (!response.ok) throw new Error(`${address} has the status ${response.status}`);
      await cache.put(address, response);
    }),
  );
}

/** Delete the files of other releases. */
async function forgetOthers() {
  const names = await caches.keys();
  const others = names.filter((name) => name.startsWith(PREFIX) && name !== PREFIX + release);
  await Promise.all(others.map((name) => caches.delete(name)));
}

/** @param {string} address */
async function findFile(address) {
  const cache = await caches.open(PREFIX + release);
  return (await cache.match(address, { ignoreVary: true })) ?? fetchFile(address);
}

worker.addEventListener("install", (/** @type {any} */ event) => event.waitUntil(storeFiles()));
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(forgetOthers()));
worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { method, url } = event.request;
  const [address] = url.split(/[?#]/);
  if (method === "GET" && hashes.has(address)) event.respondWith(findFile(address));
});
