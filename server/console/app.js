// The frame of the pages: login, navigation, and which page is shown.

import { login, logout, session } from "./api.js";
import { el, field, fill, say } from "./dom.js";
import { admin } from "./admin.js";
import { agent } from "./agent.js";
import { agents } from "./agents.js";
import { overview } from "./overview.js";
import { playground } from "./playground.js";
import { run } from "./run.js";
import { runs } from "./runs.js";
import { samples } from "./samples.js";

const PAGES = {
  overview: { title: "Overview", show: overview },
  runs: { title: "Runs", show: runs },
  run: { title: "Run", show: run, hidden: true, of: "runs" },
  samples: { title: "Samples", show: samples, hidden: true, of: "runs" },
  agents: { title: "Agents", show: agents },
  agent: { title: "Agent session", show: agent, hidden: true, of: "agents" },
  playground: { title: "Playground", show: playground },
  admin: { title: "Keys, projects, usage", show: admin, admin: true },
};

const main = document.getElementById("main");
let left = new AbortController();
let who = null;

/** Shows the page that the address names. */
async function route() {
  if (!who) return;
  left.abort();
  left = new AbortController();
  const { signal } = left;
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [asked, ...rest] = (path || "overview").split("/");
  const [name, id] = [Object.hasOwn(PAGES, asked) ? asked : "", plain(rest.join("/"))];
  if (name === "" || id === null) return missing(path);
  const page = PAGES[name];
  document.title = `${page.title} · Trainyard`;
  for (const link of document.querySelectorAll("#nav a")) {
    const isShown = link.getAttribute("href") === `#/${page.of ?? name}`;
    if (isShown) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (page.admin && who.role !== "admin") {
    fill(main, el("h1", null, page.title), el("p", null, `This page is for admins of ${who.organisation}; this key's role is ${who.role}.`));
    return;
  }
  fill(main, el("p", null, "Loading…"));
  try {
    await page.show(main, { signal, who, rest: id, query: new URLSearchParams(query ?? "") });
    // Behind the frame that shows it: for bench/console.py.
    requestAnimationFrame(() => setTimeout(() => performance.mark(`painted:${name}`)));
  } catch (error) {
    if (!signal.aborted) fill(main, el("h1", null, page.title), el("p", { class: "bad", role: "alert" }, error.message));
  }
}

/** The text of a part of an address, or null where it is damaged. */
function plain(text) {
  try { return decodeURIComponent(text); } catch { return null; }
}

/** Says that there is no such page, and where the others are. */
function missing(path) {
  document.title = "Not found · Trainyard";
  for (const link of document.querySelectorAll("#nav a")) link.removeAttribute("aria-current");
  fill(main, el("h1", null, "This page does not exist"), el("p", null, el("code", null, `#/${path}`), " leads nowhere. The pages are named at the top; a run is at ", el("code", null, "#/run/RUN_ID"), "."));
}

function begin(found) {
  who = found;
  const shown = Object.entries(PAGES).filter(([, page]) => !page.hidden && (!page.admin || who.role === "admin"));
  fill(document.getElementById("nav"), shown.map(([name, page]) => el("a", { href: `#/${name}` }, page.title)), el("a", { href: "docs/" }, "API"));
  fill(document.getElementById("who"), `${who.organisation} · ${who.name}`, who.keyed ? el("button", { class: "plain", type: "button", onclick: end }, "Log out") : null);
  route();
}

async function end() {
  try { await logout(); } catch (error) { say(error.message); return; }
  who = null;
  left.abort();
  fill(document.getElementById("nav"));
  fill(document.getElementById("who"));
  ask();
}

/** Asks for a key. */
function ask(reason) {
  document.title = "Log in · Trainyard";
  const key = el("input", { type: "password", autocomplete: "current-password", required: true, name: "key" });
  const problem = el("p", { class: "bad", role: "alert" }, reason ?? "");
  const submit = async (event) => {
    event.preventDefault();
    try { begin(await login(key.value)); } catch (error) { problem.textContent = error.message; key.focus(); }
  };
  fill(main, el("h1", null, "Log in"), el("form", { class: "row", onsubmit: submit }, field("API key", key), el("button", { type: "submit" }, "Log in")), problem);
  key.focus();
}

addEventListener("hashchange", () => { route(); main.focus(); });
addEventListener("loggedin", ({ detail }) => begin(detail));
addEventListener("loggedout", () => { if (who) { who = null; left.abort(); ask("The session has ended."); } });
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });

try {
  const found = await session();
  if (found) begin(found); else ask();
} catch (error) {
  fill(main, el("h1", null, "Trainyard"), el("p", { class: "bad", role: "alert" }, error.message));
}
