/** Drafts: texts that are typed and not deployed. They outlive a reload, and end with the tab. */

const PREFIX = "streamer.draft.";
const MOST = 1_000_000; // characters of one: no config has more.

/**
 * A draft.
 * @typedef {object} Draft
 * @property {string} [text] of the config
 * @property {number} [revision] that it began with
 * @property {string} [name] the id of a new stream, as far as it is typed
 * @property {string} [messages] pasted for trials
 */

/** Drafts that the browser does not keep, for lack of room or of permission. @type {Map<string, Draft>} */
const unkept = new Map();

/** Return a draft. @param {string} id @returns {Draft} empty without one */
export function readDraft(id) {
  if (unkept.has(id)) return { ...unkept.get(id) };
  try {
    const found = JSON.parse(sessionStorage.getItem(PREFIX + id) ?? "{}");
    return found && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

/**
 * Change a draft; what is undefined is left out of it.
 * @param {string} id
 * @param {Draft} changes
 * @returns {boolean} whether it outlives a reload
 */
export function changeDraft(id, changes) {
  const draft = { ...readDraft(id), ...changes };
  const text = JSON.stringify(draft);
  unkept.delete(id);
  if (text === "{}") {
    dropDraft(id);
    return true;
  }
  try {
    if (text.length > MOST) throw new RangeError("too long");
    sessionStorage.setItem(PREFIX + id, text);
    return true;
  } catch {
    sessionStorage.removeItem(PREFIX + id);
    unkept.set(id, draft);
    return false;
  }
}

/** Forget a draft. @param {string} id */
export function dropDraft(id) {
  unkept.delete(id);
  sessionStorage.removeItem(PREFIX + id);
}

/** Forget all drafts: who signs in next is somebody else. */
export function dropDrafts() {
  unkept.clear();
  for (const key of Object.keys(sessionStorage))
    if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
}
