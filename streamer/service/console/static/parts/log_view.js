/** A log as it grows: filtered, followed, saved, and read from error to error. */

import { h, say } from "./dom.js";
import { beginning, isolated, saveButton } from "./outside_text.js";
import { poll } from "./poll.js";
import { clock, number } from "./words.js";

const INTERVAL = 1_000;
const MOST = 2_000;
const CUT = 4_000; // Characters of a value that are shown.
const ERRORS = ["FATAL", "ERROR"];
const LEVELS = ["FATAL", "ERROR", "WARN", "INFO", "DEBUG"];

/**
 * Show a log, for as long as one looks.
 * @param {HTMLElement} root
 * @param {{path: string, name: string, api: import("../api.js").Api,
 *   onLeave: (stop: () => void) => void}} context `path` of the log, and the `name` of its file
 */
export async function logView(root, { path, name, api, onLeave }) {
  const level = h(
    "select",
    { "aria-label": "Levels" },
    h("option", { value: "DEBUG" }, "All levels"),
    h("option", { value: "INFO" }, "Info and above"),
    h("option", { value: "WARN" }, "Warnings and errors"),
    h("option", { value: "ERROR" }, "Errors"),
  );
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter lines" });
  const follow = h("input", { type: "checkbox", checked: true });
  const next = h("button", { type: "button", onclick: jump }, "Next error");
  const save = saveButton("Download", `${name}.jsonl`, async () => {
    const all = await api.get(path);
    return all.map((line) => `${JSON.stringify(line)}\n`).join("");
  });
  const shown = h("p", { class: "muted", role: "status" });
  const lines = h("ol");
  // It may grow quickly, so that it is not read aloud as it does.
  const room = h("div", { class: "card log", role: "log", "aria-live": "off", "aria-label": "Log", tabindex: "0" }, lines);
  const tools = h("div", { class: "tools" }, level, filter, h("label", { class: "check" }, follow, "Follow"), next, save, shown);
  root.append(tools, room);
  let newest = 0;

  function fits(item) {
    const text = filter.value.trim().toLowerCase();
    const grave = LEVELS.indexOf(item.dataset.level) <= LEVELS.indexOf(level.value);
    return grave && (!text || item.textContent.toLowerCase().includes(text));
  }

  function told() {
    const seen = [...lines.children].filter((item) => !item.hidden).length;
    const text = lines.children.length ? `${number(seen, "line")} of ${lines.children.length}` : "Nothing has been logged yet.";
    if (shown.textContent !== text) shown.textContent = text;
  }

  function draw() {
    for (const item of lines.children) item.hidden = !fits(item);
    told();
    end();
  }

  function end() {
    if (follow.checked) room.scrollTop = room.scrollHeight;
  }

  /** Go to the first error behind the one that was gone to last, or from the beginning again. */
  function jump() {
    const errors = [...lines.children].filter((item) => !item.hidden && ERRORS.includes(item.dataset.level));
    if (!errors.length) return say(shown, "No error in the lines shown.");
    const last = errors.findIndex((item) => item.classList.contains("jumped"));
    const target = errors[(last + 1) % errors.length];
    for (const item of errors) item.classList.toggle("jumped", item === target);
    follow.checked = false;
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
    target.scrollIntoView({ block: "center" });
  }

  async function whole(number) {
    const [line] = await api.get(path, { number });
    if (!line) throw new Error("The service no longer keeps it.");
    return JSON.stringify(line, null, 2);
  }

  async function look() {
    const found = await api.get(path, { after: newest, cut: CUT });
    if (!found.length) return told();
    newest = found.at(-1).number;
    const items = found.map((line) => drawn(line, () => whole(line.number)));
    for (const item of items) item.hidden = !fits(item);
    lines.append(...items);
    while (lines.children.length > MOST) lines.firstChild.remove();
    told();
    end();
  }

  level.addEventListener("change", draw);
  filter.addEventListener("input", draw);
  follow.addEventListener("change", end);
  room.addEventListener("scroll", () => {
    // Who scrolls up wants to read; who comes back to the end wants to see what comes.
    follow.checked = room.scrollTop + room.clientHeight >= room.scrollHeight - 8;
  });
  await poll(look, INTERVAL, onLeave);
}

function drawn(line, wholeOf) {
  const cut = line.cut ?? {};
  const fields = Object.entries(line.fields).map(([name, value]) =>
    h(
      "span",
      { class: "field-of-line" },
      isolated(name),
      "=",
      h("bdi", { class: "field-value" }, beginning(textOf(value), cut[`fields.${name}`])),
    ),
  );
  return h(
    "li",
    { "data-level": line.level, class: `level-${line.level.toLowerCase()}` },
    h("time", { datetime: line.time, title: line.time }, clock(Date.parse(line.time))),
    h("b", null, line.level),
    h(
      "span",
      { class: "line-text" },
      h("bdi", null, beginning(line.msg, cut.msg)),
      " ",
      fields,
      line.cut && saveButton("Save the whole", `line-${line.number}.json`, wholeOf),
    ),
  );
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}
