/** A stream's windows on a line of time: those that are open, and those that closed of late. */

import { asOfText } from "../parts/condition.js";
import { h, s, fill, say } from "../parts/dom.js";
import { poll } from "../parts/poll.js";
import { lanes, marks, places } from "../parts/time_axis.js";
import { clock, number, short, size, whole } from "../parts/words.js";

const INTERVAL = 1_000;
const BAR = 26;
const GAP = 6;
const TOP = 26;
const BELOW = 46;
const SIDE = 12;
const MOST_LANES = 12;
/** How much of the line lies before now, in lengths of a window. */
const BEFORE = 5;
const DROP_WORDS = { late: "late", expired: "of an expired window", future: "too far ahead" };

/**
 * Draw the timeline, and keep it new.
 * @param {HTMLElement} root
 * @param {string} id the stream
 * @param {import("../api.js").Api} api
 * @param {(stop: () => void) => void} onLeave
 */
export async function timeline(root, id, api, onLeave) {
  const about = h("p", { class: "muted" });
  const picture = s("svg", { class: "timeline", role: "group", "aria-label": "Windows, oldest first" });
  const note = h("p", { class: "muted", role: "status" });
  const legend = h(
    "ul",
    { class: "legend", "aria-hidden": "true" },
    ["open", "closed", "expired"].map((one) => h("li", { class: one }, one)),
    h("li", { class: "now" }, "clock"),
    h("li", { class: "event" }, "event time"),
    h("li", { class: "drop" }, "dropped"),
  );
  const rows = h("tbody");
  const head = ["Start", "End", "Messages", "State"].map((one) => h("th", { scope: "col" }, one));
  const asTable = h(
    "details",
    { class: "as-table" },
    h("summary", null, "The windows as a table"),
    h("div", { class: "table-room" }, h("table", null, h("caption", { class: "unseen" }, "Windows"), h("thead", null, h("tr", null, head)), rows)),
  );
  const card = h(
    "section",
    { class: "card", "aria-labelledby": "timeline-title", hidden: true },
    h("header", null, h("h2", { id: "timeline-title" }, "Windows"), about, legend),
    h("div", { class: "card-body" }, picture, note, asTable),
  );
  const drawing = drawingOn(picture);

  async function look() {
    const found = await api.get(`streams/${id}/windows`);
    card.hidden = !found.kind;
    if (!found.kind) return;
    const now = found.now ? Date.parse(found.now) : Date.now();
    const clockNow = clockOf(found, now);
    const bars = barsOf(found, clockNow);
    say(about, found.kind);
    say(note, found.as_of ? `${number(found.open, "open window")} with ${number(found.messages, "message")}, ${asOfText(found)}` : told(found, bars));
    drawing.draw(bars, found, now, clockNow);
    if (asTable.open) fill(rows, bars.toReversed().map(row));
  }

  root.append(card);
  const again = await poll(look, INTERVAL, onLeave);
  asTable.addEventListener("toggle", again);
  const observer = new ResizeObserver(() => again());
  observer.observe(card);
  onLeave(() => observer.disconnect());
}

/** What closes the windows: the clock, or the times of events, which may be of another year. */
function clockOf(found, now) {
  if (found.clock !== "event") return now;
  const ends = [...found.windows, ...(found.closed ?? [])].map((one) => Date.parse(one.end));
  return found.event_time ? Date.parse(found.event_time) : Math.max(...ends, 0) || now;
}

/** The windows that are worth a bar: all that are open, and the newest that closed. */
function barsOf(found, now) {
  const bar = (one, state) => ({ ...one, state, from: Date.parse(one.start ?? one.end), to: Date.parse(one.end) });
  const open = found.windows.map((one) => bar(one, "open"));
  const closed = (found.closed ?? []).map((one) => bar(one, one.reason === "expired" ? "expired" : "closed"));
  const sizes = [...open, ...closed].map((one) => one.to - one.from).filter((one) => one > 0);
  const usual = sizes.sort((a, b) => a - b)[sizes.length >> 1] ?? 60_000;
  const bars = [...closed, ...open].filter((one) => one.to > now - usual * BEFORE || one.state === "open");
  // A window that comes out again, since a late message changed it, is one bar.
  const by = new Map();
  for (const one of bars) by.set(`${one.from} ${one.to}`, { ...by.get(`${one.from} ${one.to}`), ...one });
  return [...by.values()].sort((a, b) => a.from - b.from || a.to - b.to);
}

function told(found, bars) {
  const open = bars.filter((one) => one.state === "open").length;
  const words = [`${number(found.open, "open window")} with ${number(found.messages, "message")} (${size(found.bytes)})`];
  if (found.open > open) words.push(open ? `the oldest ${open} are shown` : "each key has its own");
  const late = (found.dropped ?? []).reduce((sum, one) => sum + one.messages, 0);
  if (late) words.push(`${number(late, "message")} dropped of late`);
  return `${words.join("; ")}.`;
}

function sentence(bar) {
  const bounds = bar.start ? `${clock(bar.from)} to ${clock(bar.to)}` : `that ended at ${clock(bar.to)}`;
  const what = bar.state === "open" ? `open, closes at ${clock(Date.parse(bar.closes))}` : bar.state === "expired" ? "expired" : `closed at ${clock(Date.parse(bar.at))}`;
  return `Window ${bounds}: ${number(bar.messages, "message")}, ${what}`;
}

function row(bar) {
  const start = bar.start ? h("time", { datetime: bar.start }, clock(bar.from)) : "–";
  const state = sentence(bar).split(", ").slice(1).join(", ");
  return h("tr", null, h("td", null, start), h("td", null, h("time", { datetime: bar.end }, clock(bar.to))), h("td", { class: "number" }, whole(bar.messages)), h("td", null, state));
}

/** Draws; what stays the same is kept, so that the focus stays where it is. */
function drawingOn(picture) {
  const [grid, bars, lines] = [s("g", { class: "grid" }), s("g"), s("g", { "aria-hidden": "true" })];
  picture.append(grid, bars, lines);
  const known = new Map();

  picture.addEventListener("keydown", (event) => {
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!way) return;
    const all = [...bars.children];
    const next = all[all.indexOf(document.activeElement) + way];
    if (!next) return;
    event.preventDefault();
    for (const one of all) one.setAttribute("tabindex", one === next ? "0" : "-1");
    next.focus();
  });

  function draw(given, found, now, clockNow) {
    const width = Math.max(picture.parentElement.clientWidth - 32, 240);
    const [from, to] = bounds(given, clockNow);
    const x = places(from, to, SIDE, width - SIDE);
    const lane = lanes(given).map((one) => one % MOST_LANES);
    const height = TOP + (Math.max(0, ...lane) + 1) * (BAR + GAP) + BELOW;
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("height", height);
    const base = height - BELOW + 8;
    fill(grid, ticks(from, to, width, x, base));
    drawBars(given, lane, x, now);
    const byEvents = found.clock === "event";
    const seen = now >= from && now <= to;
    fill(
      lines,
      drops(found.dropped ?? [], byEvents, x, base, from),
      seen && clockLine(x, now, "now", base, "now"),
      byEvents && clockLine(x, clockNow, "event", base, "event time"),
    );
  }

  function drawBars(given, lane, x, now) {
    const names = new Set();
    given.forEach((bar, index) => {
      const name = `${bar.from} ${bar.to}`;
      names.add(name);
      const [left, right] = [x(bar.from), x(bar.to)];
      const one = known.get(name) ?? made(name);
      const room = Math.max(right - left - 2, 3);
      set(one.box, { x: left + 1, y: TOP + lane[index] * (BAR + GAP), width: room, height: BAR });
      set(one.text, { x: left + 1 + room / 2, y: TOP + lane[index] * (BAR + GAP) + 17 });
      one.text.textContent = room > 34 ? short(bar.messages) : "";
      one.title.textContent = sentence(bar);
      const age = bar.at ? (now - Date.parse(bar.at)) / Math.max(bar.to - bar.from, 10_000) : 0;
      one.group.setAttribute("class", `bar ${bar.state}${age > 3 ? " old" : age > 1 ? " older" : ""}`);
      one.group.setAttribute("aria-label", sentence(bar));
    });
    for (const [name, one] of known) {
      if (names.has(name)) continue;
      one.group.remove();
      known.delete(name);
    }
    const ordered = given.map((bar) => known.get(`${bar.from} ${bar.to}`).group);
    if (ordered.some((one, index) => bars.children[index] !== one)) {
      const focused = document.activeElement;
      bars.replaceChildren(...ordered);
      if (bars.contains(focused)) focused.focus();
    }
    if (ordered.length && !ordered.some((one) => one.getAttribute("tabindex") === "0")) ordered.at(-1).setAttribute("tabindex", "0");
  }

  function made(name) {
    const [box, text, title] = [s("rect", { rx: 5 }), s("text", { "text-anchor": "middle" }), s("title")];
    const group = s("g", { tabindex: "-1", role: "img" }, title, box, text);
    const one = { group, box, text, title };
    known.set(name, one);
    return one;
  }

  return { draw };
}

/** Some room before now, and all of what is open. */
function bounds(bars, now) {
  const from = Math.min(now - 10_000, ...bars.map((one) => one.from));
  const last = Math.max(now, ...bars.map((one) => (one.closes ? Date.parse(one.closes) : one.to)));
  return [from, last + (last - from) * 0.04];
}

function ticks(from, to, width, x, base) {
  return marks(from, to, width).map((at) => [
    s("path", { d: `M${x(at).toFixed(1)} ${TOP - 8}V${base}` }),
    s("text", { x: x(at), y: base + 16, "text-anchor": "middle" }, clock(at)),
  ]);
}

function clockLine(x, at, style, base, word) {
  return s(
    "g",
    { class: `clock ${style}` },
    s("path", { d: `M${x(at).toFixed(1)} ${TOP - 10}V${base}` }),
    s("text", { x: x(at), y: TOP - 14, "text-anchor": "middle" }, word),
  );
}

function drops(found, byEvents, x, base, from) {
  return found
    .map((one) => ({ ...one, when: Date.parse((byEvents && one.event_time) || one.at) }))
    .filter((one) => one.when >= from)
    .map((one) => {
      const [at, y] = [x(one.when), base - 8];
      const about = `${number(one.messages, "message")} dropped at ${clock(one.when)}: ${DROP_WORDS[one.reason] ?? one.reason}`;
      const arm = 4 + Math.min(4, Math.log10(one.messages));
      const d = `M${at - arm} ${y - arm}L${at + arm} ${y + arm}M${at - arm} ${y + arm}L${at + arm} ${y - arm}`;
      return s("path", { d, class: "drop" }, s("title", null, about));
    });
}

function set(element, values) {
  for (const [name, value] of Object.entries(values)) element.setAttribute(name, value.toFixed(1));
}
