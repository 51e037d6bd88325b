/** What a stream has done in the last hour: charts, with what has happened, beside another stream. */

import { keepInAddress } from "../parts/address.js";
import { chart, listMarkers } from "../parts/chart.js";
import { charts, linesOf, speaks } from "../parts/chart_list.js";
import { h, fill, say } from "../parts/dom.js";
import { poll } from "../parts/poll.js";

const INTERVAL = 5_000;
const RANGES = [["5m", "5 min"], ["15m", "15 min"], ["1h", "1 h"]];
const WORDS = {
  start: "Started",
  stop: "Stopped",
  restart: "Started again",
  deploy: "Deployed",
  rollback: "Rolled back",
  error: "Error",
};

/**
 * @param {HTMLElement} root
 * @param {{params: {id: string, range?: string, with?: string}, api: import("../api.js").Api,
 *   onLeave: (stop: () => void) => void}} context
 */
export async function show(root, { params, api, onLeave }) {
  const { id } = params;
  let range = RANGES.some(([name]) => name === params.range) ? params.range : "15m";
  let other = params.with ?? "";
  const streams = Object.keys(await api.get("streams")).filter((one) => one !== id);
  if (!streams.includes(other)) other = "";
  const buttons = RANGES.map(([name, label]) => h("button", { type: "button", onclick: () => choose(name, other) }, label));
  const select = h("select", { onchange: () => choose(range, select.value) }, h("option", { value: "" }, "no other stream"), streams.map((one) => h("option", { value: one, selected: one === other }, one)));
  const tools = h(
    "div",
    { class: "tools" },
    h("div", { class: "ranges", role: "group", "aria-label": "Range" }, buttons),
    streams.length ? h("label", { class: "check" }, "Compare with", select) : null,
  );
  const note = h("p", { class: "muted", role: "status" });
  const happened = h("ol", { class: "events" });
  const room = h("div", { class: "charts" });
  const drawn = charts.map((one) => ({ one, ...chart(one, point) }));
  const markersCard = h("section", { class: "card", "aria-labelledby": "events-title" }, h("header", null, h("h2", { id: "events-title" }, "Starts, deploys and errors")), h("div", { class: "card-body" }, happened));
  root.append(tools, note, room, markersCard);

  const named = new Map();

  function point(slot) {
    for (const each of drawn) each.point(slot);
  }

  async function choose(name, stream) {
    [range, other] = [name, stream];
    keepInAddress({ range: range === "15m" ? "" : range, with: other });
    point(null);
    await again();
  }

  /** The labels of a stream's components, by path; asked for once. */
  function labels(stream) {
    if (!named.has(stream)) {
      const found = api.get(`streams/${stream}/components`).then(({ components }) => Object.fromEntries(components.map((one) => [one.path, one.label])));
      named.set(stream, found.catch(() => ({})));
    }
    return named.get(stream);
  }

  async function look() {
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(RANGES[index][0] === range)));
    const asked = [range, other].join();
    const [mine, theirs] = await Promise.all([
      api.get(`streams/${id}/history`, { from: range }),
      other ? api.get(`streams/${other}/history`, { from: range }) : null,
    ]);
    mine.names = await labels(id);
    if (theirs) theirs.names = await labels(other);
    if (asked === [range, other].join()) draw(mine, theirs);
  }

  function draw(mine, theirs) {
    const slots = { from: Date.parse(mine.from), step: mine.step * 1000, count: slotsOf(mine) };
    const markers = [...marksOf(mine, slots, theirs ? id : ""), ...(theirs ? marksOf(theirs, slots, other) : [])].sort((a, b) => b.at - a.at);
    const shown = [];
    for (const each of drawn) {
      const lines = [...linesOf(each.one, mine, theirs ? id : ""), ...(theirs ? linesOf(each.one, aligned(theirs, slots), other, true) : [])];
      if (speaks(each.one, lines)) shown.push({ each, lines });
    }
    const elements = shown.map(({ each }) => each.element);
    if (elements.length !== room.children.length || elements.some((one, at) => room.children[at] !== one)) fill(room, elements);
    for (const { each, lines } of shown) each.draw({ ...slots, lines, markers });
    listMarkers(happened, markers);
    markersCard.hidden = !markers.length;
    say(note, shown.length ? "" : "No figures yet. They begin with the first micro-batch.");
  }

  const again = await poll(look, INTERVAL, onLeave);
  const observer = new ResizeObserver(() => again());
  observer.observe(room);
  onLeave(() => observer.disconnect());
}

function slotsOf({ from, now, step }) {
  return Math.floor((Date.parse(now) - Date.parse(from)) / 1000 / step) + 1;
}

function marksOf({ markers }, { from }, of) {
  return markers
    .map(({ at, kind, text, times }) => {
      const words = [WORDS[kind] ?? kind, times > 1 ? ` (${times} times)` : "", text && `: ${text}`, of && ` · ${of}`];
      return { at: Date.parse(at), kind, title: words.filter(Boolean).join("") };
    })
    .filter((one) => one.at >= from)
    .toReversed();
}

/** Return the history of another stream with the slots of the first: its answer may be a slot later. */
function aligned(history, { from, step, count }) {
  const shift = Math.round((Date.parse(history.from) - from) / step);
  const moved = (values) => Array.from({ length: count }, (_, at) => values[at - shift] ?? null);
  const all = (named) => Object.fromEntries(Object.entries(named).map(([name, values]) => [name, moved(values)]));
  const nodes = Object.fromEntries(Object.entries(history.nodes).map(([path, named]) => [path, all(named)]));
  return { ...history, figures: all(history.figures), partitions: all(history.partitions), nodes };
}
