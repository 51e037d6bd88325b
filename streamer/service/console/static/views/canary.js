/** The canary of a stream: how far it is, and which fields of which windows differ. */

import { confirm } from "../parts/dialog.js";
import { h, fill, say } from "../parts/dom.js";
import { effectBadge } from "../parts/judgement.js";
import { visible } from "../parts/outside_text.js";
import { poll } from "../parts/poll.js";
import { toast } from "../parts/toast.js";
import { number } from "../parts/words.js";

const INTERVAL = 2_000;
const OPEN = ["starting", "comparing", "waiting"];
const STATES = {
  starting: "is starting",
  comparing: "runs beside the stream",
  waiting: "has ended: promote or drop it",
  promoting: "is being promoted",
  promoted: "was promoted",
  dropped: "was dropped",
};
const KINDS = {
  missing: ["The window", "emitted", null],
  added: ["The window", null, "emitted"],
};

/** @param {HTMLElement} root @param {object} context as all views have it */
export async function show(root, { params, api, onLeave }) {
  const { id } = params;
  const path = `streams/${id}/canary`;
  const note = h("p", { role: "status", class: "canary-state" });
  const facts = h("p", { class: "muted" });
  const promote = h("button", { type: "button", class: "main", onclick: () => decide(promoteIt) }, "Promote…");
  const drop = h("button", { type: "button", onclick: () => decide(dropIt) }, "Drop…");
  const buttons = h("div", { class: "buttons", hidden: true }, promote, drop);
  const notes = h("ul", { class: "canary-notes" });
  const body = h("tbody");
  const list = h(
    "div",
    { class: "table-room", role: "region", "aria-label": "Windows that differ", tabindex: "0", hidden: true },
    h(
      "table",
      { class: "list canary-differences" },
      h("caption", { class: "unseen" }, "Windows that differ"),
      h("thead", null, h("tr", null, ["Window", "Key", "Field", "Running", "Canary"].map(head))),
      body,
    ),
  );
  const more = h("p", { class: "muted" });
  const about = h(
    "p",
    { class: "muted" },
    "A canary runs a changed config on a copy of the open windows, without outputs. Begin one in the tab Config: Deploy, and then ",
    h("em", null, "Try it beside the stream first"),
    ". ",
    h("a", { href: "#/docs/canary" }, "Try a change beside a running stream"),
  );
  root.append(h("div", { class: "tools" }, note, buttons), facts, notes, list, more, about);

  async function look() {
    const { canary } = await api.get(path);
    if (canary) draw(canary);
    else say(note, "The stream has no canary.");
    buttons.hidden = !canary || !OPEN.includes(canary.state);
  }

  function draw(canary) {
    const reason = canary.reason ? `: ${canary.reason}` : "";
    say(note, `The canary ${STATES[canary.state] ?? canary.state}${reason}.`);
    const words = [
      `${canary.compared.toLocaleString()} of ${number(canary.windows, "window")} compared`,
      `${canary.different.toLocaleString()} different (${canary.max_differences.toLocaleString()} may be)`,
    ];
    if (canary.waiting) words.push(`${number(canary.waiting, "window")} of one revision only, so far`);
    if (canary.behind) words.push(`${number(canary.behind, "micro-batch", "micro-batches")} behind`);
    words.push(`beside revision ${canary.base_revision}`);
    words.push(canary.promote === "auto" ? "the rule decides" : "somebody decides");
    const said = JSON.stringify(canary);
    if (list.dataset.said === said) return;
    list.dataset.said = said;
    fill(facts, words.join(" · "), " ", effectBadge(canary.judgement.effect));
    fill(notes, canary.notes.map((one) => h("li", null, one)));
    fill(body, canary.differences.flatMap(rows));
    list.hidden = !canary.differences.length;
    const rest = canary.different - canary.differences.length;
    say(more, rest > 0 ? `And ${number(rest, "more window")} that differ.` : "");
  }

  async function decide(what) {
    promote.disabled = drop.disabled = true;
    try {
      await what();
      await again();
    } catch (error) {
      toast(error.message, "bad");
    } finally {
      promote.disabled = drop.disabled = false;
    }
  }

  async function promoteIt() {
    const text = "The change is deployed. The stream continues with its own open windows and offsets.";
    if (!(await confirm({ title: `Promote the canary of ${id}?`, text, yes: "Promote" }))) return;
    const { revision } = await api.post(`${path}/promote`, { timeout: 610_000 });
    toast(`Revision ${revision} of ${id} runs.`);
  }

  async function dropIt() {
    const text = "It ends, and the running revision stays.";
    if (!(await confirm({ title: `Drop the canary of ${id}?`, text, yes: "Drop" }))) return;
    await api.delete(path);
    toast(`The canary of ${id} is dropped.`);
  }

  const again = await poll(look, INTERVAL, onLeave);
}

function head(name) {
  return h("th", { scope: "col" }, name);
}

/** A row for each field of a window; the window itself stands in the first. */
function rows({ buffer, key, start, end, emit, kind, fields, field_count: count }) {
  const times = `${short(start)} – ${short(end)}`;
  const about = [buffer, emit === "final" ? "" : emit].filter(Boolean).join(", ");
  const found = KINDS[kind]
    ? [KINDS[kind]]
    : fields.map(({ path, old, new: now, row }) => [row ? `${path} (message ${row + 1})` : path, old, now]);
  if (count > fields.length) found.push([`and ${count - fields.length} more`, null, null]);
  return found.map(([field, old, now], index) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, index ? "" : [times, about && h("span", { class: "muted" }, ` ${about}`)]),
      h("td", null, index || key === null ? "" : visible(key)),
      h("td", null, h("code", null, visible(field))),
      value(old, "bad"),
      value(now, "good"),
    ),
  );
}

function value(text, tone) {
  return h("td", null, text === null ? h("span", { class: "muted" }, "–") : h("code", { class: tone }, visible(text)));
}

/** A time without the zone, which all have. */
function short(time) {
  return time.replace("T", " ").replace(/Z$/, "");
}
