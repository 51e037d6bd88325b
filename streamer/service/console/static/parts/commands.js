/** What the console asks for, as commands of a shell: without any secret, which variables hold. */

/**
 * Return a request as a command of curl.
 * @param {import("../api.js").Api} api
 * @param {string} path
 * @param {Record<string, any>} query
 * @param {string[]} [more] options
 * @returns {string}
 */
export function curlCommand(api, path, query, more = []) {
  const options = ["-sS", ...more, ...credentials(api.scheme)];
  return ["curl", ...options, quoted(api.address(path, query).href)].join(" ");
}

/**
 * Return a query of results as a command of `streamer`, which takes credentials from the variables
 * STREAMER_TOKEN and STREAMER_USER.
 * @param {import("../api.js").Api} api
 * @param {string} id of the stream
 * @param {Record<string, any>} query as the API has it
 * @returns {string}
 */
export function queryCommand(api, id, query) {
  const url = api.address("", {}).href.replace(/\/$/, "");
  const words = ["streamer", "query", "--stream", quoted(id), "--url", quoted(url)];
  for (const name of ["key", "from", "to", "order", "sql", "limit"]) {
    if (query[name]) words.push(`--${name}`, quoted(query[name]));
  }
  if (query.revisions === "all") words.push("--all-revisions");
  return words.join(" ");
}

function credentials(scheme) {
  if (scheme === "bearer") return ["-H", '"Authorization: Bearer $STREAMER_TOKEN"'];
  return scheme === "basic" ? ["-u", '"$STREAMER_USER"'] : [];
}

/** A word of a shell, whatever is in it. */
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", `'\\''`)}'`;
}
