/** Files that the browser saves. */

import { h } from "./dom.js";

const KEPT = 60_000; // ms in which the browser begins to read it.

/**
 * Have the browser save a file.
 * @param {string} name of the file
 * @param {Blob} blob its content
 */
export function saveFile(name, blob) {
  const href = URL.createObjectURL(blob);
  const link = h("a", { href, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(href), KEPT);
}
