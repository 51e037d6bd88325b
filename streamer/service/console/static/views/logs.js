/** A stream's log. */

import { logView } from "../parts/log_view.js";

/** @param {HTMLElement} root @param {object} context as all views have it */
export function show(root, { params, api, onLeave }) {
  return logView(root, { path: `streams/${params.id}/logs`, name: `${params.id}-log`, api, onLeave });
}
