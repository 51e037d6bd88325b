/** The pages: their addresses behind the `#`, and the modules of `views/` that show them. */

/**
 * A page.
 * @typedef {object} Route
 * @property {RegExp} path matches the address; its named groups are the view's `params`
 * @property {string} view the module's name
 * @property {string} title of the window
 * @property {string} [nav] the link's text in the header, if it stands there
 * @property {string} [href] the link's address
 */

const ID = "(?<id>[A-Za-z0-9_-]+)";

/** @type {Route[]} */
export const routes = [
  { path: /^\/?$/, view: "streams", title: "Streams", nav: "Streams", href: "#/" },
  { path: new RegExp(`^/streams/${ID}(/(?<tab>[a-z]+))?$`), view: "stream", title: "Stream" },
  { path: /^\/new$/, view: "editor", title: "New stream" },
  { path: /^\/service$/, view: "service", title: "Service", nav: "Service", href: "#/service" },
  { path: /^\/playground$/, view: "playground", title: "Bloblang playground", nav: "Playground", href: "#/playground" },
  { path: /^\/docs(\/(?<page>[\w.-]+)(\/(?<at>[^/]+))?)?$/, view: "docs", title: "Documentation", nav: "Docs", href: "#/docs" },
];

/**
 * The tabs of a stream's page: `name` in the address, and the module of `views/` that fills it.
 * @type {{name: string, label: string, view: string}[]}
 */
export const tabs = [
  { name: "", label: "Overview", view: "overview" },
  { name: "history", label: "History", view: "history" },
  { name: "messages", label: "Messages", view: "messages" },
  { name: "failed", label: "Failed", view: "failed_messages" },
  { name: "logs", label: "Logs", view: "logs" },
  { name: "config", label: "Config", view: "editor" },
  { name: "revisions", label: "Revisions", view: "revisions" },
  { name: "canary", label: "Canary", view: "canary" },
  { name: "results", label: "Results", view: "results" },
];
