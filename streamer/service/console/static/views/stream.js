/** A stream's page: what it is, what can be done to it, and the tab that is open. */

import { h, fill, say } from "../parts/dom.js";
import { poll } from "../parts/poll.js";
import { conditionMark, conditionPanel } from "../parts/condition.js";
import { labelButton, showLabels } from "../parts/stream_labels.js";
import { actions } from "../parts/state.js";
import { lasting, number } from "../parts/words.js";
import { tabs } from "../routes.js";

const INTERVAL = 2_000;

/**
 * @param {HTMLElement} root
 * @param {object} context as all views have it; `params.tab` is the tab's name
 */
export async function show(root, context) {
  const { params, api, navigate, onLeave } = context;
  const { id } = params;
  const mark = h("span");
  const labels = h("span", { class: "stream-labels" });
  const facts = h("p", { class: "muted facts" });
  const reason = h("p", { class: "notice", role: "status", hidden: true });
  const condition = conditionPanel(id);
  const nav = h("nav", { class: "tabs", "aria-label": "Parts of this page" });
  const panel = h("div", { class: "panel" });
  const into = tabPanel(nav, panel, context);
  let status = null;
  let buttons = null;
  let isOpen = false;
  let wanted = params;

  async function look() {
    status = await api.get(`streams/${id}/progress`);
    if (!buttons) {
      buttons = actions(id, () => status, api, (done) => {
        if (done === "deleted") navigate("#/");
        else again();
      });
      if (status.state !== "refused") {
        buttons.element.prepend(labelButton(id, api, (found) => showLabels(labels, found)));
        showLabels(labels, await api.get(`streams/${id}/labels`));
      }
      const head = h("div", { class: "head" }, h("h1", null, id), mark, facts, labels, buttons.element);
      root.append(head, reason, condition.element, nav, panel);
    }
    buttons.show();
    const said = `${status.condition.name} ${Boolean(status.refusal)}`;
    if (mark.dataset.said !== said) {
      mark.dataset.said = said;
      fill(mark, conditionMark(status));
    }
    say(facts, told(status));
    condition.show(status);
    reason.hidden = true;
    // A file that is refused has no stream: there is nothing to open but its findings.
    nav.hidden = panel.hidden = status.state === "refused";
    if (!nav.hidden && !isOpen) {
      isOpen = true;
      await into.open(wanted);
    }
  }

  function failed(error) {
    reason.hidden = false;
    reason.classList.add("bad");
    say(reason, error.status === 404 ? "This stream is not there any more." : error.message);
  }

  const again = await poll(look, INTERVAL, onLeave, failed);
  return {
    update(given) {
      if (given.id !== id) return false;
      wanted = given;
      if (!isOpen) return true;
      into.open(given).catch((error) => fill(panel, h("p", { class: "wrong" }, error.message)));
      return true;
    },
  };
}

function told({ active, uptime, restarts, source, revision }) {
  const words = revision ? [`revision ${revision}`] : [];
  if (source !== "api") words.push(source.split("/").at(-1));
  if (active) words.push(`up ${lasting(uptime)}`);
  if (restarts) words.push(number(restarts, "restart"));
  return words.join(" · ");
}

/** Open tabs, one after the other; what the last one has begun ends with it. */
function tabPanel(nav, panel, context) {
  let leaving = [];
  let turn = 0;

  function leave() {
    for (const stop of leaving) stop();
    leaving = [];
  }

  async function open(given) {
    const tab = tabs.find((one) => one.name === (given.tab ?? ""));
    if (!tab) throw new Error(`A stream's page has no tab ${given.tab}.`);
    leave();
    const mine = ++turn;
    fill(nav, tabs.map((one) => link(given.id, one, one === tab)));
    if (nav.dataset.opened) nav.querySelector("[aria-current]").focus({ preventScroll: true });
    nav.dataset.opened = "yes";
    nav.querySelector("[aria-current]").scrollIntoView({ block: "nearest", inline: "nearest" });
    const root = h("div", { class: "page" });
    fill(panel, root);
    const onLeave = (stop) => (mine === turn ? leaving.push(stop) : stop());
    const view = await import(`./${tab.view}.js`);
    if (mine === turn) await view.show(root, { ...context, params: given, onLeave });
  }

  context.onLeave(() => {
    turn += 1;
    leave();
  });
  return { open };
}

function link(id, { name, label }, here) {
  const href = `#/streams/${id}${name && `/${name}`}`;
  return h("a", { href, "aria-current": here ? "page" : null }, label);
}
