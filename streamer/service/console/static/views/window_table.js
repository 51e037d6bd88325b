/** A stream's windows as a table: searched by key, and looked into. */

import { h, fill, say } from "../parts/dom.js";
import { isolated } from "../parts/outside_text.js";
import { table } from "../parts/table.js";
import { stateWords } from "../parts/window_bars.js";
import { clock, number, size, whole } from "../parts/words.js";
import { showContent } from "./window_content.js";

const LIMIT = 200;
/** Milliseconds that no time is beyond. */
const LATER = 1e15;
const ORDERS = [
  ["age", "oldest"],
  ["size", "largest"],
  ["close", "closing next"],
];

/**
 * Return the table, closed at first.
 * @param {string} id the stream
 * @param {import("../api.js").Api} api
 * @param {() => void} again looks at once
 * @returns {{element: HTMLElement, query: () => object, show: (rows: any[], listed: object) => void}}
 *   `query` is what the windows are asked by, `show` takes them
 */
export function windowTable(id, api, again) {
  const search = h("input", { type: "search", "aria-label": "Search keys", placeholder: "Search keys", autocomplete: "off", spellcheck: "false" });
  const order = h("select", null, ORDERS.map(([value, word]) => h("option", { value }, word)));
  const keys = h("input", { type: "checkbox" });
  const perKey = h("label", { class: "check" }, keys, "Each key");
  const note = h("p", { class: "muted", role: "status" });
  const searchField = h("div", { class: "search" }, search);
  const tools = h("div", { class: "tools" }, searchField, h("label", { class: "field inline" }, "Listed first", order), perKey, note);
  const place = h("div");
  const element = h("details", { class: "as-table" }, h("summary", null, "The windows as a table"), tools, place);
  let rows = null;
  let keyed = null;
  let newest = [];
  let shownOnce = false;

  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(again, 250);
  });
  order.addEventListener("change", again);
  keys.addEventListener("change", again);
  element.addEventListener("toggle", () => element.open && rows?.show(newest));

  function query() {
    const open = element.open;
    return {
      by: open ? order.value : "age",
      limit: LIMIT,
      key: (open && search.value) || undefined,
      keys: open && keys.checked && !perKey.hidden ? "true" : undefined,
    };
  }

  function show(all, listed) {
    const text = element.open ? search.value : "";
    newest = all.filter((one) => one.state === "open" || !text || (one.key ?? "").includes(text));
    if (keyed !== listed.keyed) {
      keyed = listed.keyed;
      rows = table("Windows", columnsOf(id, api, keyed), (row) => row.name);
      fill(place, rows.element);
    }
    searchField.hidden = !keyed;
    perKey.hidden = !keyed || !listed.windows.some((one) => one.key === null) === !keys.checked;
    // Windows without bounds are on no line of time.
    if (!shownOnce && listed.windows.length && listed.windows.every((one) => one.end === null)) element.open = true;
    shownOnce = true;
    say(note, told(listed, text));
    if (element.open) rows.show(newest);
  }

  return { element, query, show };
}

function told(listed, text) {
  const shown = listed.windows.length;
  const words = [];
  if (text && !listed.matches && listed.complete) words.push("No open window has such a key.");
  if (listed.matches > shown) words.push(`${number(shown, "open window")} of ${whole(listed.matches)} listed.`);
  if (!listed.complete) words.push(listed.answered_at ? "Not all keys were searched; a whole key is always found." : "Searching …");
  return words.join(" ");
}

function columnsOf(id, api, keyed) {
  // Those that are open come first.
  const rank = (row) => (row.state === "open" ? 0 : 1);
  const time = (name) => ({
    value: (row) => (row[name] ? rank(row) * LATER + Date.parse(row[name]) : null),
    fill: (cell, row) => put(cell, row[name], () => h("time", { datetime: row[name] }, clock(Date.parse(row[name])))),
  });
  const key = {
    name: "Key",
    value: (row) => `${rank(row)} ${row.key ?? ""}`,
    fill: (cell, row) => put(cell, [row.key, row.side], () => keyWords(row)),
  };
  return [
    ...(keyed ? [key] : []),
    { name: "Start", ...time("start") },
    { name: "End", ...time("end") },
    {
      name: "Messages",
      style: "number",
      down: true,
      value: (row) => row.messages,
      fill: (cell, row) => say(cell, row.messages === null ? "–" : whole(row.messages)),
    },
    {
      name: "Bytes",
      style: "number",
      down: true,
      value: (row) => row.bytes ?? null,
      fill: (cell, row) => {
        const unknown = row.bytes === null || row.bytes === undefined;
        cell.title = unknown ? "Not counted for each window" : "";
        say(cell, unknown ? "–" : size(row.bytes));
      },
    },
    { name: "State", value: (row) => (row.closes ? Date.parse(row.closes) : null), fill: (cell, row) => say(cell, stateWords(row)) },
    { name: "Content", fill: (cell, row) => put(cell, row.state, () => row.state === "open" && !row.side && lookButton(id, api, row)) },
  ];
}

function keyWords(row) {
  if (row.key === null || row.key === undefined) return row.side ?? "–";
  return [isolated(row.key), row.side && h("span", { class: "muted" }, ` ${row.side}`)];
}

function lookButton(id, api, row) {
  const name = row.key ?? "this window";
  return h("button", { type: "button", class: "quiet", "aria-label": `Show the content of ${name}`, onclick: () => showContent(id, api, row) }, "Show");
}

/** Fill a cell when its value has changed: a button in it keeps the focus. */
function put(cell, value, make) {
  const text = JSON.stringify(value ?? null);
  if (cell.dataset.value === text) return;
  cell.dataset.value = text;
  const made = value === null || value === undefined ? "–" : make();
  cell.replaceChildren(...[made].flat(Infinity).filter((one) => one !== false && one !== null && one !== undefined));
}
