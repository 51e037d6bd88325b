/** Trials of a config before a deploy: its tests, a timeline, a tap and a dry run, beside its text. */

import { h, fill } from "./dom.js";
import { visible } from "./outside_text.js";
import { checksView, stagesView, testsView, timelineView } from "./trial_results.js";

const LONGEST = 120_000; // ms: a trial may wait for others.
const KINDS = {
  tests: {
    label: "Tests",
    about: "Runs the section tests of this config, and the tests in files beside it.",
    view: testsView,
  },
  timeline: {
    label: "Timeline",
    about: "Shows the windows that the messages fall into, when each closes, and what is dropped.",
    view: timelineView,
    messages: true,
    arrival: true,
  },
  tap: {
    label: "Tap",
    about:
      "Shows the messages before and after each component. The output is given nothing; a " +
      "processor that calls another system does call it.",
    view: stagesView,
    messages: true,
  },
  "dry-run": {
    label: "Dry run",
    about: "Connects each input and output. No message is read or written.",
    view: checksView,
  },
};

/**
 * The card that tries the config in an editor.
 * @param {object} given
 * @param {string} given.id of the stream, whose secrets marks stand for; empty for a new one
 * @param {import("./text_editor.js").TextEditor} given.editor
 * @param {import("../api.js").Api} given.api
 * @param {{messages: string, keep: (messages: string) => void}} given.kept pasted messages
 * @param {(stop: () => void) => void} given.onLeave
 * @returns {HTMLElement}
 */
export function trialsCard({ id, editor, api, kept, onLeave }) {
  const state = h("span", { class: "muted", role: "status" });
  const about = h("p", { class: "muted" });
  const results = h("div", { class: "stack trial-results" });
  const messages = h("textarea", {
    class: "mono trial-messages",
    rows: 5,
    wrap: "off",
    spellcheck: "false",
    placeholder: '{"id": 1, "at": "2026-01-01T00:00:10Z"}',
  });
  messages.value = kept.messages;
  messages.addEventListener("input", () => kept.keep(messages.value));
  const clock = field("First message arrives at", "2026-01-01T00:00:00Z");
  const step = field("Time between messages", "500ms");
  const arrival = h(
    "details",
    null,
    h("summary", null, "Arrival times"),
    h("p", { class: "muted" }, "Without these, a message arrives at its event time."),
    h("div", { class: "trial-arrival" }, clock.label, step.label),
  );
  const area = h(
    "div",
    { class: "stack" },
    h("label", { class: "field" }, "Messages, one a line", messages),
    arrival,
  );
  const run = h("button", { type: "button", class: "main", onclick: () => go() }, "Run");
  const radios = Object.entries(KINDS).map(([kind, { label }]) =>
    h(
      "label",
      { class: "trial-kind" },
      h("input", { type: "radio", name: "trial-kind", value: kind, onchange: () => choose(kind) }),
      h("span", null, label),
    ),
  );
  const card = h(
    "section",
    { class: "card trials", "aria-labelledby": "trials-title" },
    h("header", null, h("h2", { id: "trials-title" }, "Try before a deploy"), state),
    h(
      "div",
      { class: "card-body stack" },
      h("div", { class: "trial-kinds", role: "radiogroup", "aria-label": "Kind of trial" }, radios),
      about,
      area,
      h("div", { class: "buttons" }, run),
      results,
    ),
  );
  let chosen = "";
  let running = new AbortController();
  onLeave(() => running.abort());

  function choose(kind) {
    chosen = kind;
    running.abort();
    radios.forEach((one) => {
      const radio = one.querySelector("input");
      radio.checked = radio.value === kind;
    });
    about.textContent = KINDS[kind].about;
    area.hidden = !KINDS[kind].messages;
    arrival.hidden = !KINDS[kind].arrival;
    tell("", "");
    fill(results);
  }

  function tell(text, style = "muted") {
    state.textContent = text;
    state.className = style;
  }

  async function go() {
    const kind = KINDS[chosen];
    running.abort();
    running = new AbortController();
    const { signal } = running;
    tell("Running…");
    const body = { config: editor.text, stream: id };
    if (kind.messages) body.messages = messages.value;
    if (kind.arrival) Object.assign(body, { clock: clock.input.value, step: step.input.value });
    try {
      const path = `console/trial/${chosen}`;
      const answer = await api.post(path, { body, signal, timeout: LONGEST });
      if (signal.aborted) return;
      const { nodes, text, good } = kind.view(answer, editor);
      tell(text, good ? "good" : "bad");
      fill(results, problems(answer), nodes);
    } catch (error) {
      if (signal.aborted) return;
      tell("Not run", "bad");
      const [first, ...others] = error.findings ?? [];
      const more = others.length ? ` (and ${others.length} more)` : "";
      fill(
        results,
        h(
          "p",
          { class: "wrong" },
          first ? ["Fix the errors first: ", visible(first), more] : error.message,
        ),
      );
    }
  }

  choose("tests");
  return card;
}

function problems({ problem, cut, left_out: leftOut }) {
  return [
    problem && h("p", { class: "wrong" }, problem),
    cut && h("p", { class: "warn" }, "There is more than is shown here."),
    leftOut > 0 &&
      h("p", { class: "warn" }, `${leftOut} more messages were left out: these are the first ones.`),
  ];
}

function field(text, placeholder) {
  const attrs = { type: "text", class: "mono", autocomplete: "off", spellcheck: "false" };
  const input = h("input", { ...attrs, placeholder });
  return { input, label: h("label", { class: "field" }, text, input) };
}
