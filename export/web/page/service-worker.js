/**
 * Keeps this version of the page and its first model, so that the page also opens without a network.
 *
 * The export writes `VERSION`, a hash of all files, and the names `FILES` before this. While there is a network,
 * everything comes from there.
 */

const prefix = `keras_transformer ${self.registration.scope} `; // Other pages of the same site have caches of their own.

self.oninstall = (event) => {
  const requests = FILES.map((name) => new Request(name, { cache: "no-cache" })); // "no-cache": asks for changes.
  event.waitUntil(caches.open(prefix + VERSION).then((cache) => cache.addAll(requests)).then(() => self.skipWaiting()));
};

self.onactivate = (event) => {
  const isOld = (name) => name.startsWith(prefix) && name !== prefix + VERSION;
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter(isOld).map((name) => caches.delete(name)))));
};

self.onfetch = (event) => {
  const kept = async (error) => (await (await caches.open(prefix + VERSION)).match(event.request)) ?? Promise.reject(error);
  event.respondWith(fetch(event.request).catch(kept));
};
