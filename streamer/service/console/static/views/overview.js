/** What a stream does now: its figures, its graph, and its windows. */

import { h, fill, say } from "../parts/dom.js";
import { figureLinks } from "../parts/figure_links.js";
import { poll } from "../parts/poll.js";
import { sparkline } from "../parts/sparkline.js";
import { table } from "../parts/table.js";
import { clock, lasting, moment, number, rate, short, whole } from "../parts/words.js";
import { graph } from "./graph.js";
import { timeline } from "./timeline.js";

const INTERVAL = 2_000;
/** The lines of the tiles change by a slot of five seconds. */
const LINES_INTERVAL = 5_000;

/**
 * @param {HTMLElement} root
 * @param {{params: {id: string}, api: import("../api.js").Api,
 *   onLeave: (stop: () => void) => void}} context
 */
export async function show(root, { params, api, onLeave }) {
  const figures = tiles(["In", "Out", "Errors", "Lag", "Open windows", "Micro-batch"], params.id);
  const commits = tableCommits();
  root.append(figures.element, commits.element);

  async function look() {
    const now = await api.get(`streams/${params.id}/progress`);
    for (const [name, total, speed] of [
      ["In", now.received, now.in_rate],
      ["Out", now.sent, now.out_rate],
      ["Errors", now.errors, now.error_rate],
    ]) {
      figures.show(name, rate(speed), counted(total, now.counted_since));
    }
    figures.element.classList.toggle("earlier", Boolean(now.as_of));
    const waiting = now.kafka_lag ?? now.backlog;
    const worst = waiting && now.kafka_lag_worst;
    const where = worst ? `, ${short(worst.lag)} in ${worst.topic}/${worst.partition}` : "";
    const behind = waiting ? `${short(waiting)} messages wait${where}` : "nothing waits";
    figures.show("Lag", lasting(now.event_time_lag), now.event_time_lag === null ? behind : `event time; ${behind}`);
    const due = now.next_close ? `${short(now.held)} messages; next closes ${clock(Date.parse(now.next_close))}` : "";
    const held = clockWords(now.clock_waits_for);
    figures.show("Open windows", whole(now.open_windows), [due, held].filter(Boolean).join("; "));
    commits.show(now.tables ?? []);
    figures.show("Micro-batch", now.micro_batch < 0 ? "–" : whole(now.micro_batch), dropped(now.dropped));
  }

  async function lines() {
    const query = { from: "5m", figures: "in,out,errors" };
    const found = await api.get(`streams/${params.id}/history`, query);
    for (const name of ["In", "Out", "Errors"]) {
      const values = found.figures[name.toLowerCase()] ?? [];
      figures.draw(name, sparkline([{ values, style: name.toLowerCase() }], `${name}, the last 5 minutes`));
    }
  }

  await poll(look, INTERVAL, onLeave);
  await poll(lines, LINES_INTERVAL, onLeave);
  const drawn = h("div", { class: "page" });
  root.append(drawn);
  await timeline(drawn, params.id, api, onLeave);
  await graph(drawn, params.id, api, onLeave);
}

/** The newest commits of the tables that the stream writes; nothing is there without a table. */
function tableCommits() {
  const cell = (read) => (place, row) => say(place, read(row));
  const rows = table(
    "The newest commits of tables",
    [
      { name: "Commit", fill: cell((row) => row.version) },
      { name: "Table", fill: cell((row) => row.table) },
      { name: "Time", value: (row) => Date.parse(row.at), fill: cell((row) => moment(Date.parse(row.at))), down: true, first: true },
      { name: "Operation", fill: cell((row) => row.operation) },
      { name: "Rows", fill: cell((row) => whole(row.rows)), style: "number" },
      { name: "Files", fill: cell((row) => whole(row.files)), style: "number" },
      { name: "Bytes", fill: cell((row) => whole(row.bytes)), style: "number" },
      { name: "Micro-batch", fill: cell((row) => (row.micro_batch === null ? "another program" : whole(row.micro_batch))), style: "number" },
    ],
    (row) => `${row.path} ${row.table} ${row.version}`,
  );
  const tries = h("p", { class: "muted" });
  const element = h("section", { class: "card", hidden: true }, h("h2", null, "Tables"), rows.element, tries);
  function show(tables) {
    element.hidden = !tables.length;
    rows.show(tables.flatMap(({ path, table, commits }) => commits.map((one) => ({ ...one, path, table }))));
    const sum = (name) => tables.reduce((all, one) => all + one[name], 0);
    say(tries, `${number(sum("retries"), "retry", "retries")} and ${number(sum("conflicts"), "conflict")} in this run`);
  }
  return { element, show };
}

/** All three count from the same moment: the start of the run. */
function counted(total, since) {
  if (total === null || !since) return "";
  return `${whole(total)} since ${moment(Date.parse(since))}`;
}

/** Say for whom the windows' clock waits, since when, and what waits with it. */
function clockWords(held) {
  if (!held) return "";
  const who = held.file ? `${held.source} (${held.file})` : held.source;
  if (!held.since) return `the clock waits for ${who}`;
  const least = held.complete ? "" : "at least ";
  const waiting = `${least}${number(held.windows, "window")} with ${short(held.messages)} messages wait`;
  const ahead = `others are ${lasting(held.others_ahead_seconds)} ahead`;
  return `the clock waits for ${who} since ${clock(Date.parse(held.since))}: ${waiting}, ${ahead}`;
}

function dropped(by) {
  const found = Object.entries(by).filter(([, count]) => count);
  if (!found.length) return "nothing dropped";
  return `dropped: ${found.map(([reason, count]) => `${short(count)} ${reason}`).join(", ")}`;
}

function tiles(names, id) {
  const found = new Map();
  const element = h(
    "dl",
    { class: "tiles" },
    names.map((name) => {
      const [value, more, line] = [h("dd", { class: "value" }), h("dd", { class: "muted more" }), h("dd", { class: "line" })];
      found.set(name, { value, more, line });
      return h("div", { class: "card tile" }, h("dt", null, name), value, more, line, figureLinks(name, id));
    }),
  );
  function show(name, text, about) {
    const { value, more } = found.get(name);
    say(value, text);
    say(more, about);
  }
  return { element, show, draw: (name, picture) => fill(found.get(name).line, picture) };
}
