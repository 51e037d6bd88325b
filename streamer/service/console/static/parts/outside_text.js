/** Texts from outside, safe to look at: nothing in them hides, or reorders what stands around them. */

import { h } from "./dom.js";
import { saveFile } from "./save_file.js";

// Controls but tab and line break, what hides or reorders, and halves of surrogate pairs.
const SLY =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\p{Cs}]/gu;
const NAMES = {
  0x00: "null",
  0x0d: "carriage return",
  0x1b: "escape",
  0xad: "soft hyphen",
  0x61c: "Arabic letter mark",
  0x200b: "zero width space",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "end of embedding",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "first strong isolate",
  0x2069: "end of isolate",
  0xfeff: "byte order mark",
};

/**
 * Return the pieces of a text, with a mark in the place of each character that hides or reorders.
 * @param {string} text
 * @param {boolean} [flat] marks take no room, where a text lies below another one
 * @returns {(string | HTMLElement)[]}
 */
export function visible(text, flat = false) {
  const pieces = [];
  let done = 0;
  for (const found of text.matchAll(SLY)) {
    if (found.index > done) pieces.push(text.slice(done, found.index));
    const [code, title] = [codeOf(found[0]), nameOf(found[0])];
    pieces.push(h("span", { class: flat ? "sly flat" : "sly", title }, !flat && code));
    done = found.index + found[0].length;
  }
  if (done < text.length) pieces.push(text.slice(done));
  return pieces;
}

/** The lines, from 1, that have such characters, and what these are. @returns {Map<number, string>} */
export function slyLines(lines) {
  const found = new Map();
  lines.forEach((line, index) => {
    if (line.search(SLY) < 0) return;
    const names = new Set([...line.matchAll(SLY)].map(([one]) => nameOf(one)));
    found.set(index + 1, [...names].join(", "));
  });
  return found;
}

/** A value by itself, so that its direction is nothing to what stands beside it. */
export function isolated(text, attrs = null) {
  return h("bdi", attrs, visible(text));
}

/**
 * A value of which the service has given the beginning only, and how to get the whole.
 * @param {string} text
 * @param {number | undefined} length of the whole, if it was cut
 */
export function beginning(text, length) {
  if (!length) return visible(text);
  return [...visible(text), h("span", { class: "cut" }, `… ${size(length - text.length)} more`)];
}

/** A button that saves a text which is got when it is pressed. @param {() => Promise<string>} whole */
export function saveButton(label, name, whole) {
  const told = h("span", { class: "wrong", role: "status" });
  const button = h("button", { type: "button", class: "quiet", onclick: press }, label);
  async function press() {
    button.disabled = true;
    told.textContent = "";
    try {
      saveFile(name, new Blob([await whole()]));
    } catch (error) {
      told.textContent = error.message;
    } finally {
      button.disabled = false;
    }
  }
  return h("span", { class: "save" }, button, told);
}

function size(letters) {
  return letters < 10_000 ? `${letters} characters` : `${Math.round(letters / 1000)} kB`;
}

function codeOf(one) {
  return `U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

function nameOf(one) {
  const name = NAMES[one.codePointAt(0)];
  return name ? `${codeOf(one)} ${name}` : codeOf(one);
}
