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
 */
export function deployDialog({ title, yes, judgement, texts, warning, chilled = false, deploy }) {
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
        const answer = await deploy(query, LONGEST);
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

function checkbox(text) {
  const field = h("input", { type: "checkbox" });
  return { field, label: h("label", { class: "choice" }, field, h("span", null, text)) };
}
