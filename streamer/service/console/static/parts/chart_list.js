/** The charts of a stream's history: which figures each has, and in which unit. */

import { lasting, rate, short, size } from "./words.js";

/** More lines than these have the colours of the first ones. */
const COLOURS = ["c1", "c2", "c3", "c4", "c5", "c6"];
const MOST_NODES = 8;

const percent = (share) => `${Math.round(share * 100)}%`;

/**
 * A chart: its lines are figures by name, or made of the whole history by `made`.
 * @typedef {{title: string, about: string, format: (value: number) => string, most?: number, zero?: boolean,
 *   lines?: [string, string][], made?: (history: object) => [string, (number | null)[]][]}} Chart
 */

/** @type {Chart[]} */
export const charts = [
  {
    title: "Messages",
    about: "Per second, in and out.",
    format: rate,
    lines: [["in", "in"], ["out", "out"]],
  },
  {
    title: "Errors and drops",
    about: "Messages per second.",
    format: rate,
    lines: [["errors", "errors"], ["dropped", "dropped"], ["late", "late"]],
  },
  {
    title: "Back pressure",
    about: "Share of the time in which each component works or waits to send again. The busiest one behind the input holds the others.",
    format: percent,
    most: 1,
    made: ({ nodes, names }) => busiest(nodes).map(([path, values]) => [names?.[path] || path.replace(/^root\./, ""), values]),
  },
  {
    title: "Event-time lag",
    about: "Age of the newest message when its micro-batch is delivered.",
    format: lasting,
    lines: [["event_time_lag", "lag"]],
  },
  {
    title: "Kafka lag",
    about: "Messages that wait: in all, and per partition with the largest lag.",
    format: short,
    zero: true,
    made: ({ figures, partitions }) => [
      ...(figures.kafka_lag ? [["all", figures.kafka_lag]] : []),
      ...Object.entries(partitions),
    ],
  },
  {
    title: "Waiting at the input",
    about: "Messages that have come and that no micro-batch has taken yet.",
    format: short,
    lines: [["backlog", "waiting"]],
  },
  {
    title: "Duration of a micro-batch",
    about: "By stage; the rest is Spark's own: planning, the shuffle, commits.",
    format: lasting,
    lines: [
      ["batch_seconds", "in all"],
      ["stage_1_seconds", "stage 1"],
      ["stage_2_seconds", "stage 2"],
      ["delivery_seconds", "delivery"],
      ["overhead_seconds", "Spark"],
    ],
  },
  {
    title: "Latency",
    about: "From the start of a message's micro-batch to its delivery, over the last minute.",
    format: lasting,
    lines: [["latency_p50", "median"], ["latency_p99", "99th percentile"]],
  },
  {
    title: "Open windows",
    about: "After each micro-batch.",
    format: short,
    lines: [["open_windows", "windows"]],
  },
  {
    title: "Messages in open windows",
    about: "Pre-aggregated windows hold aggregates in their place.",
    format: short,
    lines: [["held_messages", "messages"]],
  },
  { title: "State", about: "Bytes that open windows and keys take.", format: (value) => size(Math.round(value)), lines: [["state_bytes", "state"]] },
];

/**
 * Return the lines of a chart.
 * @param {Chart} chart
 * @param {object} history as the API gives it; `names` are the labels of its nodes by path
 * @param {string} [of] the stream, where there are two
 * @param {boolean} [other] whether it is the second one
 * @returns {import("./chart.js").Line[]}
 */
export function linesOf(chart, history, of = "", other = false) {
  const found = chart.made ? chart.made(history) : chart.lines.filter(([name]) => history.figures[name]).map(([name, label]) => [label, history.figures[name]]);
  return found
    .map(([label, values], index) => ({ label: of ? `${label} · ${of}` : label, values, other, style: COLOURS[index % COLOURS.length] }))
    .filter(({ values }) => values.some((one) => one !== null));
}

/** Return whether a chart says anything: of a figure that is always zero few do. */
export function speaks(chart, lines) {
  if (!lines.length) return false;
  return chart.zero || chart.format === rate || chart.most !== undefined || lines.some(({ values }) => values.some((one) => one));
}

/** Each component with the time in which it worked or waited, those that took most. */
function busiest(nodes) {
  const found = Object.entries(nodes).map(([path, { busy = [], waiting = [] }]) => {
    const count = Math.max(busy.length, waiting.length);
    const values = Array.from({ length: count }, (_, at) => {
      const [works, waits] = [busy[at] ?? null, waiting[at] ?? null];
      return works === null && waits === null ? null : Math.min((works ?? 0) + (waits ?? 0), 1);
    });
    return { path, values, sum: values.reduce((sum, one) => sum + (one ?? 0), 0) };
  });
  const kept = new Set([...found].sort((a, b) => b.sum - a.sum).slice(0, MOST_NODES));
  return found.filter((one) => kept.has(one)).map(({ path, values }) => [path, values]);
}
