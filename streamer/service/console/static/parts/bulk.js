/** Several streams of a list, paused or resumed together. */

import { confirm } from "./dialog.js";
import { h, say } from "./dom.js";
import { toast } from "./toast.js";
import { number } from "./words.js";

const AT_ONCE = 4;

/**
 * Return what selects streams of a list, and the buttons for those that are selected.
 * @param {import("../api.js").Api} api
 * @param {() => void} done is called when something was done
 * @returns {{element: HTMLElement, box: (row: object) => HTMLInputElement,
 *   show: (rows: object[]) => void}} `show` takes the rows to be seen: others lose their selection
 */
export function bulkActions(api, done) {
  const boxes = new Map();
  let rows = [];
  const all = h("input", { type: "checkbox", onchange: () => select(all.checked) });
  const count = h("span", { role: "status" });
  const pause = h("button", { type: "button", onclick: () => work("pause", "paused") }, "Pause selected");
  const resume = h("button", { type: "button", onclick: () => work("resume", "running again") }, "Resume selected");
  const element = h("div", { class: "tools bulk" }, h("label", { class: "check" }, all, "Select all shown"), pause, resume, count);

  function selected() {
    return rows.filter((row) => boxes.get(row.id)?.checked);
  }

  function select(checked) {
    for (const row of rows) if (boxes.has(row.id)) boxes.get(row.id).checked = checked;
    tell();
  }

  function tell() {
    const chosen = selected();
    pause.disabled = !chosen.some((row) => row.active);
    resume.disabled = !chosen.some((row) => !row.active);
    const choosable = rows.filter((row) => boxes.has(row.id));
    all.checked = choosable.length > 0 && chosen.length === choosable.length;
    all.indeterminate = chosen.length > 0 && !all.checked;
    say(count, chosen.length ? `${number(chosen.length, "stream")} selected` : "");
  }

  function box(row) {
    if (!boxes.has(row.id)) boxes.set(row.id, h("input", { type: "checkbox", "aria-label": `Select ${row.id}`, onchange: tell }));
    return boxes.get(row.id);
  }

  function show(shown) {
    const ids = new Set(shown.map((row) => row.id));
    for (const [id, one] of boxes) if (!ids.has(id)) one.checked = false;
    rows = shown;
    tell();
  }

  async function work(action, word) {
    const ids = selected()
      .filter((row) => row.active === (action === "pause"))
      .map((row) => row.id);
    if (action === "pause" && !(await confirmed(ids))) return;
    pause.disabled = resume.disabled = true;
    const failures = [];
    const waiting = [...ids];
    const take = async () => {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
        await api.post(`streams/${id}/${action}`).catch((error) => failures.push(`${id}: ${error.message}`));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, take));
    const good = ids.length - failures.length;
    if (good) toast(`${number(good, "stream")} ${good === 1 ? "is" : "are"} ${word}.`);
    if (failures.length) toast(`Not ${word}:\n${failures.join("\n")}`, "bad");
    done();
    tell();
  }

  return { element, box, show };
}

function confirmed(ids) {
  return confirm({
    title: `Pause ${number(ids.length, "stream")}?`,
    text: [h("p", null, ids.join(", ")), h("p", null, "Each stops after the micro-batch in hand. Offsets and open windows stay.")],
    yes: "Pause",
  });
}
