/** The list of streams: how they are, and how fast they are. */

import { keepInAddress } from "../parts/address.js";
import { bulkActions } from "../parts/bulk.js";
import { h, fill, say } from "../parts/dom.js";
import { poll } from "../parts/poll.js";
import { sparkline } from "../parts/sparkline.js";
import { asOfText, conditionCounts, conditionMark, conditionOptions, conditionReason, urgency } from "../parts/condition.js";
import { actions } from "../parts/state.js";
import { labelText, showLabels } from "../parts/stream_labels.js";
import { table } from "../parts/table.js";
import { lasting, number, rate, short, whole } from "../parts/words.js";
import { routes } from "../routes.js";

const INTERVAL = 2_000;

/** Looks from one that asks for the lines too to the next: these change by a slot of five seconds. */
const LINES_EACH = 3;

/**
 * @param {HTMLElement} root
 * @param {{params: {q?: string, state?: string}, api: import("../api.js").Api, onLeave: (stop: () => void) => void}} context
 */
export async function show(root, { params, api, onLeave }) {
  const summary = h("p", { class: "muted", "aria-live": "off" });
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter streams" });
  const state = h(
    "select",
    { "aria-label": "State" },
    h("option", { value: "" }, "All states"),
    conditionOptions(),
  );
  filter.value = params.q ?? "";
  state.value = params.state ?? "";
  const bulk = bulkActions(api, () => again());
  const create = routes.some((one) => one.view === "editor");
  const link = create && h("a", { class: "button main", href: "#/new" }, "New stream");
  const list = table("Streams", columns(api, () => again(), bulk.box), (row) => row.id);
  const card = h("section", { class: "card", "aria-label": "All streams" }, list.element);
  const nothing = h("p", { class: "card-body muted", hidden: true }, "No stream fits the filter.");
  card.append(nothing);
  const head = h("div", { class: "head" }, h("h1", null, "Streams"), summary);
  const tools = h("div", { class: "tools" }, filter, state, link);
  let rows = [];
  let looks = 0;
  let lines = {};

  function draw() {
    const text = filter.value.trim().toLowerCase();
    const fits = rows.filter(
      (row) =>
        (!state.value || row.condition.name === state.value) &&
        (!text || `${row.id} ${row.condition.text} ${conditionReason(row)} ${row.source} ${labelText(row.labels)}`.toLowerCase().includes(text)),
    );
    list.show(fits);
    bulk.show(fits);
    nothing.hidden = fits.length > 0;
  }

  async function look() {
    const drawn = looks++ % LINES_EACH === 0;
    const found = await api.get("streams", drawn ? { history: "5m" } : {});
    if (drawn) lines = Object.fromEntries(Object.entries(found).map(([id, one]) => [id, one.history?.figures]));
    rows = Object.entries(found).map(([id, status]) => ({ id, ...status, lines: lines[id] ?? {} }));
    if (rows.length && !card.isConnected) fill(root, head, tools, bulk.element, card);
    if (!rows.length) fill(root, head, empty(create));
    say(summary, rows.length ? summed(rows) : "");
    if (rows.length) draw();
  }

  const narrow = () => {
    keepInAddress({ q: filter.value, state: state.value });
    draw();
  };
  filter.addEventListener("input", narrow);
  state.addEventListener("change", narrow);
  const again = await poll(look, INTERVAL, onLeave);
}

function summed(rows) {
  const known = rows.filter((row) => typeof row.in_rate === "number");
  const messages = known.length ? known.reduce((sum, row) => sum + row.in_rate, 0) : null;
  return `${number(rows.length, "stream")}: ${conditionCounts(rows)}; ${rate(messages)} in`;
}

function columns(api, again, box) {
  return [
    { name: "Stream", value: (row) => row.id, fill: (cell, row) => named(cell, row, box), style: "stream-name" },
    {
      name: "State",
      value: urgency,
      fill(cell, row) {
        const reason = conditionReason(row);
        const said = `${row.condition.name} ${reason} ${row.restarts} ${Boolean(row.refusal)}`;
        if (cell.dataset.said !== said) {
          cell.dataset.said = said;
          const more = row.restarts ? h("span", { class: "muted" }, number(row.restarts, "restart")) : null;
          fill(cell, conditionMark(row), " ", more, reason && h("p", { class: "reason" }, reason));
        }
        const told = `${row.condition.text}${reason ? `: ${reason}` : ""}`;
        if (cell.title !== told) cell.title = told;
      },
    },
    {
      name: "Messages",
      value: (row) => row.in_rate ?? null,
      fill: throughput,
      style: "throughput",
      down: true,
    },
    {
      name: "Errors",
      value: (row) => row.errors,
      fill: (cell, row) => {
        say(cell, short(row.errors));
        cell.classList.toggle("bad", row.errors > 0);
      },
      style: "number",
      down: true,
    },
    { name: "Lag", value: (row) => row.event_time_lag, fill: lag, style: "number", down: true },
    {
      name: "Windows",
      value: (row) => row.open_windows,
      fill: (cell, row) => {
        say(cell, row.open_windows ? whole(row.open_windows) : "–");
        cell.classList.toggle("muted", Boolean(row.as_of));
        cell.title = asOfText(row);
      },
      style: "number",
      down: true,
    },
    {
      name: "Actions",
      style: "actions",
      fill(cell, row) {
        cell.row = row;
        if (!cell.buttons) {
          cell.buttons = actions(row.id, () => cell.row, api, again);
          cell.append(cell.buttons.element);
        }
        cell.buttons.show();
      },
    },
  ];
}

function named(cell, row, box) {
  // A file that is refused has no stream to be paused.
  if (!cell.firstChild && row.state !== "refused") cell.append(box(row));
  cell.source ??= h("p", { class: "muted source" });
  cell.labels ??= h("span", { class: "stream-labels" });
  if (!cell.source.isConnected && !cell.querySelector("a")) {
    cell.append(h("a", { href: `#/streams/${row.id}` }, row.id), cell.source, cell.labels);
  }
  const words = row.source === "api" ? `revision ${row.revision}` : row.source.split("/").slice(-2).join("/");
  say(cell.source, words);
  cell.source.title = row.source;
  showLabels(cell.labels, row.labels);
}

function throughput(cell, row) {
  const [came, went] = [row.in_rate, row.out_rate];
  const said = `${rate(came)} in, ${rate(went)} out`;
  const lines = [
    { values: row.lines.out ?? [], style: "out" },
    { values: row.lines.in ?? [], style: "in" },
  ];
  const words = cell.lastElementChild ?? h("span", { class: "number" });
  fill(words, h("span", { class: "came" }, `${rate(came)} in`), h("span", { class: "went" }, `${rate(went)} out`));
  fill(cell, sparkline(lines, `Messages, the last 5 minutes; now ${said}`), words);
}

function lag(cell, row) {
  const waiting = row.kafka_lag ?? row.backlog;
  const words = [];
  if (row.event_time_lag !== null) words.push(lasting(row.event_time_lag));
  if (waiting) words.push(`${short(waiting)} waiting`);
  say(cell, words.join(", ") || "–");
  const worst = row.kafka_lag_worst;
  cell.title = waiting && worst ? `${whole(worst.lag)} of them in ${worst.topic}/${worst.partition}` : "";
}

function empty(create) {
  return h(
    "section",
    { class: "card empty" },
    h("h2", null, "No streams yet"),
    h("p", null, "A stream is a config: an input, processors, an output. To begin, do one of these:"),
    h(
      "ul",
      null,
      create && h("li", null, h("a", { href: "#/new" }, "Write one here"), ", with completion and checks."),
      h("li", null, "Deploy a file: ", h("code", null, `streamer deploy config.yaml --url ${document.location.origin}`)),
      h("li", null, "Start the service with a directory of them: ", h("code", null, "streamer streams ./configs")),
    ),
  );
}
