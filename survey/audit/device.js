// The device of one visit: a browser's globals for the client, and a respondent who uses the page.
//
// This script runs inside the client's realm before any of its modules, so that the client never
// gets an object of Node. Every stand-in is a Proxy: any use of a member that this script does not
// define fails and is recorded, whether the client reads, writes, calls, tests or lists it.
(() => {
  const { apply, construct, defineProperty, getOwnPropertyDescriptor, ownKeys } = Reflect;
  const [RealProxy, RealMap, RealSet, realJson] = [Proxy, Map, Set, JSON];
  const listIterator = [][Symbol.iterator]().constructor;
  const {
    decodeURIComponent: decode,
    String: text,
    Object: realObject,
    Intl: realIntl,
  } = globalThis;
  const realGlobal = globalThis;

  /** Names of the language that the client may use; all others of the realm are removed. */
  const LANGUAGE = new RealSet([
    ...["Array", "BigInt", "Error", "Infinity", "Intl", "JSON", "Map", "Math", "NaN", "Number"],
    ...["Object", "Promise", "RangeError", "Set", "String", "TypeError", "Uint32Array"],
    ...["Uint8Array", "WeakMap", "WeakSet", "undefined"],
  ]);

  /** Globals of a realm that has no browser. */
  const BARE = new RealSet(["TextDecoder", "TextEncoder"]);

  /** Methods that depend on the device's language, time zone or chance. */
  const VARYING = [
    [Array.prototype, ["toLocaleString"]],
    [BigInt.prototype, ["toLocaleString"]],
    [Math, ["random"]],
    [Number.prototype, ["toLocaleString"]],
    [Object.prototype, ["toLocaleString", "__defineGetter__", "__defineSetter__", "__proto__"]],
    [String.prototype, ["localeCompare"]],
    [Error, ["captureStackTrace"]],
  ];

  const TAGS = new RealSet([
    ...["a", "b", "bdi", "button", "caption", "circle", "code", "dd", "details", "dialog", "div", "dl"],
    ...["dt", "fieldset", "figcaption", "figure", "h1", "h2", "h3", "i", "img", "input", "label"],
    ...["legend", "li", "ol", "option", "output", "p", "path", "pre", "progress", "q", "rect"],
    ...["section", "select", "span"],
    ...["summary", "svg", "table", "tbody", "td", "th", "thead", "tr", "ul"],
  ]);

  /** Attributes that load nothing and run nothing. */
  const ATTRIBUTES = new RealSet([
    ...["alt", "aria-describedby", "aria-disabled", "aria-hidden", "aria-invalid", "aria-label", "aria-labelledby"],
    ...["aria-live", "aria-pressed", "aria-valuetext", "autocomplete", "class", "cx", "cy", "d"],
    ...["data-label", "data-option", "data-question"],
    ...["dir", "focusable", "height", "hidden", "href", "id", "inputmode", "lang", "max", "min", "name"],
    ...["placeholder", "r", "role", "rx", "scope", "spellcheck", "tabindex", "title", "type", "value", "viewBox"],
    ...["width", "x", "y"],
  ]);

  const PICTURE = /^data:image\/webp;base64,[A-Za-z0-9+/]+$/;

  const USUAL = {
    ...{ canonical: '{"pages":[]}', texts: {}, collector: "", languages: [], answers: {} },
    ...{
      failures: [],
      waiting: ["timer"],
      afterRefusal: [],
      afterSent: [],
      interruptions: [],
      stored: [],
      meanwhile: [],
      overtaken: [],
    },
  };

  const SVG = "http://www.w3.org/2000/svg";
  const DAY = 86_400_000;
  const STEPS = 400;
  /** Minimum step in days of dates that are typed as months, or as years. */
  const KEPT = { month: 28, year: 365 };

  /** @param visitor  a visit in JSON @param fill  the host's generator @param digest  SHA-256 in hex */
  return (visitorText, digest) => {
    const visitor = { ...USUAL, ...realJson.parse(visitorText) };
    const definition = realJson.parse(visitor.canonical);
    const events = [];
    const violations = [];
    let now = 0;

    const note = (...event) => events.push(event);
    const violate = (what) => {
      violations.push(what);
      throw new TypeError(`${what}: not scripted`);
    };

    // --- Strict stand-ins ---------------------------------------------------------------------

    const nodeOf = new RealMap();

    /**
     * Return a stand-in with the scripted members. `scripted` has values, getters and setters.
     *
     * @param target  a function if the stand-in can be called, otherwise an object
     */
    const strict = (name, scripted, target) =>
      strictBy(name, (key) => getOwnPropertyDescriptor(scripted, key), scripted, target);

    /** `describe` returns the descriptor of a scripted member; `self` is `this` of its accessors. */
    const strictBy = (name, describe, self, target = realObject.create(null)) => {
      const say = (action, key) =>
        violate(`${name}${key === undefined ? "" : `.${text(key)}`} is ${action}`);
      return new RealProxy(target, {
        get(_, key) {
          const property = describe(key);
          if (property === undefined || (property.set && !property.get)) return say("read", key);
          return property.get ? apply(property.get, self, []) : property.value;
        },
        set(_, key, value) {
          const property = describe(key);
          if (!property?.set) return say("written", key);
          apply(property.set, self, [value]);
          return true;
        },
        has: (_, key) => say("tested", key),
        deleteProperty: (_, key) => say("deleted", key),
        defineProperty: (_, key) => say("defined", key),
        getOwnPropertyDescriptor: (_, key) => say("described", key),
        ownKeys: () => say("listed"),
        getPrototypeOf: () => say("asked for its prototype"),
        setPrototypeOf: () => say("given a prototype"),
        isExtensible: () => say("tested"),
        preventExtensions: () => say("frozen"),
        apply: (_, __, values) => (self.call ? apply(self.call, undefined, values) : say("called")),
        construct: (_, values) =>
          self.construct ? apply(self.construct, undefined, values) : say("constructed"),
      });
    };
    const method = (name, call) => strict(name, { call }, () => {});
    const maker = (name, make) => strict(name, { construct: make }, function made() {});
    const methods = (name, all) =>
      realObject.fromEntries(
        realObject.entries(all).map(([key, call]) => [key, method(`${name}.${key}`, call)]),
      );

    // --- Timers: simulated time passes only when a timer runs ---------------------------------

    const timers = new RealMap();
    let lastTimer = 0;
    const setTimeout = method("setTimeout", (callback, delay, ...rest) => {
      if (typeof callback !== "function" || typeof delay !== "number" || rest.length > 0)
        violate("setTimeout is called otherwise");
      lastTimer += 1;
      timers.set(lastTimer, { callback, due: now + delay });
      note("timer", delay);
      return lastTimer;
    });
    const clearTimeout = method("clearTimeout", (timer) => {
      note("cancel", timers.delete(timer));
    });
    const fireNext = () => {
      let first;
      for (const [id, timer] of timers)
        if (first === undefined || timer.due < timers.get(first).due) first = id;
      if (first === undefined) return false;
      const { callback, due } = timers.get(first);
      timers.delete(first);
      now = Math.max(now, due);
      note("fire", now);
      callback();
      return true;
    };

    // --- Storage ------------------------------------------------------------------------------

    const stored = new RealMap(visitor.stored);
    const denied = (action) => {
      if (visitor.storage === "denied" || visitor.storage === action)
        throw new Error("storage denied");
    };
    const localStorage = strict(
      "localStorage",
      methods("localStorage", {
        getItem(key) {
          denied("read");
          return stored.get(key) ?? null;
        },
        setItem(key, value, ...rest) {
          if (typeof key !== "string" || typeof value !== "string" || rest.length > 0)
            violate("localStorage.setItem is called otherwise");
          note("store", key, value);
          denied("write");
          stored.set(key, value);
        },
        removeItem(key) {
          note("remove", key);
          denied("remove");
          stored.delete(key);
        },
      }),
    );

    // --- Randomness ---------------------------------------------------------------------------

    const pools = [];
    let fills = 0;
    const getRandomValues = (array) => {
      note("random", array instanceof Uint32Array ? 32 : 8, array.length);
      fills += 1;
      if (fills === visitor.generatorFails) throw new Error("the generator failed");
      const source = array instanceof Uint32Array ? visitor.words : visitor.idBytes;
      // Names of inputs differ from each other; the id and the words are the ones of the visit.
      const shift = array instanceof Uint32Array || array.length === source.length ? 0 : fills;
      for (let i = 0; i < array.length; i += 1) array[i] = source[i % source.length] + shift;
      if (array instanceof Uint32Array) pools.push(array);
      return array;
    };
    const bytesOf = (hex) => {
      const bytes = new Uint8Array(hex.length / 2);
      for (let i = 0; i < bytes.length; i += 1)
        bytes[i] = Number(`0x${hex.slice(2 * i, 2 * i + 2)}`);
      return bytes;
    };
    const subtle = strict(
      "crypto.subtle",
      methods("crypto.subtle", {
        async digest(algorithm, bytes) {
          if (algorithm !== "SHA-256") violate(`crypto.subtle.digest computes ${algorithm}`);
          if (visitor.digestFails) throw new Error("no digest");
          note("digest");
          return bytesOf(digest(bytes)).buffer;
        },
      }),
    );
    const crypto = strict("crypto", {
      ...methods("crypto", { getRandomValues }),
      subtle: visitor.subtle === false ? undefined : subtle,
    });

    // --- Network ------------------------------------------------------------------------------

    const encode = (content) => {
      const octets = [];
      for (const character of content) {
        const code = character.codePointAt(0);
        if (code < 128) octets.push(code);
        else if (code < 2048) octets.push(192 | (code >> 6), 128 | (code & 63));
        else if (code < 65536)
          octets.push(224 | (code >> 12), 128 | ((code >> 6) & 63), 128 | (code & 63));
        else
          octets.push(
            240 | (code >> 18),
            128 | ((code >> 12) & 63),
            128 | ((code >> 6) & 63),
            128 | (code & 63),
          );
      }
      return Uint8Array.from(octets);
    };
    const signals = new RealMap();
    let unanswered = 0;
    const AbortController = maker("AbortController", () => {
      const signal = strict("signal", {});
      const waiting = [];
      signals.set(signal, waiting);
      const abort = method("abort", () => {
        for (const reject of waiting) reject(new Error("aborted"));
        unanswered -= waiting.length;
      });
      return strict("controller", { signal, abort });
    });
    const answers = [...visitor.failures];
    const response = ({ status, headers = {}, body = "" }) =>
      strict("response", {
        status,
        headers: strict(
          "headers",
          methods("headers", {
            get(name) {
              if (name !== "Retry-After") violate(`the header ${name} is read`);
              return headers[name] ?? null;
            },
          }),
        ),
        ...methods("response", {
          json: async () => realJson.parse(body),
          text: async () => body,
          arrayBuffer: async () => encode(body).buffer,
        }),
        // `await` asks every value for this member.
        then: undefined,
      });
    const fetch = method("fetch", (url, options, ...rest) => {
      if (typeof url !== "string" || rest.length > 0) violate("fetch is called otherwise");
      const { signal, ...listed } = options;
      const waiting = signals.get(signal) ?? violate("fetch has another signal");
      const isPost = listed.method === "POST";
      note("fetch", url, listed, now);
      const words = /\/words\.([a-zA-Z-]+)\.json$/.exec(url);
      if (words)
        return Promise.resolve(
          response({ status: 200, body: visitor.texts[words[1]] ?? violate(`${url} is fetched`) }),
        );
      if (url.endsWith("/definition.json")) {
        const served = visitor.definition ?? { status: 200, body: visitor.canonical };
        return served.status === 0
          ? Promise.reject(new TypeError("no network"))
          : Promise.resolve(response(served));
      }
      if (url.includes("/pictures/"))
        return visitor.lacksPictures
          ? Promise.reject(new TypeError("no picture"))
          : Promise.resolve(response({ status: 200, body: "picture" }));
      if (isPost) for (const [key, value] of visitor.overtaken) stored.set(key, value);
      const answer = isPost ? (answers.shift() ?? { status: 201 }) : { status: 204 };
      if (answer.status === 0) return Promise.reject(new TypeError("no network"));
      if (answer.status === -1) {
        unanswered += 1;
        return new Promise((_, reject) => waiting.push(reject));
      }
      return Promise.resolve(response(answer));
    });

    // --- Elements -----------------------------------------------------------------------------

    let focused = null;
    const matches = (node, selector) => {
      if (/^[a-z]+[0-9]?$/.test(selector)) return node.tag === selector;
      const name =
        /^([.#])([a-z-]+)$/.exec(selector) ?? violate(`the selector ${selector} is used`);
      const listed =
        name[1] === "#"
          ? [node.attributes.get("id")]
          : (node.attributes.get("class") ?? "").split(" ");
      return listed.includes(name[2]);
    };
    const descendants = (node) =>
      node.children.flatMap((child) => (child.tag ? [child, ...descendants(child)] : []));
    const isWithin = (node, root) =>
      node === root || (node.parent !== null && isWithin(node.parent, root));
    const detach = (node) => {
      if (node.parent)
        node.parent.children = node.parent.children.filter((child) => child !== node);
      node.parent = null;
    };
    const adopt = (parent, child) => {
      if (typeof child === "string") return { text: child, parent, children: [], tag: "" };
      const node = nodeOf.get(child) ?? violate("something other than an element is appended");
      detach(node);
      node.parent = parent;
      return node;
    };
    const textOf = (node) => (node.tag ? node.children.map(textOf).join("") : node.text);

    const createNode = (tag, isSvg = false) => {
      if (!TAGS.has(tag)) violate(`an element ${tag} is created`);
      return nodeWith(tag, isSvg);
    };
    const inputEvents = new RealSet();
    const ELEMENT_EVENTS = ["click", "change", "input", "keydown", "keyup", "pointerup", "close"];
    const ELEMENT = realObject.getOwnPropertyDescriptors({
      setAttribute(name, value) {
        // A data URL loads nothing.
        const isPicture = this.tag === "img" && name === "src" && PICTURE.test(value);
        if (!ATTRIBUTES.has(name) && !isPicture) violate(`the attribute ${text(name)} is set`);
        // A link to another address could transmit an answer; a phone number cannot.
        if (name === "href" && !/^tel:\+?\d+$/.test(value)) violate(`a link leads to ${value}`);
        this.attributes.set(name, text(value));
        if (name === "value") this.value = text(value);
        // Browsers store entries under the names of inputs.
        if (name === "name" && !/^n[\w-]{16}$/.test(value))
          violate(`an input has the name ${value}`);
      },
      append(...added) {
        this.children = [...this.children, ...added.map((child) => adopt(this, child))];
      },
      replaceChildren(...added) {
        for (const child of this.children) child.parent = null;
        this.children = added.map((child) => adopt(this, child));
      },
      addEventListener(type, callback, ...rest) {
        // A listener for clicks may run before those of the elements inside.
        const isCapturing = type === "click" && rest.length === 1 && rest[0] === true;
        if (typeof callback !== "function" || (rest.length > 0 && !isCapturing))
          violate("addEventListener is called otherwise");
        if (!ELEMENT_EVENTS.includes(type))
          violate(`a listener for ${text(type)} is added to an element`);
        this.listeners.push({ type, callback, isCapturing });
      },
      remove() {
        detach(this);
      },
      after(next) {
        const added = adopt(this.parent, next);
        this.parent.children = this.parent.children.flatMap((child) =>
          child === this ? [child, added] : [child],
        );
      },
      closest(selector) {
        for (let at = this; at; at = at.parent) if (matches(at, selector)) return at.standIn;
        return null;
      },
      querySelector(selector) {
        return descendants(this).find((child) => matches(child, selector))?.standIn ?? null;
      },
      querySelectorAll(selector) {
        return descendants(this)
          .filter((child) => matches(child, selector))
          .map((child) => child.standIn);
      },
      dispatchEvent(event) {
        // The client may fire events of hidden inputs only; people cause all others.
        if (this.attributes.get("type") !== "hidden" || !inputEvents.has(event))
          violate("an event is dispatched");
        dispatch(this, "input");
        return true;
      },
      focus() {
        focused = this;
      },
      scrollIntoView() {},
      cloneNode() {
        return copy(this).standIn;
      },
      showModal() {
        this.isOpen = true;
      },
      close() {
        this.isOpen = false;
        dispatch(this, "close");
      },
      get children() {
        return this.children.filter((child) => child.tag).map((child) => child.standIn);
      },
      get isConnected() {
        return isWithin(this, body);
      },
      set textContent(value) {
        this.children = [{ text: text(value), parent: this, children: [], tag: "" }];
      },
      get id() {
        return this.attributes.get("id") ?? "";
      },
      get type() {
        return this.attributes.get("type") ?? "";
      },
      set id(value) {
        this.attributes.set("id", text(value));
      },
      get hidden() {
        return this.attributes.has("hidden");
      },
      set hidden(value) {
        if (value) this.attributes.set("hidden", "");
        else this.attributes.delete("hidden");
      },
      get classList() {
        const toggle = (name, on) => {
          const names = (this.attributes.get("class") ?? "")
            .split(" ")
            .filter((each) => each !== name);
          this.attributes.set("class", [...names, ...(on ? [name] : [])].join(" "));
        };
        return strict("classList", methods("classList", { toggle }));
      },
      get checked() {
        return this.checked;
      },
      set checked(value) {
        this.checked = value === true;
      },
      get value() {
        return this.value;
      },
      set value(value) {
        this.value = text(value);
      },
      get valueAsNumber() {
        return daysOf(this.value) * DAY;
      },
      set valueAsNumber(value) {
        this.value = isoOf(value / DAY);
      },
      get validity() {
        return strict("validity", { badInput: false });
      },
      set selected(value) {
        this.selected = value === true;
        if (value && this.parent) this.parent.value = this.value;
      },
      get open() {
        return this.isOpen;
      },
    });
    const nodeWith = (tag, isSvg) => {
      const node = {
        tag,
        isSvg,
        children: [],
        parent: null,
        attributes: new RealMap(),
        listeners: [],
        value: "",
        checked: false,
        selected: false,
        isOpen: false,
      };
      node.standIn = strictBy(
        tag,
        (key) => {
          if (key === "showModal" && visitor.dialog === false) return { value: undefined };
          const property = getOwnPropertyDescriptor(ELEMENT, key)?.value;
          if (typeof property?.value !== "function") return property;
          return {
            value: method(`${tag}.${key}`, (...values) => apply(property.value, node, values)),
          };
        },
        node,
      );
      nodeOf.set(node.standIn, node);
      return node;
    };
    const copy = (node) => {
      const twin = nodeWith(node.tag, node.isSvg);
      twin.children = node.children.map((child) => (child.tag ? copy(child) : { ...child }));
      for (const child of twin.children) child.parent = twin;
      twin.attributes = new RealMap(node.attributes);
      return twin;
    };
    const dispatch = (node, type) => {
      const listeners = node.listeners.filter((listener) => listener.type === type);
      const path = [];
      for (let at = node.parent; at; at = at.parent) path.unshift(at);
      let isStopped = false;
      const stopPropagation = () => {
        isStopped = true;
      };
      for (const { listeners: outer } of type === "click" ? path : []) {
        for (const { callback, isCapturing } of outer) {
          const calls = methods("event", { preventDefault: () => {}, stopPropagation });
          // `detail` is 1 because each press is a single tap.
          if (isCapturing) callback(strict("event", { detail: 1, ...calls }));
        }
      }
      const event = strict("event", { currentTarget: node.standIn });
      if (!isStopped) for (const { callback } of listeners) callback(event);
    };

    /** Days since 1970 of an ISO date and back, without a clock (Howard Hinnant's algorithms). */
    const daysOf = (iso) => {
      const parts = /^(\d{4})-(\d\d)-(\d\d)$/.exec(iso);
      if (!parts) return NaN;
      const [month, day] = [Number(parts[2]), Number(parts[3])];
      const year = Number(parts[1]) - (month <= 2 ? 1 : 0);
      const era = Math.floor(year / 400);
      const ofEra = year - era * 400;
      const ofYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
      return (
        era * 146097 +
        ofEra * 365 +
        Math.floor(ofEra / 4) -
        Math.floor(ofEra / 100) +
        ofYear -
        719468
      );
    };
    const isoOf = (days) => {
      const z = days + 719468;
      const era = Math.floor(z / 146097);
      const ofEra = z - era * 146097;
      const yearOfEra = Math.floor(
        (ofEra -
          Math.floor(ofEra / 1460) +
          Math.floor(ofEra / 36524) -
          Math.floor(ofEra / 146096)) /
          365,
      );
      const ofYear =
        ofEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
      const mp = Math.floor((5 * ofYear + 2) / 153);
      const month = mp < 10 ? mp + 3 : mp - 9;
      const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
      const two = (n) => text(n).padStart(2, "0");
      return `${text(year).padStart(4, "0")}-${two(month)}-${two(ofYear - Math.floor((153 * mp + 2) / 5) + 1)}`;
    };

    // --- Document, address, window ------------------------------------------------------------

    const body = nodeWith("body", false);
    const [tools, main, footer] = ["header", "main", "footer"].map((tag) => nodeWith(tag, false));
    const places = { tools, survey: main, version: footer };
    for (const [id, node] of realObject.entries(places)) {
      node.attributes.set("id", id);
      node.parent = body;
    }
    body.children = [tools, main, footer];
    const page = { title: "", lang: "", dir: "", theme: "" };
    const written = (name) => ({
      get: () => page[name],
      set(value) {
        page[name] = text(value);
        note(name, page[name]);
      },
      configurable: true,
    });
    const meta = (content) =>
      strict("meta", {
        ...methods("meta", {
          getAttribute: (name) =>
            name === "content" ? content : violate(`the attribute ${name} is read`),
        }),
      });
    const wordsOf = (language) =>
      meta(`${language} /words.${language}.json sha256-${language}`);
    const documentElement = strict(
      "html",
      realObject.defineProperties(
        {},
        {
          lang: written("lang"),
          dir: written("dir"),
          dataset: {
            value: strict(
              "html.dataset",
              realObject.defineProperties({}, { theme: { set: written("theme").set } }),
            ),
          },
        },
      ),
    );
    const documentScript = realObject.defineProperties(
      {
        ...methods("document", {
          getElementById: (id) => places[id]?.standIn ?? violate(`the element #${id} is read`),
          querySelectorAll: (selector) =>
            selector === 'meta[name="words"]'
              ? realObject.keys(visitor.texts).map(wordsOf)
              : violate(`the selector ${selector} is used`),
          querySelector(selector) {
            if (selector === 'meta[name="version"]') return meta("1.2.3");
            if (selector !== 'meta[name="collector"]') violate(`the selector ${selector} is used`);
            return visitor.collector === "" ? null : meta(visitor.collector);
          },
          createElement: (tag) => createNode(tag).standIn,
          createElementNS: (space, tag) =>
            space === SVG
              ? createNode(tag, true).standIn
              : violate(`the namespace ${space} is used`),
        }),
        documentElement,
        body: strict("body", {
          ...methods("body", {
            append: (child) => {
              body.children = [...body.children, adopt(body, child)];
            },
          }),
        }),
        get activeElement() {
          return (focused ?? body).standIn;
        },
      },
      { title: written("title") },
    );
    const document = strict("document", documentScript);

    let [pathname, hash] = [visitor.pathname, visitor.hash];
    let leaves = "";
    const location = strict("location", {
      origin: "https://survey.example",
      get pathname() {
        return pathname;
      },
      get hash() {
        return hash;
      },
      ...methods("location", {
        reload(...values) {
          note("reload", now, ...values);
          leaves = "reload";
        },
        replace(url) {
          note("leave", url);
          leaves = url;
        },
      }),
    });
    let [states, at] = [[null], 0];
    const history = strict("history", {
      get state() {
        return states[at];
      },
      get length() {
        return states.length;
      },
      ...methods("history", {
        replaceState(state, title, url) {
          note("address", state, title, url);
          states[at] = state;
          [pathname, hash] = [url.split("#")[0], url.includes("#") ? `#${url.split("#")[1]}` : ""];
        },
        // An entry in the history may contain only its number.
        pushState(state, title, ...rest) {
          if (state !== at + 1 || title !== "" || rest.length > 0)
            violate("history.pushState is called otherwise");
          states = [...states.slice(0, state), state];
          at = state;
        },
        go(by) {
          if (states[at + by] === undefined) violate(`history.go(${text(by)}) leaves the visit`);
          at += by;
          Promise.resolve().then(() => dispatchToWindow("popstate"));
        },
      }),
    });
    const locks = strict(
      "locks",
      methods("locks", {
        request(name, callback) {
          note("lock", name);
          for (const [key, value] of visitor.meanwhile) stored.set(key, value);
          return Promise.resolve().then(() => callback());
        },
      }),
    );
    const navigator = strict("navigator", {
      languages: realObject.freeze([...visitor.languages]),
      // On Android, the client never speaks.
      userAgent: "",
      locks: visitor.locks === false ? undefined : locks,
    });
    const windowListeners = [];
    const WINDOW_EVENTS = [
      "beforeunload",
      "hashchange",
      "keydown",
      "offline",
      "online",
      "pagehide",
      "pageshow",
      "pointerdown",
      "popstate",
      "scroll",
      "storage",
    ];
    const addEventListener = (type, callback, ...rest) => {
      if (!WINDOW_EVENTS.includes(type) || rest.length > 0)
        violate(`a listener for ${text(type)} is added to the window`);
      windowListeners.push({ type, callback });
    };
    const dispatchToWindow = (type, persisted = false) => {
      for (const { type: own, callback } of [...windowListeners])
        if (own === type) callback(strict("event", { persisted, key: "a", repeat: false }));
    };
    // Speaking is an event, so the audit detects a client that speaks unasked.
    const handler = { get: () => null, set: () => {} };
    const speech = realObject.defineProperty(
      methods("speechSynthesis", {
        getVoices: () => [
          strict("voice", { localService: false, lang: "es-ES" }),
          strict("voice", { localService: true, lang: "en_GB" }),
        ],
        speak: () => note("speak"),
        cancel: () => note("silence"),
      }),
      "onvoiceschanged",
      handler,
    );
    const window = strict("window", {
      speechSynthesis: visitor.speaks ? strict("speechSynthesis", speech) : undefined,
      SpeechSynthesisUtterance: undefined,
      ...methods("window", { addEventListener, scrollTo: () => {} }),
      crypto,
      fetch,
      setTimeout,
      clearTimeout,
      document,
      location,
      get localStorage() {
        if (visitor.storage === "absent") throw new Error("storage denied");
        return localStorage;
      },
    });

    // --- The realm's globals ------------------------------------------------------------------

    const formatter = (name, options, called) =>
      maker(`Intl.${name}`, (locale, given, ...rest) => {
        const [first] = typeof locale === "object" && locale !== null ? locale : [locale];
        if (typeof first !== "string" || rest.length > 0)
          violate(`Intl.${name} is made for the device's language`);
        const chosen = given === undefined ? {} : { ...given };
        for (const [key, value] of realObject.entries(options))
          if (chosen[key] !== value) violate(`Intl.${name} is made without ${key}`);
        const real = new realIntl[name](locale, given);
        return strict(
          name,
          methods(name, {
            [called]: (value) =>
              value === undefined
                ? violate(`${name}.${called} is called without a value`)
                : real[called](value),
          }),
        );
      });
    const scriptedGlobals = {
      window,
      document,
      location,
      history,
      navigator,
      crypto,
      fetch,
      setTimeout,
      clearTimeout,
      AbortController,
      Intl: strict("Intl", {
        NumberFormat: formatter("NumberFormat", {}, "formatToParts"),
        PluralRules: formatter("PluralRules", {}, "select"),
        DisplayNames: formatter("DisplayNames", { type: "language" }, "of"),
        DateTimeFormat: formatter(
          "DateTimeFormat",
          { timeZone: "UTC", calendar: "gregory" },
          "format",
        ),
        ...methods("Intl", {
          getCanonicalLocales: (locale) =>
            realIntl.getCanonicalLocales(
              locale ?? violate("Intl.getCanonicalLocales has no language"),
            ),
        }),
      }),
      Event: maker("Event", (type, ...rest) => {
        if (type !== "input" || rest.length > 0) violate(`an event ${text(type)} is made`);
        const event = strict("event", {});
        inputEvents.add(event);
        return event;
      }),
      TextEncoder: maker("TextEncoder", () => strict("encoder", methods("encoder", { encode }))),
      TextDecoder: maker("TextDecoder", (coding, options) => {
        if (coding !== "utf-8" || options?.fatal !== true)
          violate("TextDecoder reads another coding");
        const hex = (octet) => `%${octet < 16 ? "0" : ""}${octet.toString(16)}`;
        return strict(
          "decoder",
          methods("decoder", { decode: (bytes) => decode([...bytes].map(hex).join("")) }),
        );
      }),
      URLSearchParams: maker("URLSearchParams", (query) => {
        const pairs = query
          .split("&")
          .map((pair) => pair.split("=").map((part) => decode(part.replace(/\+/g, " "))));
        return strict(
          "parameters",
          methods("parameters", {
            get: (name) => pairs.find(([own]) => own === name)?.[1] ?? null,
          }),
        );
      }),
    };
    for (const [home, names] of VARYING) for (const name of names) delete home[name];
    Error.stackTraceLimit = 0;
    const kept = [];
    for (const name of ownKeys(realGlobal)) {
      if (LANGUAGE.has(name)) kept.push(realGlobal[name]);
      else delete realGlobal[name];
    }
    // Error's prototypes stay open, because errors of the client are given a name.
    for (const value of kept) {
      if (typeof value === "function" && value !== Error) realObject.freeze(value);
      if (typeof value === "function" && !(value.prototype instanceof Error) && value !== Error)
        realObject.freeze(value.prototype);
    }
    for (const value of [Math, realJson, (() => {}).constructor.prototype, listIterator])
      realObject.freeze(value);
    for (const [name, value] of realObject.entries(scriptedGlobals)) {
      if (!visitor.isBare || BARE.has(name)) defineProperty(realGlobal, name, { value });
    }
    const expectedGlobals = new RealSet(ownKeys(realGlobal));
    // Every other name of the global object ends here, even after `typeof`.
    const unscripted = (action) => (_, name) => violate(`the global ${text(name)} is ${action}`);
    realObject.setPrototypeOf(
      realGlobal,
      new RealProxy(realObject.create(null), {
        has: () => true,
        get: unscripted("read"),
        set: unscripted("written"),
      }),
    );

    // --- The respondent -----------------------------------------------------------------------

    const questions = new RealMap(
      definition.pages.flatMap((part, i) =>
        part.questions.map((question, j) => [
          question.id,
          {
            question,
            translated: realObject
              .values(definition.translations ?? {})
              .map((each) => each.pages[i].questions[j]),
          },
        ]),
      ),
    );
    const view = () => main.children[0];
    const viewName = () => (view()?.attributes.get("class") ?? "").replace("view ", "");
    const ownButtons = () => view().children.filter((child) => child.tag === "button");
    const press = (node) => dispatch(node, "click");
    const input = (row) => row.children.find((child) => child.tag === "input");

    /** Return the row of an option, found by its label in the language of the page. */
    const rowOf = (rows, id, option) => {
      const { question, translated } = questions.get(id);
      const labels = [
        question.options[option].label,
        ...translated.map(({ options }) => options[option]),
      ];
      return rows.find((row) => labels.includes(textOf(row)));
    };
    const typed = ({ low, step, decimals }, index) => {
      const units = BigInt(low) + BigInt(index) * BigInt(step);
      const digits = text(units < 0n ? -units : units).padStart(decimals + 1, "0");
      const at = digits.length - decimals;
      const fraction = digits.slice(at).replace(/0+$/, "");
      return `${units < 0n ? "-" : ""}${digits.slice(0, at)}${fraction ? `.${fraction}${fraction.length === 3 ? "0" : ""}` : ""}`;
    };
    /** Return a day as typed: on a coarse grid, only its month and year, or only its year. */
    const dateTyped = ({ low, step }, index) => {
      const day = isoOf(low + index * step);
      const [year, month] = day.split("-");
      if (step < KEPT.month) return day;
      return step < KEPT.year ? `${Number(month)}/${year}` : year;
    };
    const TYPED = { date: dateTyped, number: typed };
    const isSlider = (node) => node.attributes.get("type") === "range";
    /** Return a field's value without an answer: the middle for a slider, otherwise "". */
    const emptyValue = (node) =>
      isSlider(node) ? text(Math.floor(Number(node.attributes.get("max")) / 2)) : "";
    const fillIn = (group) => {
      const id = group.attributes.get("data-question");
      if (!(id in visitor.answers)) return;
      const answer = visitor.answers[id];
      const { question } = questions.get(id);
      const rows = descendants(group).filter((node) => node.tag === "label");
      const field = descendants(group).find(
        (node) => node.tag === "input" && /^(entry|range)/.test(node.attributes.get("class")),
      );
      const points = field ? question.grid.points : 0;
      if (question.type === "ranking" && Array.isArray(answer)) {
        const options = () => descendants(group).filter((node) => node.attributes.has("data-option"));
        for (const option of answer) {
          const button = options().find(
            (node) => node.attributes.get("data-option") === text(option),
          );
          // Placing the last but one option also places the last one.
          if (button) press(button);
        }
      } else if (Array.isArray(answer)) {
        for (const option of answer) {
          const box = input(rowOf(rows, id, option));
          box.checked = true;
          dispatch(box, "change");
        }
      } else if (answer < points) {
        if (isSlider(field)) field.value = text(answer);
        else field.value = TYPED[question.type](question.grid, answer);
        dispatch(field, "input");
      } else {
        const radio = input(rowOf(rows, id, answer - points));
        for (const row of rows) input(row).checked = false;
        radio.checked = true;
        dispatch(radio, "click");
        dispatch(radio, "change");
      }
    };

    const changeButtonsOf = (review) => {
      const isChange = (node) =>
        node.tag === "button" && (node.attributes.get("class") ?? "") === "link";
      const rows = descendants(review).filter((node) => node.attributes.has("data-question"));
      return rows.flatMap((row) => descendants(row).filter(isChange));
    };
    const interruptions = [...visitor.interruptions];
    let changeButtons = [];
    let presses = 0;
    let waits = 0;
    const refusals = [...visitor.afterRefusal];
    const afterSent = [...visitor.afterSent];

    /** Perform the respondent's next action; return its name, or "" at the end. */
    const act = () => {
      const name = viewName();
      if (leaves !== "") return "";
      if (unanswered > 0) return fireNext() ? "timeout" : "";
      if (visitor.idles && name === "questions") return fireNext() ? "idle" : "";
      if (visitor.exitAt && visitor.exitAt === name) {
        visitor.exitAt = "";
        press(
          descendants(tools)
            .filter((node) => node.tag === "button")
            .at(-1),
        );
        return "exit";
      }
      if (name === "review") changeButtons = changeButtonsOf(view());
      if (visitor.interruptedAt === name && interruptions.length > 0) {
        for (const type of interruptions.splice(0)) dispatchToWindow(type, true);
        return leaves === "" && name === viewName() ? "interruption" : "";
      }
      if (visitor.switchAt === name && visitor.switchTo) {
        const chooser = descendants(tools).find((node) => node.tag === "select");
        const language = visitor.switchTo;
        visitor.switchTo = "";
        if (chooser) {
          chooser.value = language;
          dispatch(chooser, "change");
          return "switch";
        }
      }
      if (name === "start") press(ownButtons()[0]);
      else if (name === "add-up") press(ownButtons()[0]);
      else if (name === "questions") {
        // A fieldset, or a row of a matrix.
        const groups = descendants(view()).filter((node) => node.attributes.has("data-question"));
        for (const group of groups) fillIn(group);
        press(ownButtons()[0]);
      } else if (name === "review") {
        if (presses > 0) return "";
        presses += 1;
        press(ownButtons()[0]);
      } else if (name === "sending") {
        if (!fireNext()) return "";
      } else if (name === "waiting") {
        waits += 1;
        const how = visitor.waiting[(waits - 1) % visitor.waiting.length];
        if (how === "online") dispatchToWindow("online");
        else if (how === "now") press(ownButtons()[0]);
        else if (!fireNext()) return "";
      } else if (name === "refused") {
        const how = refusals.shift();
        const kind = how === "again" ? "button" : "button second";
        const button = ownButtons().find((node) => node.attributes.get("class") === kind);
        if (how === undefined || button === undefined) return "";
        press(button);
      } else if (name === "sent" && afterSent.length > 0) {
        const how = afterSent.shift();
        const memory = () =>
          descendants(view()).find((node) =>
            (node.attributes.get("class") ?? "").includes("memory"),
          );
        if (how === "remove") press(ownButtons()[0]);
        else press(descendants(memory()).find((node) => node.tag === "button"));
      } else return "";
      return name;
    };

    /** Return the page as text, without the time at which the report was created. */
    const markup = (node) => {
      if (!node.tag) return node.text;
      const attributes = [...node.attributes]
        .map(([name, value]) => ` ${name}="${value}"`)
        .join("");
      return `<${node.tag}${attributes}>${node.children.map(markup).join("")}</${node.tag}>`;
    };

    let steps = 0;
    return {
      next: () => {
        steps += 1;
        if (steps === 1) dispatchToWindow("pageshow", false);
        return steps > STEPS ? "" : act();
      },
      isStuck: () => steps > STEPS,
      view: viewName,
      /** Press the "Change" buttons of the former review: they must not show any answer. */
      remembered: () => {
        const names = [];
        for (const button of changeButtons) {
          const before = view();
          try {
            press(button);
          } catch {
            // A question that depends on answers has no page after the answers are deleted.
            continue;
          }
          const now = view();
          const filled =
            now === before
              ? []
              : descendants(now).filter(
                  (node) =>
                    node.tag === "input" && (node.checked || node.value !== emptyValue(node)),
                );
          for (const node of filled) names.push(node.attributes.get("name"));
        }
        return names;
      },
      record: () =>
        realJson.stringify({
          events,
          violations,
          view: viewName(),
          page: [page, ...[tools, main, footer].map(markup)],
          stored: [...stored],
          address: `${pathname}${hash}`,
          leaves,
          unwiped: pools.filter((pool) => pool.some((word) => word !== 0)).length,
          globals: ownKeys(realGlobal)
            .filter((name) => !expectedGlobals.has(name))
            .map(text),
        }),
    };
  };
})();
