// Workers, queues, speed and recent failures.

import { follow } from "./api.js";
import { Chart } from "./chart.js";
import { bytes, duration, el, empty, fill, number, runAddress, table, time } from "./dom.js";

export function overview(main, { signal }) {
  const body = el("div", null, el("p", null, "Loading…"));
  const speed = new Chart("Tokens per second, by minute", { time: () => true, fromZero: true });
  fill(main, el("h1", null, "Overview"), el("div", { class: "charts" }, speed.element), body);
  let shown = "";
  const change = (found) => {
    // A look at another time is not a change.
    const now = JSON.stringify({ ...found, time: null, latest: { ...found.latest, minute: null } });
    if (now !== shown) show(body, speed, found);
    shown = now;
  };
  follow(() => ({ topic: "overview" }), { overview: change }, signal);
}

function show(body, speed, found) {
  // The last 60 seconds end now, and overlap the last complete minute.
  const rates = [...found.rates, found.latest];
  const line = (label, color, name) => ({ label, color, xs: rates.map((rate) => rate.minute), ys: rates.map((rate) => rate[name] / 60) });
  speed.set([line("training", 0, "trained"), line("prefill", 1, "prefill"), line("decoding", 2, "sampled")]);
  fill(body, engine(found.engine, found.workers.some((worker) => worker.own)),
    el("h2", null, "Queues"),
    found.queues.length === 0 ? empty("No requests are waiting or running.")
      : table("Unfinished requests by tenant", [
        ["Tenant", (queue) => queue.tenant], ["Waiting", (queue) => number(queue.queued), true],
        ["Running", (queue) => number(queue.running), true], ["Longest wait", (queue) => duration(queue.waiting_seconds), true],
      ], found.queues),
    el("h2", null, "Workers"),
    found.workers.length === 0 ? empty("No worker runs, so requests wait. Start one with ", el("code", null, "trainyard worker"), " on the same database.") : table("Processes that execute requests", [
      ["Worker", (worker) => el("span", { class: "id" }, worker.id + (worker.own ? " (this server)" : ""))],
      ["Models, with type, kernels and layout", (worker) => worker.models.map(([model, computed]) => el("div", null, model, computed ? el("span", { class: "muted" }, ` ${computed}`) : ""))],
      ["Memory", (worker) => held(worker.engine), true], ["Runs", (worker) => number(worker.engine?.loaded_runs), true],
      ["Samples", (worker) => number(worker.engine?.active_samples), true], ["Training passes", (worker) => (worker.engine ? `${fullness(worker.engine)} % full` : "–"), true],
    ], found.workers),
    el("h2", null, "Models"),
    table("Base models that are served", [
      ["Name", (model) => model.name], ["Family", (model) => model.arch],
      ["Parameters", (model) => `${number(Math.round(model.parameters / 1e6))} M`, true], ["Context", (model) => number(model.context), true],
    ], found.models),
    el("h2", null, "Failures of the last day"),
    found.failures.length === 0 ? empty("No request failed within the last day. Failed requests are listed here with their reasons.")
      : table("Newest first", [
        ["Time", (failure) => time(failure.time)], ["Operation", (failure) => failure.kind],
        ["Run", (failure) => failure.run_id && el("a", { href: runAddress(failure.run_id), class: "id" }, failure.run_id)],
        ["Reason", (failure) => el("span", { class: failure.category === "server" ? "bad" : null }, failure.message)],
      ], found.failures));
}

/** How full the training passes of an engine were, in percent. */
const fullness = (stats) => (stats.microbatch_capacity > 0 ? Math.round((100 * stats.microbatch_tokens) / stats.microbatch_capacity) : 0);

/** Memory of an engine, with its budget. */
function held(stats) {
  if (!stats) return "–";
  return stats.memory_budget > 0 ? `${bytes(stats.memory_bytes)} of ${bytes(stats.memory_budget)}` : bytes(stats.memory_bytes);
}

function engine(stats, executes) {
  if (!stats) return el("p", { class: "muted" }, executes ? "Memory and load, which are of all tenants, are shown to the operator." : "This server executes no requests itself.");
  const full = stats.memory_budget > 0 ? stats.memory_budget : stats.memory_bytes;
  return el("div", { class: "cards" },
    el("div", { class: "card" }, el("h3", null, "Memory"), el("div", { class: "big" }, bytes(stats.memory_bytes)),
      stats.memory_budget > 0 ? el("meter", { max: full, value: stats.memory_bytes, "aria-label": "Memory of the budget" }) : null,
      el("div", { class: "muted" }, stats.memory_budget > 0 ? `of ${bytes(stats.memory_budget)}: ` : "", stats.memory.filter(([, held]) => held > 0).map(([kind, held]) => `${kind} ${bytes(held)}`).join(", "))),
    el("div", { class: "card" }, el("h3", null, "Keys and values"), el("div", { class: "big" }, bytes(stats.kv_bytes)), el("div", { class: "muted" }, `capacity ${bytes(stats.kv_limit)}`)),
    el("div", { class: "card" }, el("h3", null, "Runs in memory"), el("div", { class: "big" }, number(stats.loaded_runs))),
    el("div", { class: "card" }, el("h3", null, "Samples in progress"), el("div", { class: "big" }, number(stats.active_samples))),
    el("div", { class: "card" }, el("h3", null, "Training passes"), el("div", { class: "big" }, `${fullness(stats)} % full`), el("div", { class: "muted" }, `${number(stats.microbatch_tokens)} tokens since the start`)));
}
