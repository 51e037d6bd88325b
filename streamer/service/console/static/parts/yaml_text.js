/** Where in a config's text the cursor is: read off its lines, so that half a text will do. */

const ITEM = "[]";
const KEY = /^([A-Za-z0-9_.\-/]+)\s*:(?=\s|$)/;

/**
 * What is being typed.
 * @typedef {object} Cursor
 * @property {(string)[]} path what leads to it: names of fields, and `[]` for an item of a list
 * @property {"key" | "value"} what whether a field's name is typed, or the value of `path`
 * @property {string[]} beside names of fields that are there already, beside this one
 * @property {number} from where the word that is typed begins
 * @property {number} to where it ends
 * @property {number} indent the column that it begins at
 * @property {boolean} flow whether it stands in braces
 */

/**
 * Return what is being typed at an offset; null where nothing can be proposed.
 * @param {string} text
 * @param {number} offset
 * @returns {Cursor | null}
 */
export function cursorAt(text, offset) {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  const before = text.slice(start, offset);
  const above = text.slice(0, start).split("\n").slice(0, -1);
  if (inBlock(above, before)) return null;
  const rest = /^[\w.\-/]*/.exec(text.slice(offset))[0];
  const line = lineOf(before);
  const word = /[\w.\-/]*$/.exec(before)[0];
  const place = { from: offset - word.length, to: offset + rest.length };
  const flow = inFlow(before.slice(line.indent));
  if (flow === null) return null;
  if (flow.levels.length) {
    const outer = lineOf(before.slice(0, line.indent + flow.starts));
    const { path } = parents(above, outer);
    const whole = outer.key === null ? path : [...path, outer.key];
    return { ...place, ...flowCursor(flow, whole), indent: line.indent, flow: true };
  }
  const { path, beside } = parents(above, line);
  const value = line.key !== null;
  if (!value && line.text !== word) return null;
  if (value && !/^\s+\S*$/.test(line.rest)) return null;
  if (/["'|>&*!#]/.test(value ? line.rest : line.text)) return null;
  const below = value ? [] : siblingsBelow(text.slice(start), line.indent);
  return {
    ...place,
    path: value ? [...path, line.key] : path,
    what: value ? "value" : "key",
    beside: [...beside, ...below],
    indent: line.indent,
    flow: false,
  };
}

/** A line: the columns of its dashes, where its text begins, and its key if it has one. */
function lineOf(line) {
  const dashes = [];
  let indent = /^ */.exec(line)[0].length;
  while (/^-( |$)/.test(line.slice(indent))) {
    dashes.push(indent);
    indent += 1 + /^ */.exec(line.slice(indent + 1))[0].length;
  }
  const text = line.slice(indent);
  const key = KEY.exec(text);
  return {
    dashes,
    indent,
    text,
    key: key?.[1] ?? null,
    rest: key ? text.slice(key[0].length) : "",
  };
}

/** Whether a line stands in a block of text, as mappings do (`mapping: |`). */
function inBlock(above, line) {
  let indent = line.trim() ? /^ */.exec(line)[0].length : Infinity;
  if (indent === Infinity) indent = line.length;
  for (let index = above.length - 1; index >= 0; index--) {
    const one = above[index];
    if (!one.trim()) continue;
    const { indent: key, dashes } = lineOf(one);
    const at = Math.min(key, ...dashes);
    if (at >= indent) continue;
    if (/(^|[\s:-])[|>][-+0-9]*\s*(#.*)?$/.test(one)) return true;
    indent = at;
    if (indent === 0) return false;
  }
  return false;
}

/** The path that leads to a line, and the fields beside it that stand above. */
function parents(above, line) {
  const path = [];
  let limit = line.indent;
  let ofItem = false;
  const into = (dashes) => {
    for (const dash of [...dashes].reverse()) {
      if (dash >= limit) continue;
      path.unshift(ITEM);
      limit = dash;
      ofItem = true;
    }
  };
  into(line.dashes);
  for (let index = above.length - 1; index >= 0 && (limit > 0 || ofItem); index--) {
    if (!above[index].trim() || /^\s*#/.test(above[index])) continue;
    const one = lineOf(above[index]);
    // The dashes of a list may stand right below the key that it is of.
    const parent = one.indent < limit || (ofItem && one.indent === limit && !one.dashes.length);
    if (one.key !== null && parent) {
      path.unshift(one.key);
      limit = one.indent;
      ofItem = false;
    }
    into(one.dashes);
  }
  return { path, beside: line.dashes.length ? [] : siblingsAbove(above, line.indent) };
}

function siblingsAbove(above, indent) {
  const found = [];
  for (let index = above.length - 1; index >= 0; index--) {
    if (!above[index].trim()) continue;
    const one = lineOf(above[index]);
    if (one.indent < indent) break;
    if (one.indent === indent && one.key !== null) found.push(one.key);
    if (one.dashes.some((dash) => dash < indent)) break;
  }
  return found;
}

function siblingsBelow(text, indent) {
  const found = [];
  for (const line of text.split("\n").slice(1)) {
    if (!line.trim()) continue;
    const one = lineOf(line);
    if (Math.min(one.indent, ...one.dashes) < indent) break;
    if (one.indent === indent && !one.dashes.length && one.key !== null) found.push(one.key);
  }
  return found;
}

/** The brackets that are open at the end of a line's text; null in quotes or a comment. */
function inFlow(text) {
  const levels = [];
  let starts = 0;
  let word = "";
  let quote = "";
  for (let index = 0; index < text.length; index++) {
    const one = text[index];
    const level = levels.at(-1);
    if (quote) {
      if (one === "\\" && quote === '"') index++;
      else if (one === quote) quote = "";
      continue;
    }
    if ((one === '"' || one === "'") && !word.trim()) quote = one;
    else if (one === "#" && (index === 0 || text[index - 1] === " ")) return null;
    else if ((one === "{" || one === "[") && !word.trim()) {
      if (!levels.length) starts = index;
      levels.push({ list: one === "[", key: null, beside: [] });
      word = "";
    } else if (one === "}" || one === "]") {
      levels.pop();
      word = "";
    } else if (one === "," && level) {
      level.key = null;
      word = "";
    } else if (one === ":" && /\s|$/.test(text[index + 1] ?? " ")) {
      if (level && !level.list && level.key === null) {
        level.key = word.trim();
        level.beside.push(level.key);
      }
      word = "";
    } else word += one;
  }
  return quote ? null : { levels, starts, word: word.trimStart() };
}

function flowCursor({ levels, word }, outer) {
  const path = [...outer];
  for (const level of levels.slice(0, -1)) path.push(level.list ? ITEM : level.key);
  const last = levels.at(-1);
  if (last.list) return { path: [...path, ITEM], what: "value", beside: [] };
  if (last.key !== null) return { path: [...path, last.key], what: "value", beside: [] };
  return { path, what: "key", beside: last.beside, word };
}
