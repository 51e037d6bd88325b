/** Where a figure comes from: its metric, the page about it, and the place in the config. */

import { h } from "./dom.js";

/** Of each figure: its metric, the section of the list of metrics, and the component it is of. */
const FIGURES = {
  In: { metric: "input_received", section: "inputs", node: "root.input" },
  Out: { metric: "output_sent", section: "outputs", node: "root.output" },
  Errors: { metric: "processor_error", section: "processors" },
  Lag: { metric: "event_time_lag_seconds", section: "windows" },
  "Open windows": { metric: "window_open", section: "windows", node: "root.buffer" },
  "Micro-batch": { metric: "batch_duration_seconds", section: "streams" },
};

/**
 * Return the links of a figure, for its tile.
 * @param {string} name of the figure
 * @param {string} id of the stream
 * @returns {HTMLElement | null}
 */
export function figureLinks(name, id) {
  const figure = FIGURES[name];
  if (!figure) return null;
  const title = `${name} is the metric ${figure.metric}`;
  const links = [
    h("a", { href: `#/docs/metrics-list/${figure.section}`, title, class: "mono" }, figure.metric),
    figure.node && h("a", { href: configLink(id, figure.node), title: `${name}: show it in the config` }, "config"),
    name === "Errors" && h("a", { href: `#/streams/${id}/failed` }, "failed messages"),
  ];
  return h("dd", { class: "figure-links" }, links);
}

/** The address of a component in the config of its stream. @param {string} id @param {string} node its path */
export function configLink(id, node) {
  return `#/streams/${id}/config?node=${encodeURIComponent(node)}`;
}
