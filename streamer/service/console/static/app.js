/** The console: finds the page that an address is of, and shows it. */

import { Api, ApiError, AwayError } from "./api.js";
import { h, fill } from "./parts/dom.js";
import { dropDrafts } from "./parts/drafts.js";
import { signIn } from "./parts/sign_in.js";
import { themeSwitch } from "./parts/theme_switch.js";
import { routes } from "./routes.js";

const main = document.getElementById("main");
const away = document.getElementById("away");
const signOut = document.getElementById("sign-out");

const api = new Api(new URL(".", document.location), tell, askWho);
/** What is to be done when the page that is shown is left. @type {(() => void)[]} */
let leaving = [];
/** The page that is shown. @type {{view: string, update?: (params: object) => boolean} | null} */
let current = null;
/** Counts navigations: one that was overtaken shows nothing any more. */
let turn = 0;
let asking = false;

function tell(gone) {
  away.hidden = !gone;
  const text = gone ? "The service does not answer. Trying again…" : "";
  if (away.textContent !== text) away.textContent = text;
}

/** @param {string[]} schemes those that the service takes: `basic`, `bearer` */
function askWho(schemes) {
  api.signIn(null);
  if (asking) return;
  asking = true;
  leave();
  current = null;
  signOut.hidden = true;
  document.title = "Sign in · streamer";
  signIn(main, async (header) => {
    api.signIn(header);
    // `refused` must not draw the form anew while it is being sent.
    await api.get("streams");
    asking = false;
    await go();
  }, schemes);
}

function leave() {
  for (const stop of leaving) stop();
  leaving = [];
}

function address() {
  return document.location.hash.replace(/^#/, "");
}

/** Show the page of an address. @param {string} hash such as `#/streams/orders` */
function navigate(hash) {
  if (document.location.hash === hash) go();
  else document.location.hash = hash;
}

async function go() {
  if (asking) return;
  const [path, query = ""] = address().split("?");
  const route = routes.find((one) => one.path.test(path));
  const params = {
    ...Object.fromEntries(new URLSearchParams(query)),
    ...(route?.path.exec(path)?.groups ?? {}),
  };
  mark(route);
  if (route && current?.view === route.view && current.update?.(params)) return;
  leave();
  const mine = ++turn;
  current = null;
  if (!route) return lost("There is no such page", `Nothing is at ${path}.`);
  document.title = `${params.id ?? route.title} · streamer`;
  const root = h("div", { class: "page" });
  fill(main, root);
  const onLeave = (stop) => (mine === turn ? leaving.push(stop) : stop());
  try {
    const { show } = await import(`./views/${route.view}.js`);
    if (mine !== turn) return;
    const shown = await show(root, { params, api, navigate, onLeave });
    if (mine !== turn) return;
    current = { view: route.view, update: shown?.update };
    signOut.hidden = !api.signedIn;
    focusHeading();
  } catch (error) {
    if (mine === turn) failed(root, error);
  }
}

function focusHeading() {
  const heading = main.querySelector("h1");
  if (!heading || main.contains(document.activeElement)) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function failed(root, error) {
  if (error instanceof ApiError && error.status === 401) return;
  const id = address().match(/^\/streams\/([A-Za-z0-9_-]+)/)?.[1];
  if (error instanceof ApiError && error.status === 404 && id) {
    return lost(`There is no stream ${id}`, "It was deleted, or its file is gone, or it never existed.");
  }
  const again = h("button", { type: "button", onclick: go }, "Try again");
  const gone = error instanceof AwayError;
  const title = gone ? "The service does not answer" : "This page could not be loaded";
  fill(root, h("h1", null, title), h("p", { class: "wrong" }, error.message), h("div", { class: "buttons" }, again, home()));
  if (gone) leaving.push(clearTimeout.bind(null, setTimeout(go, 2_000)));
  focusHeading();
}

function lost(title, text) {
  document.title = `${title} · streamer`;
  fill(main, h("div", { class: "page" }, h("h1", null, title), h("p", null, text), home()));
  focusHeading();
}

function home() {
  return h("a", { class: "button", href: "#/" }, "All streams");
}

function mark(route) {
  const links = routes
    .filter((one) => one.nav)
    .map((one) => {
      const here = one === route || (one.view === "streams" && route?.view === "stream");
      return h("a", { href: one.href, "aria-current": here ? "page" : null }, one.nav);
    });
  fill(document.getElementById("nav"), links);
}

signOut.addEventListener("click", async () => {
  dropDrafts();
  api.signIn(null);
  // The refusal says how one may sign in.
  await api.get("streams").catch(() => null);
  askWho([]);
});
themeSwitch(document.getElementById("theme"));
document.querySelector(".skip").addEventListener("click", (event) => {
  // Addresses behind the # are pages here.
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", go);
go();
