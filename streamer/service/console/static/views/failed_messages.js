/** A sample of the messages that have failed: in which component, why, and what became of them. */

import { keepInAddress } from "../parts/address.js";
import { h, fill, say } from "../parts/dom.js";
import { messageCard } from "../parts/message_card.js";
import { visible } from "../parts/outside_text.js";
import { poll } from "../parts/poll.js";
import { clock, number, whole } from "../parts/words.js";

const INTERVAL = 3_000;
const FATES = {
  marked: "went on, marked as failed",
  expectation_dropped: "dropped by its expectation",
  expectation_warned: "went on unmarked; only counted",
  fallback: "sent to the next output of the fallback",
  answered: "rejected; the sender got an error",
  dropped: "rejected and dropped (auto_replay_nacks: false)",
  kept: "rejected; kept and sent again",
};

/**
 * @param {HTMLElement} root
 * @param {{params: {id: string, node?: string}, api: import("../api.js").Api,
 *   onLeave: (stop: () => void) => void}} context
 */
export async function show(root, { params, api, onLeave }) {
  const note = h("p", { class: "muted", role: "status" });
  const search = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter messages" });
  const node = h("select", { "aria-label": "Component" }, h("option", { value: "" }, "All components"));
  const hold = h("button", { type: "button", "aria-pressed": "false" }, "Pause");
  const counts = h("ul", { class: "failure-counts" });
  const list = h("ol", { class: "samples" });
  const about = h(
    "p",
    { class: "muted" },
    "This is a sample: at most three messages of each component, or expectation, and task in a micro-batch. The service keeps the newest 50 of each in memory. The counters count all failures. ",
    h("a", { href: "#/docs/failed-messages" }, "How failed messages are handled"),
  );
  root.append(h("div", { class: "tools" }, node, search, hold, note), counts, list, about);
  let found = { messages: [], components: [], expectations: [] };
  let wanted = params.node ?? "";

  function fits(one) {
    const text = search.value.trim().toLowerCase();
    return !text || `${one.content} ${one.error} ${one.label} ${one.path} ${one.expectation ?? ""}`.toLowerCase().includes(text);
  }

  function drawNodes() {
    const paths = new Map(found.components.map((one) => [one.path, one.label]));
    for (const one of found.messages) paths.set(one.path, one.label);
    if (wanted && !paths.has(wanted)) paths.set(wanted, "");
    const names = [...paths.keys()].sort();
    if (node.dataset.said === names.join(" ")) return;
    node.dataset.said = names.join(" ");
    const options = names.map((path) => h("option", { value: path }, paths.get(path) ? `${paths.get(path)} (${path})` : path));
    fill(node, h("option", { value: "" }, "All components"), options);
    node.value = wanted;
  }

  function draw() {
    drawNodes();
    const seen = found.messages.filter((one) => fits(one) && (!wanted || one.path === wanted));
    const known = new Map([...list.children].map((item) => [item.dataset.number, item]));
    const items = seen.map((one) => known.get(String(one.number)) ?? card(one, params.id));
    const same = items.length === list.children.length && items.every((one, index) => one === list.children[index]);
    if (!same) fill(list, items);
    const expectations = found.expectations ?? [];
    const said = JSON.stringify([found.components, expectations]);
    if (counts.dataset.said !== said) fill(counts, found.components.map(count), expectations.map(judgement));
    counts.dataset.said = said;
    say(note, seen.length ? `${number(seen.length, "message")}, newest first` : nothing());
  }

  function nothing() {
    if (found.messages.length) return "No message fits the filter.";
    return found.components.length
      ? "Messages have failed, and none of them is kept as a sample."
      : "No message has failed since the service started.";
  }

  async function look() {
    if (hold.getAttribute("aria-pressed") === "true") return;
    found = await api.get(`streams/${params.id}/failed-messages`, wanted ? { node: wanted } : {});
    draw();
  }

  node.addEventListener("change", () => {
    wanted = node.value;
    keepInAddress({ node: wanted });
    look().catch((error) => say(note, error.message));
  });
  search.addEventListener("input", draw);
  hold.addEventListener("click", () => {
    const held = hold.getAttribute("aria-pressed") !== "true";
    hold.setAttribute("aria-pressed", String(held));
    say(hold, held ? "Resume" : "Pause");
  });
  await poll(look, INTERVAL, onLeave);
}

function count({ label, path, error, rejected }) {
  const words = [error && `${whole(error)} failed`, rejected && `${whole(rejected)} rejected`];
  return h("li", null, h("b", null, label || path), ` ${words.filter(Boolean).join(", ")} since the start`);
}

function judgement({ expectation, label, path, passed, failed, dropped }) {
  const words = [`${whole(failed)} of ${whole(passed + failed)} failed`, dropped && `${number(dropped, "message")} dropped`];
  const place = h("span", { class: "muted", title: path }, ` of ${label || path}`);
  return h("li", null, "expectation ", h("b", null, expectation), place, ` ${words.filter(Boolean).join(", ")} since the start`);
}

function card(one, id) {
  const at = h("time", { datetime: one.time, title: one.time }, clock(Date.parse(one.time)));
  const link = h(
    "a",
    { href: `#/streams/${id}/messages?node=${encodeURIComponent(one.path)}`, title: one.path },
    one.label || one.path,
  );
  const facts = [
    one.messages > 1 && number(one.messages, "message"),
    one.source && `${one.source.topic} · partition ${one.source.partition} · offset ${one.source.offset}`,
    one.expectation && `expectation ${one.expectation}`,
    one.reason,
    one.cause && `failed in ${one.cause.label || one.cause.path}`,
    `micro-batch ${one.micro_batch}`,
  ];
  return h(
    "li",
    { class: "card sample has-failed", "data-number": one.number },
    h(
      "header",
      { class: "failure-head" },
      at,
      link,
      h("span", { class: "state bad" }, FATES[one.fate] ?? one.fate),
      h("span", { class: "muted" }, visible(facts.filter(Boolean).join(" · "))),
    ),
    h("div", { class: "side" }, messageCard(one)),
  );
}
