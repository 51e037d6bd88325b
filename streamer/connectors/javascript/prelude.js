// What a program of the processor `javascript` has beside ECMAScript: `benthos`, `console`,
// `require`. It reaches nothing outside. Where a program needs something of the host, its run ends
// with a request; the host runs it again with the answer.
(() => {
  "use strict";
  // A program may replace what it finds; what stands here is kept for this file.
  const { parse, stringify } = JSON;
  const { defineProperty, entries, freeze, hasOwn } = Object;
  const MAX_LINES = 100;
  const FIRST_LINE = 1000;
  const stop = { toString: () => "waiting for the host" };
  const sources = new Map();
  const modules = new Map();
  let state = null;

  const begin = (text, meta) => {
    state = {
      text, meta: parse(meta), metaNames: [], kind: "", value: undefined,
      request: null, used: 0, lines: [], dropped: 0,
    };
  };
  let answers = [];

  const ask = (request) => {
    state.request = request;
    throw stop;
  };

  const check = (count, given) => {
    if (given.length > count) {
      throw `have ${given.length} arguments, but only ${count} pointers to parse into`;
    }
    for (let i = 0; i < given.length; i++) {
      if (given[i] === undefined) throw `argument at position ${i} is undefined`;
    }
  };
  const copy = (value) => {
    const text = stringify(value);
    return text === undefined ? null : parse(text);
  };

  const functions = {
    v0_fetch(...given) {
      check(4, given);
      const [url = "", headers = {}, method = "GET", body = ""] = given;
      const texts = {};
      for (const [name, value] of entries(headers || {})) {
        texts[name] = typeof value === "string" ? value : "";
      }
      if (state.used === answers.length) ask({
        fetch: { url: String(url), headers: texts, method: String(method), body: String(body) },
      });
      const answer = answers[state.used++];
      if (answer.error !== undefined) throw answer.error;
      return { status: answer.status, body: answer.body };
    },
    v0_msg_as_string() {
      if (state.kind === "structured") return stringify(state.value);
      return state.kind === "string" ? state.value : state.text;
    },
    v0_msg_set_string(...given) {
      check(1, given);
      state.kind = "string";
      state.value = given.length ? String(given[0]) : "";
    },
    v0_msg_as_structured() {
      if (state.kind === "structured") return copy(state.value);
      try {
        return parse(state.kind === "string" ? state.value : state.text);
      } catch (error) {
        throw error.message;
      }
    },
    v0_msg_set_structured(...given) {
      check(1, given);
      state.kind = "structured";
      state.value = copy(given[0]);
    },
    v0_msg_exists_meta(...given) {
      check(1, given);
      return hasOwn(state.meta, String(given[0] ?? ""));
    },
    v0_msg_get_meta(...given) {
      check(1, given);
      const name = String(given[0] ?? "");
      if (!hasOwn(state.meta, name)) throw "key not found";
      return copy(state.meta[name]);
    },
    v0_msg_set_meta(...given) {
      check(2, given);
      const name = String(given[0] ?? "");
      defineProperty(state.meta, name, {
        value: copy(given[1]), enumerable: true, writable: true, configurable: true,
      });
      if (!state.metaNames.includes(name)) state.metaNames.push(name);
    },
  };

  const show = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return String(value);
    const text = typeof value === "object" ? stringify(value) : undefined;
    return text === undefined ? String(value) : text;
  };
  const logger = (level) => (...given) => {
    if (state === null) return;
    if (state.lines.length >= MAX_LINES) state.dropped++;
    else state.lines.push([level, given.map(show).join(" ")]);
  };
  const console = {
    log: logger("INFO"), info: logger("INFO"), debug: logger("INFO"),
    warn: logger("WARN"), error: logger("ERROR"),
  };

  // The program's own lines come after those of this file.
  const findPlace = (error) => {
    for (const [, line, column] of String(error.stack).matchAll(/<input>:(\d+):(\d+)/g)) {
      if (line > FIRST_LINE) return ` (line ${line - FIRST_LINE}, column ${column})`;
    }
    return "";
  };

  const requireFrom = (directory) => (name) => {
    if (name === "console") return console;
    const key = `${directory}\n${name}`;
    const source = sources.get(key);
    if (source === undefined) ask({ module: { key, directory, name: String(name) } });
    if (source.error !== undefined) throw new Error(source.error);
    const known = modules.get(source.path);
    if (known !== undefined) return known.exports;
    const module = { exports: {}, id: source.path };
    modules.set(source.path, module);
    try {
      if (source.path.endsWith(".json")) module.exports = parse(source.text);
      else {
        const body = new Function(
          "exports", "require", "module", "__filename", "__dirname", source.text);
        const inner = requireFrom(source.directory);
        body.call(module.exports, module.exports, inner, module, source.path, source.directory);
      }
    } catch (error) {
      modules.delete(source.path);
      throw error;
    }
    return module.exports;
  };

  for (const [name, value] of entries({ console, benthos: freeze(functions) })) {
    defineProperty(globalThis, name, { value, enumerable: false, configurable: false });
  }

  return {
    compile: (code, directory) => {
      // By itself: what stands around it must not complete it.
      new Function(code);
      defineProperty(globalThis, "require", { value: requireFrom(directory) });
    },
    addModule: (key, source) => {
      sources.set(key, parse(source));
    },
    run: (program, text, metaText, given) => {
      begin(text, metaText);
      answers = parse(given);
      let error = null;
      try {
        program.call(globalThis);
      } catch (thrown) {
        if (thrown instanceof Error) {
          error = `${thrown.name}: ${thrown.message}${findPlace(thrown)}`;
        } else {
          // It is what the engine throws when no memory is left.
          error = thrown === null ? "out of memory" : show(thrown);
        }
      }
      const { kind, value, request, lines, dropped, meta, metaNames } = state;
      const changed = [];
      for (const name of metaNames) changed.push([name, meta[name]]);
      state = null;
      answers = [];
      return stringify({
        error, request, kind, lines, dropped, meta: changed,
        text: kind === "string" ? value : "",
        document: kind === "structured" ? stringify(value) : "",
      });
    },
  };
})();
