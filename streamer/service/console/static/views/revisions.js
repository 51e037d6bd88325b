/** What was deployed of a stream, when and by whom; and the way back. */

import { deployDialog } from "../parts/deploying.js";
import { diffTable } from "../parts/diff.js";
import { h, fill } from "../parts/dom.js";
import { effectBadge, judgementView } from "../parts/judgement.js";
import { YAML } from "../parts/languages.js";
import { TextEditor } from "../parts/text_editor.js";
import { toast } from "../parts/toast.js";

/** @param {HTMLElement} root @param {object} context as all views have it */
export async function show(root, { params, api }) {
  const path = `streams/${params.id}`;
  const body = h("tbody");
  const detail = h("section", { class: "card", "aria-live": "polite", "aria-label": "Revision" });
  let shown = 0;
  root.append(
    h(
      "div",
      { class: "revisions-page" },
      h(
        "section",
        { class: "card" },
        h("header", null, h("h2", null, "Revisions")),
        scrolled(table(body)),
      ),
      detail,
    ),
  );

  async function list() {
    const revisions = await api.get(`${path}/revisions`);
    fill(body, revisions.map(row));
    return revisions;
  }

  function row(revision) {
    const { number, time, author, source, chilled, judgement, current } = revision;
    const open = () => look(revision);
    return h(
      "tr",
      { "aria-current": number === shown ? "true" : null },
      h(
        "td",
        null,
        h(
          "button",
          {
            type: "button",
            class: "quiet number pick",
            "aria-label": `Show revision ${number}`,
            onclick: open,
          },
          number,
        ),
      ),
      h("td", null, h("time", { datetime: time, title: time }, when(time))),
      h("td", null, by(author)),
      h(
        "td",
        null,
        judgement ? effectBadge(judgement.effect) : h("span", { class: "effect" }, "first"),
      ),
      h(
        "td",
        null,
        current && h("span", { class: "effect good" }, "runs"),
        chilled && " chilled",
        source !== "api" && h("span", { class: "muted" }, ` ${source}`),
      ),
    );
  }

  async function look(revision) {
    shown = revision.number;
    for (const one of body.rows) {
      if (one.cells[0].textContent === String(shown)) one.setAttribute("aria-current", "true");
      else one.removeAttribute("aria-current");
    }
    const title = h("h2", null, `Revision ${revision.number}`);
    try {
      const [typed, running] = await Promise.all([
        api.get(`${path}/revisions/${revision.number}/config`),
        api.get(`${path}/config`),
      ]);
      if (shown !== revision.number) return;
      fill(
        detail,
        h("header", null, title, buttons(revision, typed, running)),
        h("div", { class: "card-body stack" }, content(revision, typed, running)),
      );
    } catch (error) {
      if (shown !== revision.number) return;
      fill(
        detail,
        h("header", null, title),
        h("p", { class: "wrong card-body" }, `It cannot be shown: ${error.message}`),
      );
    }
  }

  function buttons({ current, number }, typed, running) {
    if (current || !running.of_api) return null;
    const back = h("button", { type: "button" }, "Go back to it…");
    back.addEventListener("click", async () => {
      back.disabled = true;
      try {
        await rollback(number, typed, running);
      } catch (error) {
        toast(error.message, "bad");
      } finally {
        back.disabled = false;
      }
    });
    return h("div", { class: "buttons" }, back);
  }

  async function rollback(number, typed, running) {
    const judgement = await api.get(`${path}/revisions/${number}/judgement`);
    const answer = await deployDialog({
      title: `Go back to revision ${number}?`,
      yes: "Deploy it again",
      judgement,
      texts: [running.text, typed.text, "Changed lines"],
      deploy: ({ chilled, ...query }, timeout) =>
        api.post(`${path}/rollback`, { query: { ...query, revision: number }, timeout }),
    });
    if (!answer) return;
    toast(
      `Revision ${answer.revision}, which is ${number} again, is deployed: ${answer.judgement.effect}.`,
    );
    const [newest] = await list();
    await look(newest);
  }

  function content({ current, number, judgement }, typed, running) {
    const editor = new TextEditor({
      label: `Config of revision ${number}`,
      text: typed.text,
      language: YAML,
      readOnly: true,
      rows: 18,
    });
    return [
      judgement && h("div", null, h("h3", null, "Effect"), judgementView(judgement)),
      !current &&
        h(
          "div",
          null,
          h("h3", null, "What differs from the one that runs"),
          diffTable(running.text, typed.text, "Changed lines, from the one that runs"),
        ),
      h("div", null, h("h3", null, "Config"), editor.element),
    ];
  }

  const revisions = await list();
  await look(revisions.find((one) => one.current) ?? revisions[0]);
}

function table(body) {
  const heads = ["Number", "Deployed", "By", "Change", "State"];
  return h(
    "table",
    { class: "list" },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        heads.map((one) => h("th", { scope: "col" }, one)),
      ),
    ),
    body,
  );
}

function scrolled(element) {
  return h("div", { class: "table-room" }, element);
}

function when(time) {
  return new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

/** Who has deployed: of somebody unknown there is the address alone. */
function by(author) {
  if (!author) return h("span", { class: "muted", title: "Not known: the service had not asked who deployed." }, "–");
  return author.startsWith("(") ? h("span", { title: "The address: the service did not ask for a user." }, author.slice(1, -1)) : author;
}
