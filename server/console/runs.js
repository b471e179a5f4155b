// The list of runs: filter, order, live, and a selection to compare.

import { follow } from "./api.js";
import { el, empty, field, fill, number, runAddress, significant, swatch, table, time } from "./dom.js";
import { welcome } from "./welcome.js";

const PAGE = 50;
/** Runs that a page compares at most: one for each colour. */
const MOST = 8;
const ORDERS = [
  ["created", "newest first"], ["last_request", "last request"], ["steps", "most steps"],
  ["loss_per_token", "smallest loss per token"], ["loss", "smallest loss:sum"],
];

export async function runs(main, { signal, query, who }) {
  const words = el("input", { type: "search", name: "q", value: query.get("q") ?? "", placeholder: "model, project=…, tag=…, name=…" });
  const option = (value, text, chosen) => el("option", { value, selected: value === chosen }, text);
  const state = el("select", { name: "state" }, ["", "active", "ended", "creating", "failed"].map((value) => option(value, value || "all", query.get("state") ?? "")));
  const sort = el("select", { name: "sort" }, ORDERS.map(([value, text]) => option(value, text, query.get("sort"))));
  const list = el("div", { "aria-live": "off" }), chosen = new Selection();
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
    const focused = document.activeElement?.dataset?.focus;
    const pages = found.total > PAGE ? el("div", { class: "row" },
      el("button", { type: "button", class: "plain", disabled: offset === 0, onclick: () => { offset = Math.max(0, offset - PAGE); load(); } }, "Newer"),
      el("span", { class: "muted" }, `${offset + 1}–${Math.min(found.total, offset + PAGE)} of ${number(found.total)}${found.truncated ? "+" : ""}`),
      el("button", { type: "button", class: "plain", disabled: offset + PAGE >= found.total, onclick: () => { offset += PAGE; load(); } }, "Older")) : null;
    if (found.runs.length > 0) fill(list, rows(found, chosen), pages);
    else if (words.value || state.value || offset > 0) fill(list, empty("No run matches."));
    else welcome(list, who, left.signal);
    if (focused) list.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
    isShown();
  };
  let timer;
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      offset = 0;
      const asked = [["q", words.value], ["state", state.value], ["sort", sort.value === "created" ? "" : sort.value]].filter(([, value]) => value);
      // The address leads to what is shown.
      history.replaceState(null, "", `#/runs${asked.length > 0 ? `?${new URLSearchParams(asked)}` : ""}`);
      load();
    }, 200);
  };
  words.addEventListener("input", changed);
  state.addEventListener("change", changed);
  sort.addEventListener("change", changed);
  fill(main, el("h1", null, "Runs"),
    el("form", { class: "row", role: "search", onsubmit: (event) => event.preventDefault() }, field("Contains", words), field("State", state), field("Order", sort)),
    chosen.element, list);
  load();
  await first;
}

function rows(found, chosen) {
  const link = (run) => el("a", { href: runAddress(run.run_id), class: run.name ? null : "id", "data-focus": run.run_id }, run.name ?? run.run_id);
  const metadata = (run) => Object.entries(run.user_metadata).filter(([key]) => key !== "name").map(([key, value]) => `${key}=${value}`);
  return table(`${number(found.total)} ${found.total === 1 ? "run" : "runs"}`, [
    ["Compare", (run) => chosen.box(run)],
    ["Run", (run) => [link(run), run.name ? el("div", { class: "id muted" }, run.run_id) : null].filter(Boolean)],
    ["State", (run) => el("span", { class: run.state === "failed" ? "bad" : run.state === "active" ? "good" : null }, run.state)],
    ["Model", (run) => `${run.base_model}${run.lora_rank ? ` · rank ${run.lora_rank}` : " · all parameters"}`],
    ["Project, tags, metadata", (run) => [run.project, ...run.tags, ...metadata(run)].filter(Boolean).join(", ")],
    ["Steps", (run) => number(run.steps), true],
    ["Loss per token", (run) => (run.loss_per_token === null ? "" : significant(run.loss_per_token)), true],
    ["loss:sum", (run) => (run.loss === null ? "" : significant(run.loss)), true],
    ["Last request", (run) => time(run.last_request)],
  ], found.runs);
}

/** Runs that are chosen to be compared, each with the colour of its curves there. */
class Selection {
  constructor() {
    this.chosen = new Map();
    this.boxes = new Map();
    this.element = el("div", { class: "row chosen", role: "group", "aria-label": "Chosen runs", hidden: true });
  }

  /** The box that chooses a run. */
  box(run) {
    const id = run.run_id;
    const box = el("input", { type: "checkbox", checked: this.chosen.has(id), "aria-label": `Compare ${run.name ?? id}`, "data-focus": `choose ${id}`, onchange: () => {
      if (box.checked) this.chosen.set(id, run.name ?? id); else this.chosen.delete(id);
      this.show();
    } });
    const mark = el("span", { class: "mark" });
    this.boxes.set(id, { box, mark });
    this.show();
    return el("label", { class: "choose" }, box, mark);
  }

  show() {
    const ids = [...this.chosen.keys()];
    for (const [id, { box, mark }] of this.boxes) {
      box.disabled = !box.checked && ids.length >= MOST;
      fill(mark, box.checked ? swatch(ids.indexOf(id)) : null);
    }
    const [one, ...others] = ids;
    this.element.hidden = ids.length === 0;
    fill(this.element, [...this.chosen.values()].map((name, color) => el("span", null, swatch(color), name)),
      ids.length > 1 ? el("a", { class: "button", href: runAddress(one, others) }, `Compare ${ids.length} runs`)
        : el("span", { class: "muted" }, "Choose another run to compare it with."),
      el("button", { type: "button", class: "plain", onclick: () => {
        for (const { box } of this.boxes.values()) box.checked = false;
        this.chosen.clear();
        this.show();
      } }, "Clear"));
  }
}
