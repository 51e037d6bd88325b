/** The client of the service's API, and who one is to it. */

const KEPT = "streamer.authorization";
const TIMEOUT = 30_000;

/** The service said no. */
export class ApiError extends Error {
  /**
   * @param {number} status of the answer
   * @param {string} message what to show
   * @param {any} body the answer, read if it was JSON
   */
  constructor(status, message, body) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.body = body;
  }

  /** The findings about a config that is not right. @returns {string[]} */
  get findings() {
    return Array.isArray(this.body?.lint_errors) ? this.body.lint_errors : [];
  }
}

/** The service does not answer. */
export class AwayError extends Error {
  constructor() {
    super("The service does not answer.");
    this.name = "AwayError";
  }
}

/** Asks the API. Paths are relative to the page, so that it may stand behind any prefix. */
export class Api {
  /**
   * @param {URL} base the page's directory
   * @param {(away: boolean) => void} told hears after each request whether the service is away
   * @param {(schemes: string[]) => void} refused hears that one has to say who one is, and how
   */
  constructor(base, told, refused) {
    this.base = base;
    this.told = told;
    this.refused = refused;
  }

  /** Whether one has said who one is. */
  get signedIn() {
    return sessionStorage.getItem(KEPT) !== null;
  }

  /** How one has said who one is. @returns {"" | "basic" | "bearer"} */
  get scheme() {
    const kind = (sessionStorage.getItem(KEPT) ?? "").split(" ")[0].toLowerCase();
    return kind === "basic" || kind === "bearer" ? kind : "";
  }

  /** The address of a request. @param {string} path @param {Record<string, any>} query @returns {URL} */
  address(path, query) {
    const url = new URL(path, this.base);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) url.searchParams.set(name, value);
    }
    return url;
  }

  /** Ask as somebody from now on; null for nobody. @param {string | null} header */
  signIn(header) {
    if (header === null) sessionStorage.removeItem(KEPT);
    else sessionStorage.setItem(KEPT, header);
  }

  /**
   * Ask, and return the answer: read if it is JSON, else its text.
   * @param {string} method
   * @param {string} path without a slash at its start; its parts by `encodeURIComponent`
   * @param {{query?: Record<string, any>, body?: any, yaml?: string, signal?: AbortSignal,
   *   timeout?: number, plain?: boolean, file?: boolean}} [more] `body` is sent as JSON, `yaml` as
   *   it is; timeout in ms; `plain` gives the answer's text, read or not; `file` its blob and headers
   * @throws {ApiError | AwayError}
   */
  async ask(method, path, more = {}) {
    const { query = {}, body, yaml, signal, timeout = TIMEOUT, plain = false, file = false } = more;
    const url = this.address(path, query);
    const headers = { Accept: "application/json", "X-Requested-With": "XMLHttpRequest" };
    const who = sessionStorage.getItem(KEPT);
    if (who !== null) headers.Authorization = who;
    if (yaml !== undefined) headers["Content-Type"] = "application/yaml";
    else if (body !== undefined) headers["Content-Type"] = "application/json";
    const sent = yaml ?? (body === undefined ? undefined : JSON.stringify(body));
    const signals = [AbortSignal.timeout(timeout), ...(signal ? [signal] : [])];
    let response;
    let text = "";
    try {
      response = await fetch(url, {
        method,
        headers,
        body: sent,
        cache: "no-store",
        signal: AbortSignal.any(signals),
      });
      if (file && response.ok) return { blob: await response.blob(), headers: response.headers };
      text = await response.text();
    } catch (error) {
      if (signal?.aborted) throw error;
      this.told(true);
      throw new AwayError();
    }
    this.told(false);
    const read = readable(response, text);
    if (response.ok) return plain ? text : read;
    if (response.status === 401) this.refused(schemesOf(response.headers.get("WWW-Authenticate") ?? ""));
    throw new ApiError(response.status, meaning(response.status, read), read);
  }

  /** @param {string} path @param {Record<string, any>} [query] */
  get(path, query) {
    return this.ask("GET", path, { query });
  }

  /** @param {string} path @param {object} [more] see `ask` */
  post(path, more) {
    return this.ask("POST", path, more);
  }

  /** @param {string} path @param {object} [more] see `ask` */
  put(path, more) {
    return this.ask("PUT", path, more);
  }

  /** @param {string} path @param {object} [more] see `ask` */
  patch(path, more) {
    return this.ask("PATCH", path, more);
  }

  /** @param {string} path @param {object} [more] see `ask` */
  delete(path, more) {
    return this.ask("DELETE", path, more);
  }
}

/** How one may say who one is, by the challenge of a refusal. */
function schemesOf(challenge) {
  const basic = /^xBasic /.test(challenge) ? ["basic"] : [];
  return /(^|", )Bearer$/.test(challenge) ? [...basic, "bearer"] : basic;
}

function readable(response, text) {
  if (!(response.headers.get("Content-Type") ?? "").includes("json")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function meaning(status, read) {
  if (typeof read === "string" && read.trim()) return read.trim().replace(/^Error: /, "");
  if (typeof read?.error === "string") return read.error;
  if (Array.isArray(read?.lint_errors)) return read.lint_errors.join("\n");
  return `The service answered ${status}.`;
}
