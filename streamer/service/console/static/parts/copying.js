/** Buttons that copy a text. */

import { h } from "./dom.js";
import { toast } from "./toast.js";

/**
 * Return a button that copies what `text` returns when it is pressed.
 * @param {string} label
 * @param {() => string} text
 */
export function copyingButton(label, text) {
  const button = h("button", { type: "button", onclick: press }, label);
  async function press() {
    const copied = await copyText(text());
    toast(copied ? "Copied." : "The browser does not allow copying here.", copied ? "good" : "bad");
    button.focus();
  }
  return button;
}

/** Copy a text, and return whether that was done. Without TLS browsers have the old way only. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
