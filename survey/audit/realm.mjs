// Realms without Node's globals, in which the client's modules run.
import vm from "node:vm";

/** Options that prevent code from being made from strings. */
const OPTIONS = { codeGeneration: { strings: false, wasm: false } };

/** Compiled modules by name, so that other realms need not compile them again. */
const compiled = new Map();

/**
 * What a realm's globals are: ordinary ones, which code reads twenty times as fast as those that
 * Node copies from another object. Node before 22.8 has only the latter.
 */
const GLOBALS = vm.constants?.DONT_CONTEXTIFY;

/** Return a realm that contains only the JavaScript language. */
export const createRealm = () => vm.createContext(GLOBALS ?? Object.create(null), OPTIONS);

/**
 * Return a function that loads a module, with its imports, into a realm.
 *
 * @param context  from `createRealm`
 * @param sources  a Map from the name of each module to its source
 */
export function loaderFor(context, sources) {
  const modules = new Map();
  const moduleOf = (specifier) => {
    const name = specifier.replace(/^\.\//, "");
    if (!sources.has(name)) throw new Error(`there is no module ${specifier}`);
    if (!modules.has(name)) {
      const cachedData = compiled.get(name);
      const module = new vm.SourceTextModule(sources.get(name), {
        identifier: name,
        context,
        cachedData,
      });
      if (!cachedData) compiled.set(name, module.createCachedData());
      modules.set(name, module);
    }
    return modules.get(name);
  };
  return async (name) => {
    const module = moduleOf(name);
    if (module.status === "unlinked") await module.link(moduleOf);
    await module.evaluate();
    return module.namespace;
  };
}
