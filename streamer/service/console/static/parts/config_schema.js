/** The JSON schema of configs, which is asked for once. */

let schema = null;
let asked = null;

/**
 * Return the schema; null while it is not there.
 * @param {import("../api.js").Api} api
 */
export function configSchema(api) {
  asked ??= api.get("schema").then(
    (found) => (schema = found),
    // Without it nothing is proposed, and that is all; it is asked for again later.
    () => (asked = null),
  );
  return schema;
}
