/** Results of windows, and answers to SQL, as tables. */

import { h, fill } from "./dom.js";
import { growing } from "./growing.js";
import { beginning, saveButton, visible } from "./outside_text.js";

const CUT = 2000; // Characters of a cell of SQL that are shown.

/**
 * Return a table of results whose rows stay what they are from one look to the next.
 * @returns {{show: (into: Element, results: object[], wholeOf: (index: number) => Promise<string>,
 *   ...more: any[]) => void}}
 */
export function resultTable() {
  let known = new Map();

  function show(into, results, wholeOf, ...more) {
    const body = h("tbody");
    const drawn = new Map();
    const line = (one, index) => {
      const name = JSON.stringify(one);
      const element = known.get(name) ?? row(one, () => wholeOf(index));
      drawn.set(name, element);
      return element;
    };
    const end = growing(body, results, line);
    known = drawn;
    fill(into, room(["Key", "Window", "Revision", "Result"], body, "list results"), end, ...more);
  }

  return { show };
}

/** Draw the answer to a statement. @param {Element} into @param {{columns: string[], rows: any[][]}} answer */
export function showSqlRows(into, { columns, rows }) {
  const body = h("tbody");
  const cell = (value) => {
    const text = value === null ? "" : textOf(value);
    return h("td", { class: "mono" }, text.length > CUT ? beginning(text.slice(0, CUT), text.length) : visible(text));
  };
  const end = growing(body, rows, (one) => h("tr", null, one.map(cell)));
  fill(into, room(columns, body, "list sql-rows"), end);
}

function room(heads, body, style) {
  const cells = heads.map((one) => h("th", { scope: "col" }, one));
  const table = h("table", { class: style }, h("thead", null, h("tr", null, cells)), body);
  return h("div", { class: "table-room", tabindex: "0", role: "region", "aria-label": "Table of results" }, table);
}

function row({ key, start, end, revision, emit, content, content_base64: bytes, metadata, error, cut = {} }, wholeOf) {
  const named = key !== null && key !== undefined;
  return h(
    "tr",
    null,
    h("td", { class: "mono key", "data-head": "Key" }, named ? beginning(textOf(key), cut.key) : "—"),
    h(
      "td",
      { class: "mono window", "data-head": "Window" },
      h("span", null, start),
      " ",
      h("span", { class: "muted" }, end),
    ),
    h(
      "td",
      { "data-head": "Revision" },
      h("span", null, revision, emit && h("span", { class: "muted" }, ` ${emit}`)),
    ),
    h(
      "td",
      { class: "result" },
      h("pre", { class: "result-text" }, beginning(textOf(content ?? bytes ?? null), cut.content)),
      metadata &&
        Object.keys(metadata).length > 0 &&
        h(
          "details",
          null,
          h("summary", null, "Metadata"),
          h("pre", { class: "result-text" }, beginning(textOf(metadata), cut.metadata)),
        ),
      error && h("p", { class: "wrong" }, beginning(error, cut.error)),
      Object.keys(cut).length > 0 && saveButton("Save the whole", "result.json", wholeOf),
    ),
  );
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}
