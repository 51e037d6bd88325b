/** The windows that were open after an earlier micro-batch, and what differs between two. */

import { h, fill, say } from "../parts/dom.js";
import { isolated } from "../parts/outside_text.js";
import { table } from "../parts/table.js";
import { momentToSecond, number, size, whole } from "../parts/words.js";

const LIMIT = 200;
/** Fields of a window that are times. */
const TIMES = new Set(["start", "end", "closes", "closes_idle"]);

/**
 * Return the view, closed at first: it asks for nothing until somebody opens it.
 * @param {string} id the stream
 * @param {import("../api.js").Api} api
 * @returns {HTMLElement}
 */
export function earlierStates(id, api) {
  const batch = h("select", null);
  const other = h("select", null);
  const key = h("input", { type: "search", "aria-label": "The whole key of windows", placeholder: "Key", autocomplete: "off", spellcheck: "false" });
  const refresh = h("button", { type: "button", onclick: () => listBatches() }, "Refresh");
  const note = h("p", { class: "muted", role: "status" });
  const place = h("div");
  const tools = h(
    "div",
    { class: "tools" },
    h("label", { class: "field inline" }, "After micro-batch", batch),
    h("label", { class: "field inline" }, "Compare with", other),
    h("div", { class: "search" }, key),
    refresh,
    note,
  );
  const element = h("details", { class: "as-table" }, h("summary", null, "Earlier states"), tools, place);
  let turn = 0;

  element.addEventListener("toggle", () => element.open && !batch.options.length && listBatches());
  for (const one of [batch, other, key]) one.addEventListener("change", () => look());

  async function listBatches() {
    const chosen = [batch.value, other.value];
    await saying("Reading …", async (mine) => {
      const { micro_batches: all } = await api.get(`streams/${id}/states`);
      if (mine !== turn) return;
      const options = () => all.toReversed().map((one) => h("option", { value: one.micro_batch }, `${whole(one.micro_batch)} (${momentToSecond(Date.parse(one.at))})`));
      fill(batch, options());
      fill(other, [h("option", { value: "" }, "none"), ...options()]);
      [batch, other].forEach((one, index) => {
        if ([...one.options].some(({ value }) => value === chosen[index])) one.value = chosen[index];
      });
      if (!all.length) say(note, "No micro-batch has been finished yet.");
      else await look();
    });
  }

  async function look() {
    if (!batch.value) return;
    await saying("Reading the state …", async (mine) => {
      const query = { key: key.value || undefined, limit: LIMIT };
      const path = `streams/${id}/states/${batch.value}`;
      if (!other.value) {
        const found = await api.get(path, query);
        if (mine === turn) drawWindows(found);
        return;
      }
      // From the earlier one to the later one, whichever was chosen first.
      const [from, to] = [Number(batch.value), Number(other.value)].sort((a, b) => a - b);
      const found = await api.get(`streams/${id}/states/${from}/diff`, { ...query, to });
      if (mine === turn) drawChanges(found);
    });
  }

  /** Do something of which the note tells; an older one that ends later changes nothing. */
  async function saying(text, work) {
    const mine = ++turn;
    say(note, text);
    element.setAttribute("aria-busy", "true");
    try {
      await work(mine);
    } catch (error) {
      if (mine !== turn) return;
      fill(place, []);
      say(note, error.message);
    } finally {
      if (mine === turn) element.removeAttribute("aria-busy");
    }
  }

  function drawWindows(found) {
    const rows = table("Windows of an earlier state", windowColumns(found.windows), nameOf);
    fill(place, found.windows.length ? rows.element : []);
    rows.show(found.windows);
    const all = `${found.complete ? "" : "more than "}${number(found.total, "window")}`;
    const cut = found.total > found.windows.length ? `, ${whole(found.windows.length)} listed: name a key` : "";
    say(note, `${all} open after micro-batch ${whole(found.micro_batch)}${cut}.`);
  }

  function drawChanges(found) {
    const rows = table("Differences of two states", changeColumns(found.changes), nameOf);
    fill(place, found.changes.length ? rows.element : []);
    rows.show(found.changes);
    const cut = found.total > found.changes.length ? `, ${whole(found.changes.length)} listed: name a key` : "";
    say(note, `${number(found.total, "window")} differ between micro-batches ${whole(found.from)} and ${whole(found.to)}${cut}.`);
  }

  return element;
}

function nameOf(row) {
  return JSON.stringify([row.buffer, row.key, row.side, row.start]);
}

/** The columns that name a window; one that no window has is left out. */
function placeColumns(rows) {
  const has = (name) => rows.some((row) => row[name] !== null && row[name] !== "");
  return [
    has("key") && { name: "Key", value: (row) => row.key ?? "", fill: (cell, row) => fill(cell, row.key === null ? "–" : isolated(row.key)) },
    has("buffer") && { name: "Buffer", value: (row) => row.buffer, fill: (cell, row) => say(cell, row.buffer) },
    has("side") && { name: "Side", value: (row) => row.side ?? "", fill: (cell, row) => say(cell, row.side ?? "–") },
    timeColumn("Start", "start"),
  ].filter(Boolean);
}

function timeColumn(name, field) {
  return {
    name,
    value: (row) => (row[field] ? Date.parse(row[field]) : null),
    fill: (cell, row) => fill(cell, row[field] ? h("time", { datetime: row[field] }, momentToSecond(Date.parse(row[field]))) : "–"),
  };
}

function countColumn(name, field, write) {
  return { name, style: "number", down: true, value: (row) => row[field], fill: (cell, row) => say(cell, row[field] === null ? "–" : write(row[field])) };
}

function windowColumns(rows) {
  return [...placeColumns(rows), timeColumn("End", "end"), countColumn("Messages", "messages", whole), countColumn("Bytes", "bytes", size), timeColumn("Closes", "closes")];
}

function changeColumns(rows) {
  return [
    ...placeColumns(rows),
    { name: "Change", value: (row) => row.change, fill: (cell, row) => say(cell, row.change) },
    { name: "Differences", fill: (cell, row) => say(cell, describeFields(row)) },
  ];
}

/** Of a window that is in one state only, its messages say enough. */
function describeFields(row) {
  const fields = Object.entries(row.fields).filter(([name]) => row.change === "changed" || name === "messages");
  return fields.map(describeField).join("; ");
}

function describeField([name, [before, after]]) {
  return `${name.replaceAll("_", " ")} ${valueWords(name, before)} → ${valueWords(name, after)}`;
}

function valueWords(name, value) {
  if (value === null) return "–";
  return TIMES.has(name) ? momentToSecond(Date.parse(value)) : whole(value);
}
