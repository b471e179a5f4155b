// The list of runs: filter, order, live.

import { follow } from "./api.js";
import { el, field, fill, number, significant, table, time } from "./dom.js";

const PAGE = 50;

export async function runs(main, { signal, query }) {
  const words = el("input", { type: "search", name: "q", value: query.get("q") ?? "", placeholder: "model, project=…, tag=…, key=value" });
  const option = (value, text, chosen) => el("option", { value, selected: value === chosen }, text);
  const state = el("select", { name: "state" }, ["", "active", "ended", "creating", "failed"].map((value) => option(value, value || "all", query.get("state") ?? "")));
  const orders = [["created", "newest first"], ["last_request", "last request"], ["steps", "most steps"], ["loss", "least loss"]];
  const sort = el("select", { name: "sort" }, orders.map(([value, text]) => option(value, text, query.get("sort"))));
  const list = el("div", { "aria-live": "off" });
  let offset = 0, left = new AbortController(), isShown;
  const first = new Promise((resolve) => { isShown = resolve; });
  signal.addEventListener("abort", () => { left.abort(); isShown(); });
  // The stream begins with the list as it is.
  const load = () => {
    left.abort();
    left = new AbortController();
    const asked = { topic: "runs", q: words.value, state: state.value, sort: sort.value, limit: PAGE, offset };
    follow(() => asked, { runs: show, failure: ({ detail }) => fill(list, el("p", { class: "bad", role: "alert" }, detail)) }, left.signal);
  };
  const show = (found) => {
    const focused = document.activeElement?.getAttribute?.("href");
    const pages = found.total > PAGE ? el("div", { class: "row" },
      el("button", { type: "button", class: "plain", disabled: offset === 0, onclick: () => { offset = Math.max(0, offset - PAGE); load(); } }, "Newer"),
      el("span", { class: "muted" }, `${offset + 1}–${Math.min(found.total, offset + PAGE)} of ${number(found.total)}${found.truncated ? "+" : ""}`),
      el("button", { type: "button", class: "plain", disabled: offset + PAGE >= found.total, onclick: () => { offset += PAGE; load(); } }, "Older")) : null;
    fill(list, found.runs.length === 0 ? el("p", { class: "muted" }, "No run matches.") : table(`${number(found.total)} ${found.total === 1 ? "run" : "runs"}`, [
      ["Run", (run) => el("a", { href: `#/run/${run.run_id}`, class: "id" }, run.run_id)],
      ["State", (run) => el("span", { class: run.state === "failed" ? "bad" : run.state === "active" ? "good" : null }, run.state)],
      ["Model", (run) => `${run.base_model}${run.lora_rank ? ` · rank ${run.lora_rank}` : " · all parameters"}`],
      ["Project, tags, metadata", (run) => [run.project, ...run.tags, ...Object.entries(run.user_metadata).map(([key, value]) => `${key}=${value}`)].filter(Boolean).join(", ")],
      ["Steps", (run) => number(run.steps), true],
      ["loss:sum", (run) => (run.loss === null ? "" : significant(run.loss)), true],
      ["Last request", (run) => time(run.last_request)],
    ], found.runs), pages);
    if (focused) list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    isShown();
  };
  let timer;
  const changed = () => { clearTimeout(timer); timer = setTimeout(() => { offset = 0; load(); }, 200); };
  words.addEventListener("input", changed);
  state.addEventListener("change", changed);
  sort.addEventListener("change", changed);
  fill(main, el("h1", null, "Runs"),
    el("form", { class: "row", role: "search", onsubmit: (event) => event.preventDefault() }, field("Contains", words), field("State", state), field("Order", sort)), list);
  load();
  await first;
}
