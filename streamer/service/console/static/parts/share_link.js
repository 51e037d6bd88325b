/** The playground's state in an address: all of it stands behind the `#`, which no server is sent. */

import { toast } from "./toast.js";

const MOST = 16_000; // characters of an address; some programs cut longer ones.
const TEXTS = ["mapping", "input", "metadata", "groupBy"];
const SWITCHES = ["raw", "batch"];

/** Copy the address of a state, and go there. @param {Record<string, string | boolean>} state */
export async function share(state) {
  const address = shareAddress(state);
  if (!address) {
    toast("Not copied: this is too long for a link. Shorten the input.", "bad");
    return;
  }
  // The page stays: it shows this state.
  history.replaceState(null, "", address);
  const url = new URL(address, document.location).href;
  try {
    await navigator.clipboard.writeText(url);
    toast("The link is copied. It holds mapping, input and metadata.");
  } catch {
    toast("The browser does not let this page copy; the link is in its address bar.");
  }
}

/** The address of a state; null when it is too long. @returns {string | null} */
export function shareAddress(state) {
  const kept = Object.fromEntries([...TEXTS, ...SWITCHES].map((name) => [name, state[name]]));
  const bytes = new TextEncoder().encode(JSON.stringify(kept));
  if (bytes.length > MOST) return null;
  const letters = btoa(String.fromCharCode(...bytes));
  const encoded = letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return encoded.length > MOST ? null : `#/playground?state=${encoded}`;
}

/** Read a state that an address holds; null when it is none. @param {string} encoded */
export function readShared(encoded) {
  if (encoded.length > MOST || !/^[\w-]+$/.test(encoded)) return null;
  try {
    const letters = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(letters, (one) => one.charCodeAt(0));
    const found = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    const right =
      TEXTS.every((name) => typeof found?.[name] === "string") &&
      SWITCHES.every((name) => typeof found[name] === "boolean");
    return right
      ? Object.fromEntries([...TEXTS, ...SWITCHES].map((name) => [name, found[name]]))
      : null;
  } catch {
    return null;
  }
}
