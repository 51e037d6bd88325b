/** The form that says which results are wanted: by key and time, or in SQL. */

import { h } from "./dom.js";

const LIMITS = [50, 200, 1000];
const TIMES = [
  ["", "Any time"],
  ["15m", "Last 15 minutes"],
  ["1h", "Last hour"],
  ["24h", "Last 24 hours"],
  ["between", "Between…"],
];
const SPANS = { "15m": 900_000, "1h": 3_600_000, "24h": 86_400_000 };
const SQL = "SELECT key, window_start, window_end, content\nFROM results\nORDER BY window_end DESC\nLIMIT 50";
const NAMES = ["key", "time", "from", "to", "order", "limit", "revisions", "sql"];

/**
 * Return the form.
 * @param {Record<string, string>} given what it begins with, as `state` returns it
 * @param {() => void} submitted is called when results are asked for
 * @returns {{element: HTMLElement, query: () => Record<string, string>, state: () => object,
 *   anyTime: () => void, go: HTMLButtonElement}}
 */
export function resultQuery(given, submitted) {
  const field = textField("all keys", given.key);
  const time = select(TIMES, given.time);
  const from = timeField("2026-11-21T00:00:00Z", given.from, "Pick the start");
  const to = timeField("2026-11-22T00:00:00Z", given.to, "Pick the end");
  const order = select([["newest", "Newest first"], ["oldest", "Oldest first"]], given.order);
  const limit = select(LIMITS.map((one) => [String(one), one]), given.limit);
  const all = h("input", { type: "checkbox", checked: given.revisions === "all" });
  const sql = h("textarea", {
    class: "mono",
    rows: 4,
    spellcheck: "false",
    "aria-label": "SQL",
    "aria-describedby": "sql-help",
  });
  sql.value = given.sql || SQL;
  const mode = select([["", "Key and time"], ["sql", "SQL"]], given.sql ? "sql" : "");
  const go = h("button", { type: "submit", class: "main" }, "Find");
  const simple = h(
    "div",
    { class: "query-fields key-and-time" },
    labelled("Key", field),
    labelled("Time of windows", time),
    h("div", { class: "field" }, labelled("Starts at or after", from.text), from.picker),
    h("div", { class: "field" }, labelled("Ends at or before", to.text), to.picker),
    labelled("Order", order),
  );
  const statement = h(
    "div",
    { class: "sql-box" },
    sql,
    h(
      "p",
      { class: "muted", id: "sql-help" },
      "One SELECT of DuckDB over the table results: key, window_start, window_end, emitted_at, emit, revision, " +
        "content, metadata, error. Ctrl+Enter runs it. ",
      h("a", { href: "#/docs/results/sql" }, "Columns and bounds"),
    ),
  );
  const element = h(
    "form",
    { class: "card card-body query" },
    h("div", { class: "query-fields" }, labelled("Search by", mode), simple),
    statement,
    h(
      "div",
      { class: "query-fields" },
      labelled("Rows per page", limit),
      h("label", { class: "choice" }, all, h("span", null, "All revisions")),
      h("div", { class: "buttons" }, go),
    ),
  );

  function draw() {
    simple.hidden = mode.value === "sql";
    statement.hidden = !simple.hidden;
    for (const one of [from, to]) one.text.closest("div").hidden = time.value !== "between";
  }

  function state() {
    const between = time.value === "between";
    const found = {
      key: field.value,
      time: time.value,
      from: between ? from.text.value.trim() : "",
      to: between ? to.text.value.trim() : "",
      order: order.value === "newest" ? "" : order.value,
      limit: limit.value === String(LIMITS[0]) ? "" : limit.value,
      revisions: all.checked ? "all" : "",
      sql: "",
    };
    if (mode.value === "sql") {
      for (const name of ["key", "time", "from", "to", "order"]) found[name] = "";
      found.sql = sql.value;
    }
    return Object.fromEntries(NAMES.filter((name) => found[name]).map((name) => [name, found[name]]));
  }

  /** What the API is asked with. */
  function query() {
    const { time: span, ...asked } = state();
    if (SPANS[span]) asked.from = new Date(Date.now() - SPANS[span]).toISOString();
    if (!asked.sql) asked.order = order.value;
    return { ...asked, limit: limit.value };
  }

  function anyTime() {
    time.value = "";
    draw();
  }

  for (const one of [mode, time]) one.addEventListener("change", draw);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    submitted();
  });
  sql.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    submitted();
  });
  draw();
  return { element, query, state, anyTime, go };
}

function labelled(text, control) {
  return h("label", { class: "field" }, text, control);
}

function textField(placeholder, value = "") {
  const field = h("input", { type: "text", class: "mono", autocomplete: "off", spellcheck: "false", placeholder });
  field.value = value;
  return field;
}

/** A time as text, and a picker that fills it in. */
function timeField(placeholder, value, label) {
  const text = textField(placeholder, value);
  const picker = h("input", { type: "datetime-local", step: "1", "aria-label": label });
  picker.addEventListener("change", () => {
    const at = new Date(picker.value);
    if (!Number.isNaN(at.getTime())) text.value = at.toISOString().replace(".000Z", "Z");
  });
  return { text, picker };
}

function select(options, value) {
  const element = h(
    "select",
    null,
    options.map(([name, text]) => h("option", { value: name }, text)),
  );
  if (options.some(([name]) => name === value)) element.value = value;
  return element;
}
