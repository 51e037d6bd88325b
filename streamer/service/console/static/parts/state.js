/** What can be done with a stream. */

import { AwayError } from "../api.js";
import { confirm } from "./dialog.js";
import { h } from "./dom.js";
import { toast } from "./toast.js";

/**
 * Return the buttons for a stream.
 * @param {string} id
 * @param {() => {state: string, active: boolean, source: string}} status as it is now
 * @param {import("../api.js").Api} api
 * @param {(done: string) => void} done hears what was done, such as `deleted`
 * @returns {{element: HTMLElement, show: () => void}}
 */
export function actions(id, status, api, done) {
  const move = h("button", { type: "button", onclick: () => work(status().active ? pause : resume) });
  const remove = h("button", { type: "button", class: "danger", onclick: () => work(erase) }, "Delete");
  const element = h("div", { class: "buttons" }, move, remove);

  async function work(what) {
    const focused = document.activeElement;
    try {
      const word = await what();
      if (word) {
        toast(`${id} is ${word}.`);
        done(word);
      }
    } catch (error) {
      const text = error instanceof AwayError ? error.message : `${id}: ${error.message}`;
      toast(text, "bad");
    } finally {
      busy(false);
      show();
      if (focused instanceof HTMLElement && focused.isConnected) focused.focus();
    }
  }

  function busy(is) {
    move.disabled = remove.disabled = is;
  }

  async function pause() {
    const yes = await confirm({
      title: `Pause ${id}?`,
      text: "It stops after the micro-batch in hand. Its offsets and open windows stay.",
      yes: "Pause",
    });
    if (!yes) return "";
    busy(true);
    await api.post(`streams/${id}/pause`);
    return "paused";
  }

  async function resume() {
    busy(true);
    await api.post(`streams/${id}/resume`);
    return "running again";
  }

  async function erase() {
    const yes = await confirm({
      title: `Delete ${id}?`,
      text: "It is stopped and removed, with its checkpoint, its open windows and its revisions. This cannot be undone.",
      yes: "Delete",
      danger: true,
      typed: id,
    });
    if (!yes) return "";
    busy(true);
    await api.delete(`streams/${id}`);
    return "deleted";
  }

  function show() {
    const { active, source } = status();
    const text = active ? "Pause" : "Resume";
    if (move.textContent !== text) move.textContent = text;
    move.setAttribute("aria-label", `${text} ${id}`);
    remove.setAttribute("aria-label", `Delete ${id}`);
    remove.hidden = source !== "api";
    // A file that is refused has no stream.
    move.hidden = status().state === "refused";
  }

  show();
  return { element, show };
}
