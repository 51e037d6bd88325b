/**
 * A chart of lines by time: an axis with labels, values at the pointer and by keyboard, gaps where
 * nothing is known, markers of what has happened, and the same as a table.
 */

import { h, s, fill, say } from "./dom.js";
import { marks, places } from "./time_axis.js";
import { clock } from "./words.js";

const HEIGHT = 168;
const TOP = 18;
const BOTTOM = 24;
const LEFT = 58;
const RIGHT = 12;
const EDGE = 26;
const TABLE_ROWS = 200;

/**
 * A line of a chart.
 * @typedef {object} Line
 * @property {string} label its name
 * @property {string} style its class, which gives its colour
 * @property {boolean} [other] whether it is of the stream that one compares with
 * @property {(number | null)[]} values by slot; null is a gap
 */

/**
 * What a chart shows.
 * @typedef {object} Shown
 * @property {number} from when the first slot begins, ms
 * @property {number} step of a slot, ms
 * @property {number} count of slots
 * @property {Line[]} lines
 * @property {{at: number, kind: string, title: string}[]} markers
 */

/**
 * Make a chart.
 * @param {{title: string, about: string, format: (value: number) => string, most?: number}} options
 *   `most` is the end of the axis, where that is always the same
 * @param {(slot: number | null, key: boolean) => void} pointed hears which slot is pointed at
 * @returns {{element: HTMLElement, draw: (shown: Shown) => void, point: (slot: number | null) => void}}
 */
export function chart({ title, about, format, most }, pointed) {
  const picture = s("svg", { class: "chart-picture", "aria-hidden": "true" });
  const [grid, events, curves, cursor] = [s("g", { class: "grid" }), s("g"), s("g"), s("g")];
  picture.append(grid, events, curves, cursor);
  const tip = h("div", { class: "chart-tip", hidden: true, "aria-hidden": "true" });
  const plot = h("div", { class: "plot", tabindex: "0", role: "slider", "aria-label": `${title} by time`, "aria-orientation": "horizontal" }, picture, tip);
  const legend = h("ul", { class: "chart-legend" });
  const rows = h("tbody");
  const head = h("tr");
  const asTable = h(
    "details",
    { class: "as-table", ontoggle: () => tabulate() },
    h("summary", null, `${title} as a table`),
    h("div", { class: "table-room", tabindex: "0", role: "region", "aria-label": `${title}, table` }, h("table", null, h("caption", { class: "unseen" }, `${title} by time, newest first`), h("thead", null, head), rows)),
  );
  const element = h(
    "figure",
    { class: "card chart" },
    h("figcaption", null, h("h2", null, title), h("p", { class: "muted" }, about)),
    legend,
    plot,
    asTable,
  );
  /** @type {Shown | null} */
  let shown = null;
  let slot = null;
  let x = () => 0;
  let y = () => 0;

  function draw(given) {
    shown = given;
    const width = Math.max(plot.clientWidth, 240);
    const top = most ?? nice(Math.max(0, ...shown.lines.flatMap((line) => line.values.map((one) => one ?? 0))));
    x = places(shown.from, shown.from + shown.count * shown.step, LEFT, width - RIGHT);
    y = (value) => HEIGHT - BOTTOM - (Math.min(value, top) / top) * (HEIGHT - TOP - BOTTOM);
    picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    picture.setAttribute("height", HEIGHT);
    fill(grid, across(top, width), along(width));
    fill(events, shown.markers.map(flag));
    fill(curves, shown.lines.toReversed().map(curve));
    fill(legend, shown.lines.map(entry));
    plot.setAttribute("aria-valuemin", 0);
    plot.setAttribute("aria-valuemax", shown.count - 1);
    point(slot);
    tabulate();
  }

  /** The newest slot of which anything is known: that of now is still to come. */
  function newest() {
    const found = Math.max(...shown.lines.map(({ values }) => values.findLastIndex((one) => one !== null)));
    return found >= 0 ? found : shown.count - 1;
  }

  function middle(at) {
    return shown.from + (at + 0.5) * shown.step;
  }

  function across(top, width) {
    // Of whole numbers the middle may be none.
    const half = [format(0), format(top)].includes(format(top / 2)) ? [] : [top / 2];
    return [0, ...half, top].map((value) => [
      s("path", { d: `M${LEFT} ${y(value).toFixed(1)}H${width - RIGHT}` }),
      s("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, format(value)),
    ]);
  }

  function along(width) {
    const to = shown.from + shown.count * shown.step;
    return marks(shown.from, to, width - LEFT - RIGHT).map((at) => {
      // A label at the edge would be cut off.
      const anchor = x(at) > width - EDGE ? "end" : "middle";
      return [
        s("path", { d: `M${x(at).toFixed(1)} ${TOP}V${HEIGHT - BOTTOM + 4}` }),
        s("text", { x: anchor === "end" ? width - 2 : x(at), y: HEIGHT - 6, "text-anchor": anchor }, label(at)),
      ];
    });
  }

  function label(at) {
    return shown.count * shown.step > 1_800_000 ? clock(at).slice(0, 5) : clock(at);
  }

  function flag({ at, kind, title: text }) {
    const place = x(at).toFixed(1);
    return s("g", { class: `event ${kind}` }, s("title", null, text), s("path", { d: `M${place} ${TOP - 6}V${HEIGHT - BOTTOM}` }), s("circle", { cx: place, cy: TOP - 8, r: 4 }));
  }

  function curve({ values, style, other }) {
    let pen = "M";
    const steps = [];
    const alone = [];
    values.forEach((value, at) => {
      if (value === null) {
        pen = "M";
        return;
      }
      const place = `${x(middle(at)).toFixed(1)} ${y(value).toFixed(1)}`;
      steps.push(`${pen}${place}`);
      if ((values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null) alone.push(place);
      pen = "L";
    });
    const dots = alone.map((place) => s("path", { d: `M${place}h0.01`, class: "dot" }));
    return s("g", { class: `curve ${style}${other ? " other" : ""}` }, s("path", { d: steps.join("") }), dots);
  }

  function entry({ label: name, style, other, values }) {
    const last = values.findLast((one) => one !== null);
    return h("li", { class: `${style}${other ? " other" : ""}` }, name, last === undefined ? null : h("span", { class: "number" }, ` ${format(last)}`));
  }

  function said(at) {
    const from = shown.from + at * shown.step;
    return shown.lines.map(({ label: name, values }) => `${name} ${values[at] === null || values[at] === undefined ? "not known" : format(values[at])}`).concat(
      shown.markers.filter((one) => one.at >= from && one.at < from + shown.step).map((one) => one.title),
    );
  }

  function point(at) {
    slot = at;
    if (!shown) return;
    const here = Math.min(at ?? newest(), shown.count - 1);
    const when = clock(shown.from + here * shown.step);
    plot.setAttribute("aria-valuenow", here);
    plot.setAttribute("aria-valuetext", `${when}: ${said(here).join(", ")}`);
    tip.hidden = at === null;
    if (at === null) return fill(cursor);
    fill(
      cursor,
      s("path", { class: "cursor", d: `M${x(middle(here)).toFixed(1)} ${TOP}V${HEIGHT - BOTTOM}` }),
      shown.lines
        .filter(({ values }) => (values[here] ?? null) !== null)
        .map(({ values, style }) => s("circle", { class: `at ${style}`, cx: x(middle(here)), cy: y(values[here]), r: 3.5 })),
    );
    fill(tip, h("b", null, when), said(here).map((text) => h("span", null, text)));
    const left = x(middle(here));
    tip.classList.toggle("left", left > plot.clientWidth / 2);
    tip.style.setProperty("left", `${left}px`);
  }

  function tabulate() {
    if (!asTable.open || !shown) return;
    fill(head, h("th", { scope: "col" }, "Time"), shown.lines.map((line) => h("th", { scope: "col", class: "number" }, line.label)));
    const numbers = Array.from({ length: shown.count }, (_, at) => shown.count - 1 - at).slice(0, TABLE_ROWS);
    fill(
      rows,
      numbers.map((at) =>
        h("tr", null, h("th", { scope: "row" }, clock(shown.from + at * shown.step)), shown.lines.map(({ values }) => h("td", { class: "number" }, (values[at] ?? null) === null ? "–" : format(values[at])))),
      ),
    );
  }

  plot.addEventListener("pointermove", (event) => {
    if (!shown) return;
    const share = (event.clientX - plot.getBoundingClientRect().left - LEFT) / Math.max(plot.clientWidth - LEFT - RIGHT, 1);
    pointed(Math.max(0, Math.min(shown.count - 1, Math.floor(share * shown.count))), false);
  });
  plot.addEventListener("pointerleave", () => pointed(null, false));
  plot.addEventListener("blur", () => pointed(null, false));
  plot.addEventListener("keydown", (event) => {
    if (!shown) return;
    const last = shown.count - 1;
    const now = slot ?? newest();
    const ways = { ArrowLeft: now - 1, ArrowRight: now + 1, ArrowDown: now - 1, ArrowUp: now + 1, PageDown: now - 12, PageUp: now + 12, Home: 0, End: last };
    if (event.key === "Escape") return pointed(null, true);
    if (!(event.key in ways)) return;
    event.preventDefault();
    pointed(Math.max(0, Math.min(last, ways[event.key])), true);
  });

  return { element, draw, point };
}

/** The end of an axis: the next of 1, 2, 5 times a power of ten. */
function nice(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= value * 0.999);
}

/**
 * Say what has happened, as a list.
 * @param {HTMLElement} list
 * @param {{at: number, kind: string, title: string}[]} markers newest first
 */
export function listMarkers(list, markers) {
  const key = markers.map((one) => `${one.at} ${one.title}`).join("\n");
  if (list.dataset.said === key) return;
  list.dataset.said = key;
  fill(list, markers.map((one) => h("li", { class: `event ${one.kind}` }, h("time", { datetime: new Date(one.at).toISOString() }, clock(one.at)), " ", one.title)));
  if (!markers.length) say(list, "");
}
