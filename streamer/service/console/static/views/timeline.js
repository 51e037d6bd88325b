/** A stream's windows on a line of time: those that are open, and those that closed a while ago. */

import { asOfText } from "../parts/condition.js";
import { h, s, fill, say } from "../parts/dom.js";
import { poll } from "../parts/poll.js";
import { lanes, marks, placeLabels, places } from "../parts/time_axis.js";
import { barsOf, clockOf, DROP_WORDS, ofBuffer, rowsOf, sentence } from "../parts/window_bars.js";
import { clock, number, short, size } from "../parts/words.js";
import { droppedMessages } from "./dropped_messages.js";
import { earlierStates } from "./earlier_states.js";
import { windowTable } from "./window_table.js";

const INTERVAL = 1_000;
const BAR = 26;
const GAP = 6;
const TOP = 26;
const BELOW = 46;
const SIDE = 12;
const MAX_LANES = 14;
const MIN_BAR = 7;
const CHARACTER = 7;
/** Shards answer a question for some seconds; it is asked again while somebody looks. */
const REQUEST_INTERVAL = 5_000;

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
    ["open", "closed", "expired", "retracted"].map((one) => h("li", { class: one }, one)),
    h("li", { class: "now" }, "now"),
    h("li", { class: "event" }, "event time"),
    h("li", { class: "drop" }, "dropped"),
  );
  const buffer = h("select", null);
  const buffers = h("label", { class: "field inline", hidden: true }, "Buffer", buffer);
  const dropped = droppedMessages();
  const asTable = windowTable(id, api, () => again?.());
  const card = h(
    "section",
    { class: "card", "aria-labelledby": "timeline-title", hidden: true },
    h("header", null, h("h2", { id: "timeline-title" }, "Windows"), about, buffers, legend),
    h("div", { class: "card-body" }, picture, note, dropped.element, asTable.element, earlierStates(id, api)),
  );
  const drawing = drawingOn(picture);
  let requested = 0;

  async function look() {
    const query = asTable.query();
    const found = await api.get(`streams/${id}/windows`, query);
    card.hidden = !found.kind;
    if (!found.kind) return;
    if (!found.complete && performance.now() - requested > REQUEST_INTERVAL) {
      requested = performance.now();
      await api.post(`streams/${id}/windows`, { query });
    }
    showBuffers(Object.keys(found.buffers ?? {}));
    const listed = ofBuffer(found, buffer.value);
    const now = listed.now ? Date.parse(listed.now) : Date.now();
    const clockNow = clockOf(listed, now);
    const bars = barsOf(listed, clockNow);
    say(about, listed.kind);
    const left = drawing.draw(bars, listed, now, clockNow);
    say(note, found.checkpoint_as_of ? `${number(found.open, "open window")} with ${number(found.messages, "message")}, ${asOfText({ as_of: found.checkpoint_as_of })}` : told(listed, bars, left));
    dropped.show(listed.dropped ?? []);
    asTable.show(rowsOf(listed), listed);
  }

  function showBuffers(labels) {
    buffers.hidden = labels.length < 2;
    if (labels.join() === [...buffer.options].map((one) => one.value).join()) return;
    fill(buffer, labels.map((label) => h("option", { value: label }, label)));
  }

  root.append(card);
  const again = await poll(look, INTERVAL, onLeave);
  buffer.addEventListener("change", again);
  const observer = new ResizeObserver(() => again());
  observer.observe(card);
  onLeave(() => observer.disconnect());
}

function told(listed, bars, left) {
  const words = [`${number(listed.open, "open window")} with ${number(listed.messages, "message")} (${size(listed.bytes)})`];
  const open = bars.filter((one) => one.state === "open").length;
  if (left) words.push(`${number(left, "window")} not drawn for want of room`);
  if (open && listed.open > open) words.push(`${number(open, "window")} of them listed`);
  const drops = listed.dropped ?? [];
  const late = drops.filter((one) => one.reason === "late").reduce((sum, one) => sum + one.messages, 0);
  const others = drops.filter((one) => one.reason !== "late").reduce((sum, one) => sum + one.messages, 0);
  if (late) words.push(`${number(late, "late message")} dropped`);
  if (others) words.push(`${number(others, late ? "other message" : "message")} dropped`);
  return `${words.join("; ")}.`;
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

  /** Returns how many windows there was no room for. */
  function draw(given, found, now, clockNow) {
    const room = Math.max(picture.parentElement.clientWidth - 32, 240);
    picture.toggleAttribute("hidden", !given.length && !(found.dropped ?? []).length);
    const [from, to] = bounds(given, clockNow);
    const x = places(from, to, SIDE, room - SIDE);
    // Bars have a width that can be seen, and lie on no other.
    const least = ((to - from) / Math.max(room - 2 * SIDE, 1)) * (MIN_BAR + 2);
    const lane = lanes(given.map((one) => ({ from: one.from, to: Math.max(one.to, one.from + least) })));
    const drawn = given.filter((_, index) => lane[index] < MAX_LANES);
    const height = TOP + (Math.min(Math.max(0, ...lane), MAX_LANES - 1) + 1) * (BAR + GAP) + BELOW;
    picture.setAttribute("viewBox", `0 0 ${room} ${height}`);
    picture.setAttribute("height", height);
    const base = height - BELOW + 8;
    fill(grid, ticks(from, to, room, x, base));
    drawBars(drawn, lane.filter((one) => one < MAX_LANES), x, now);
    const byEvents = found.clock === "event";
    const seen = now >= from && now <= to;
    const clocks = [seen && ["now", now, "now"], byEvents && ["event", clockNow, "event time"]].filter(Boolean);
    const labels = placeLabels(clocks.map(([, at, word]) => ({ at: x(at), width: word.length * CHARACTER })), 2, room - 2);
    fill(
      lines,
      drops(found.dropped ?? [], byEvents, x, base, from),
      clocks.map(([style, at, word], index) => clockLine(x(at), style, base, word, labels[index])),
    );
    return given.length - drawn.length;
  }

  function drawBars(given, lane, x, now) {
    const names = new Set();
    given.forEach((bar, index) => {
      names.add(bar.name);
      const [left, right] = [x(bar.from), x(bar.to)];
      const one = known.get(bar.name) ?? made(bar.name);
      const room = Math.max(right - left - 2, MIN_BAR);
      set(one.box, { x: left + 1, y: TOP + lane[index] * (BAR + GAP), width: room, height: BAR });
      set(one.text, { x: left + 1 + room / 2, y: TOP + lane[index] * (BAR + GAP) + 17 });
      one.text.textContent = label(bar, room);
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
    const ordered = given.map((bar) => known.get(bar.name).group);
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

/** What stands in a bar: its key and the number of its messages, as far as there is room. */
function label(bar, room) {
  const count = bar.messages === null ? "" : short(bar.messages);
  const letters = Math.floor(room / CHARACTER) - 1;
  if (!bar.key) return letters > count.length ? count : "";
  if (letters >= bar.key.length + count.length + 3) return `${bar.key} · ${count}`;
  if (letters >= bar.key.length) return bar.key;
  return letters >= 4 ? `${bar.key.slice(0, letters - 1)}…` : "";
}

/** Some room before now, and all of what is open. */
function bounds(bars, now) {
  const from = Math.min(now - 10_000, ...bars.map((one) => one.from));
  const last = Math.max(now, ...bars.map((one) => (one.closes ? Date.parse(one.closes) : one.to)));
  return [from, last + (last - from) * 0.04];
}

function ticks(from, to, width, x, base) {
  const found = marks(from, to, width);
  return found.map((at) => {
    const [place] = placeLabels([{ at: x(at), width: 8 * CHARACTER }], 2, width - 2);
    return [
      s("path", { d: `M${x(at).toFixed(1)} ${TOP - 8}V${base}` }),
      s("text", { x: place.x.toFixed(1), y: base + 16, "text-anchor": "middle" }, clock(at)),
    ];
  });
}

function clockLine(at, style, base, word, place) {
  return s(
    "g",
    { class: `clock ${style}` },
    s("path", { d: `M${at.toFixed(1)} ${TOP - 10}V${base}` }),
    s("text", { x: place.x.toFixed(1), y: TOP - 14, "text-anchor": "middle" }, word),
  );
}

function drops(found, byEvents, x, base, from) {
  return found
    .map((one) => ({ ...one, when: Date.parse((byEvents && one.event_time) || one.at) }))
    .filter((one) => one.when >= from)
    .map((one) => {
      const [at, y] = [x(one.when), base - 8];
      const [word] = DROP_WORDS[one.reason] ?? [one.reason];
      const about = `${number(one.messages, "message")} dropped at ${clock(one.when)}: ${word}`;
      const arm = 4 + Math.min(4, Math.log10(one.messages));
      const d = `M${at - arm} ${y - arm}L${at + arm} ${y + arm}M${at - arm} ${y + arm}L${at + arm} ${y - arm}`;
      return s("path", { d, class: "drop" }, s("title", null, about));
    });
}

function set(element, values) {
  for (const [name, value] of Object.entries(values)) element.setAttribute(name, value.toFixed(1));
}
