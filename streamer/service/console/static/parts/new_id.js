/** The id of a new stream, checked while it is typed. */

import { h } from "./dom.js";
import { later } from "./later.js";

const PAUSE = 250; // ms
const ID = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * The field, with what is wrong with its id below it.
 * @param {object} given
 * @param {import("../api.js").Api} given.api
 * @param {string} given.text of the field at first
 * @param {(text: string) => void} given.changed
 * @param {(stop: () => void) => void} given.onLeave
 * @returns {{element: HTMLElement, input: HTMLInputElement, check: () => Promise<string>}}
 *   `check` gives what is wrong, empty for nothing
 */
export function newIdField({ api, text, changed, onLeave }) {
  const typed = { type: "text", class: "mono", autocomplete: "off", spellcheck: "false" };
  const about = { id: "new-id-problem", class: "wrong", role: "status" };
  const input = h("input", { ...typed, placeholder: "orders_eu", "aria-describedby": about.id });
  const problem = h("span", about);
  input.value = text;
  const element = h("label", { class: "field new-name" }, "Id", input, problem);
  const look = later((signal) => check(signal), PAUSE, onLeave);
  input.addEventListener("input", () => {
    changed(input.value);
    look();
  });

  async function check(signal) {
    const name = input.value.trim();
    const found = name ? await wrongWith(name, signal) : "";
    if (!signal?.aborted) {
      problem.textContent = found;
      input.setAttribute("aria-invalid", String(found !== ""));
    }
    return name ? found : "Give the stream an id.";
  }

  async function wrongWith(name, signal) {
    const bad = /[^A-Za-z0-9_-]/u.exec(name);
    if (bad) return `An id has letters, digits, _ and -; found ${quoted(bad[0])}.`;
    if (!ID.test(name)) return `An id has at most 128 letters; found ${name.length}.`;
    const query = { id: name };
    const { problem } = await api.ask("GET", "console/new-id", { query, signal });
    return problem && `${problem[0].toUpperCase()}${problem.slice(1)}.`;
  }

  if (text) look(true);
  return { element, input, check };
}

function quoted(letter) {
  return letter === " " ? "a space" : `"${letter}"`;
}
