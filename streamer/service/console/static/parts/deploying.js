/** The question before a deploy, with all that it comes to, and the deploy itself. */

import { h, fill } from "./dom.js";
import { diffTable } from "./diff.js";
import { judgementView } from "./judgement.js";

const LONGEST = 610_000; // ms: a deploy may wait for a micro-batch.

/**
 * Ask whether and how a change is to be made, make it, and return what the service answered; null
 * when it was not made. What goes wrong is thrown after the dialog has closed.
 * @param {object} what
 * @param {string} what.title of the dialog
 * @param {string} what.yes says what will be done
 * @param {object | null} what.judgement of the change; null for a new stream
 * @param {[string, string, string] | null} what.texts the one that runs, the other one, a label
 * @param {any} [what.warning] is shown first
 * @param {boolean} [what.chilled] whether it has findings that it can run with
 * @param {(query: object, timeout: number) => Promise<any>} what.deploy does it
 * @param {(query: object, timeout: number) => Promise<any>} [what.canary] begins a canary instead
 */
export function deployDialog({ title, yes, judgement, texts, warning, chilled = false, deploy, canary }) {
  const reset = judgement?.effect === "reset";
  const go = h(
    "button",
    { type: "submit", class: reset ? "danger" : "main", disabled: reset },
    yes,
  );
  const cancel = h("button", { type: "button" }, "Cancel");
  const progress = h("p", { class: "muted deploy-progress", role: "status" });
  const choice = reset && resetChoice(() => (go.disabled = false));
  const back = judgement && checkbox("Roll back automatically if it fails in the first 2 minutes");
  const trial = canary && judgement && !reset ? canaryChoice((chosen) => (go.textContent = chosen ? "Begin the canary" : yes)) : null;
  const form = h(
    "form",
    { method: "dialog" },
    h("h2", { id: "deploy-title" }, title),
    warning,
    judgement && judgementView(judgement),
    texts && diffTable(...texts),
    chilled && h("p", { class: "warn" }, "The config has findings that do not prevent a run (chilled)."),
    choice,
    back?.label,
    trial?.element,
    progress,
    h("div", { class: "buttons end" }, cancel, go),
  );
  const dialog = h("dialog", { class: "wide", "aria-labelledby": "deploy-title" }, form);
  return new Promise((resolve, reject) => {
    let busy = false;
    let outcome = () => resolve(null);
    cancel.addEventListener("click", () => dialog.close());
    dialog.addEventListener("cancel", (event) => busy && event.preventDefault());
    dialog.addEventListener("close", () => {
      dialog.remove();
      outcome();
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (busy) return;
      busy = cancel.disabled = go.disabled = true;
      const query = {
        chilled: chilled || null,
        on_reset: form.elements.on_reset?.value || null,
        rollback_on_failure: back?.field.checked || null,
      };
      const stop = counting(progress);
      try {
        const answer = await (trial?.chosen() ? canary({ ...query, ...trial.query() }, LONGEST) : deploy(query, LONGEST));
        outcome = () => resolve(answer);
      } catch (error) {
        outcome = () => reject(error);
      } finally {
        stop();
        busy = false;
        dialog.close();
      }
    });
    document.body.append(dialog);
    dialog.showModal();
    (reset ? cancel : go).focus();
  });
}

function counting(element) {
  const began = Date.now();
  const tell = () => {
    const seconds = Math.round((Date.now() - began) / 1000);
    const waits = "Deploying: the micro-batch in hand ends first";
    fill(
      element,
      h("progress", { "aria-label": "Deploying" }),
      ` ${waits}… `,
      h("span", { "aria-hidden": "true" }, `${seconds} s`),
    );
  };
  tell();
  const timer = setInterval(
    () => (element.lastChild.textContent = `${Math.round((Date.now() - began) / 1000)} s`),
    1000,
  );
  return () => clearInterval(timer);
}

function resetChoice(chosen) {
  const radio = (value, label, about) =>
    h(
      "label",
      { class: "choice" },
      h("input", { type: "radio", name: "on_reset", value, onchange: chosen }),
      h("span", null, h("b", null, label), h("span", { class: "muted" }, ` ${about}`)),
    );
  return h(
    "fieldset",
    { class: "choices" },
    h("legend", null, "What happens to the open windows?"),
    radio(
      "drain",
      "Drain",
      "Emits the open windows first, as they are; then starts empty from the same offsets.",
    ),
    radio("discard", "Discard", "Drops them."),
  );
}

/** The choice to compare windows before the deploy, with the rule that decides. */
function canaryChoice(changed) {
  const first = checkbox("Try it beside the stream first: a canary compares the windows of both");
  const windows = h("input", { type: "number", min: "1", value: "1000", required: true });
  const most = h("input", { type: "number", min: "0", value: "0", required: true });
  const rule = checkbox("Deploy it by itself if no more windows differ; else drop it");
  const settings = h(
    "div",
    { class: "canary-settings", hidden: true },
    h("label", null, "Windows ", windows),
    h("label", null, "May differ ", most),
    rule.label,
  );
  const disable = (is) => [windows, most].forEach((one) => (one.disabled = is));
  disable(true);
  first.field.addEventListener("change", () => {
    settings.hidden = !first.field.checked;
    disable(settings.hidden);
    changed(first.field.checked);
  });
  return {
    element: h("div", { class: "canary-choice" }, first.label, settings),
    chosen: () => first.field.checked,
    query: () => ({
      windows: windows.value,
      max_differences: most.value,
      promote: rule.field.checked ? "auto" : "manual",
    }),
  };
}

function checkbox(text) {
  const field = h("input", { type: "checkbox" });
  return { field, label: h("label", { class: "choice" }, field, h("span", null, text)) };
}
