// A run: its metrics as curves, beside other runs; configuration, checkpoints and requests.

import { follow, get } from "./api.js";
import { Chart } from "./chart.js";
import { showCheckpoints } from "./checkpoints.js";
import { duration, el, empty, field, fill, number, runAddress, say, swatch, table, time } from "./dom.js";

/** Of a curve: about one for each pixel of a wide chart. */
const POINTS = 900;
/** Other runs beside one: as many as there are further colours. */
const OTHERS = 7;
/** Runs that are offered to compare with. */
const OFFERED = 50;

export async function run(main, { signal, query, rest: id }) {
  const base = `api/v1/training_runs/${encodeURIComponent(id)}`;
  const others = (query.get("with") ?? "").split(",").filter((other) => other && other !== id);
  const view = { by: "step", range: null, weight: 0, others: [...new Set(others)].slice(0, OTHERS), names: new Map(), curves: new Map(), charts: new Map(), last: -1 };
  const charts = el("div", { class: "charts" }), thinned = el("div");
  const legend = el("ul", { class: "legend" });
  const facts = el("div"), checkpoints = el("div"), requests = el("details", { class: "fold", open: matchMedia("(min-width: 40.01rem)").matches });
  const heading = el("h1", null, "Run ", el("span", { class: "id" }, id));
  fill(main, heading, facts,
    el("p", null, el("a", { href: `#/samples/${encodeURIComponent(id)}` }, "Samples of this run")),
    el("h2", null, "Metrics"), controls(id, view, signal, () => compare(), () => load(), () => draw()), legend, charts, thinned,
    el("p", null, "Export: ", el("a", { href: `${base}/metrics/export?format=jsonl`, download: "" }, "JSON Lines"), " ",
      el("a", { href: `${base}/metrics/export?format=parquet`, download: "" }, "Parquet")),
    el("h2", null, "Checkpoints"), checkpoints, requests);

  /** Shows the curves of the chosen runs; the address leads to the same comparison. */
  function compare() {
    history.replaceState(null, "", runAddress(id, view.others));
    return load();
  }

  /** Reads the curves of all runs in the view. */
  async function load() {
    const asked = new URLSearchParams({ points: POINTS, by: view.by });
    if (view.range) {
      const [low, high] = view.range;
      if (view.by === "step") { asked.set("from_step", Math.max(0, Math.floor(low))); asked.set("to_step", Math.max(0, Math.ceil(high))); }
      else { asked.set("from_time", new Date(low).toISOString()); asked.set("to_time", new Date(high).toISOString()); }
    }
    const ids = [id, ...view.others];
    const named = Promise.all(view.others.filter((other) => !view.names.has(other)).map((other) => configurationOf(other, signal)
      .then((found) => view.names.set(other, found.name ?? other), () => { /* said with its curves */ })));
    const answers = await Promise.all(ids.map((other) => get(`api/v1/training_runs/${encodeURIComponent(other)}/metrics?${asked}`, signal)
      .catch((error) => { if (!signal.aborted) say(`${other}: ${error.message}`); return null; })));
    await named;
    if (signal.aborted) return;
    fill(thinned, answers.filter((answer) => answer?.complete_from_step > 0).map((answer) =>
      el("p", null, `Of the steps before ${answer.complete_from_step}, ${view.names.get(answer.training_run_id) ?? answer.training_run_id} keeps a part of the metrics: it has very many requests.`)));
    view.curves = new Map();
    answers.forEach((answer, place) => answer?.series.forEach((series) => {
      const name = `${series.kind} · ${series.metric}`;
      if (!view.curves.has(name)) view.curves.set(name, []);
      view.curves.get(name).push({ ...series, run: ids[place], place });
      if (place === 0) view.last = Math.max(view.last, series.steps.at(-1) ?? -1);
    }));
    draw();
  }

  function draw() {
    const names = [...view.curves.keys()].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
    for (const name of names) {
      if (!view.charts.has(name)) {
        view.charts.set(name, new Chart(name, { time: () => view.by === "time", zoomed: (range) => { view.range = range; load(); } }));
      }
      const chart = view.charts.get(name);
      chart.set(view.curves.get(name).map((curve) => ({
        label: view.names.get(curve.run) ?? curve.run, color: curve.place, xs: view.by === "step" ? curve.steps : curve.times, ys: curve.values,
      })), view.weight);
    }
    const shown = names.map((name) => view.charts.get(name).element);
    if (shown.length !== charts.children.length || shown.some((figure, place) => charts.children[place] !== figure)) {
      fill(charts, shown.length > 0 ? shown : empty("No metrics yet. They appear with the first forward_backward: its loss, and the loss per weighted token."));
    }
    fill(legend, view.others.length === 0 ? [] : [id, ...view.others].map((other, place) => {
      const name = view.names.get(other) ?? other;
      return el("li", null, swatch(place), place > 0 ? el("a", { href: runAddress(other), class: name === other ? "id" : null }, name) : el("span", { class: name === other ? "id" : null }, name),
        place > 0 ? el("button", {
          class: "plain", type: "button", "aria-label": `Remove ${other}`,
          onclick: () => { view.others = view.others.filter((kept) => kept !== other); compare(); },
        }, "×") : "");
    }));
  }

  /** Appends rows that came since, where the view shows everything; what is thinned out is read again at times. */
  const grow = ({ rows }) => {
    if (view.range) return;
    let reload = false;
    for (const row of rows) {
      const at = Date.parse(row.time);
      for (const [metric, value] of Object.entries(row.metrics)) {
        const name = `${row.kind} · ${metric}`;
        if (!view.curves.has(name)) view.curves.set(name, []);
        let curve = view.curves.get(name).find(({ place }) => place === 0);
        if (!curve) {
          curve = { run: id, place: 0, steps: [], times: [], values: [] };
          view.curves.get(name).unshift(curve);
        }
        // What the first look had comes again.
        const end = curve.steps.length - 1;
        if (end >= 0 && (row.step < curve.steps[end] || (row.step === curve.steps[end] && at <= curve.times[end]))) continue;
        curve.steps.push(row.step); curve.times.push(at); curve.values.push(value);
        view.last = Math.max(view.last, row.step);
        reload ||= curve.steps.length > 3 * POINTS;
      }
    }
    if (reload) load(); else draw();
  };

  const shown = configurationOf(id, signal).then((found) => {
    view.names.set(id, found.name ?? id);
    if (found.name) {
      document.title = `${found.name} · Trainyard`;
      fill(heading, found.name, " ", el("span", { class: "id muted" }, id));
    }
    fill(facts, configuration(found));
    // Its curves may have come before its name.
    if (view.curves.size > 0) draw();
  });
  await Promise.all([shown, load()]);
  showCheckpoints(checkpoints, base, signal);
  follow(() => ({ topic: "run", run_id: id, from_step: Math.max(0, view.last) }), {
    metrics: grow,
    requests: (answer) => showRequests(requests, answer.requests, () => showCheckpoints(checkpoints, base, signal)),
  }, signal);
}

const configurationOf = (id, signal) => get(`console/data/runs/${encodeURIComponent(id)}`, signal);

/** Losses of training come first, each per token before its sum. */
function rank(name) {
  const loss = ["loss:per_weighted_token", "loss:sum"].findIndex((metric) => name.endsWith(` · ${metric}`));
  if (loss >= 0) return (name.startsWith("forward_backward") ? 0 : 2) + loss;
  return name.startsWith("optim_step") ? 5 : 4;
}

function configuration(found) {
  const { lora } = found;
  const facts = [
    ["Base model", found.base_model], ["Trains", lora ? `an adapter of rank ${lora.rank} with alpha ${lora.alpha} on ${lora.adapts.join(", ")}, seed ${lora.seed}` : "all parameters"],
    ["Optimizer", found.optimizer], ["State", found.corrupted ? el("span", { class: "bad" }, "its weights are lost") : found.state],
    ["Created", time(found.created)], ["Last request", time(found.last_request)],
    ["Project and tags", [found.project, ...found.tags].filter(Boolean).join(", ")],
    ...Object.entries(found.user_metadata).filter(([key]) => key !== "name"),
    ...found.numerics_changed.map((change) => ["Numerics changed", `${change.from} → ${change.to}`]),
  ].filter(([, value]) => value !== "");
  return el("div", { class: "cards" }, facts.map(([name, value]) => el("div", { class: "card" }, el("div", { class: "muted" }, name), el("div", null, value))));
}

function controls(id, view, signal, compare, load, draw) {
  const by = el("select", { onchange: (event) => { view.by = event.target.value; view.range = null; load(); } },
    el("option", { value: "step" }, "steps"), el("option", { value: "time" }, "time"));
  const weight = el("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: 0, oninput: (event) => { view.weight = Number(event.target.value); draw(); } });
  const offered = el("datalist", { id: "runs-to-compare" });
  const other = el("input", { type: "text", placeholder: "name or id of a run", autocomplete: "off", list: "runs-to-compare" });
  let known = [];
  get(`console/data/runs?limit=${OFFERED}`, signal).then(({ runs }) => {
    known = runs.filter((run) => run.run_id !== id);
    fill(offered, known.map((run) => el("option", { value: run.run_id }, [run.name, run.base_model].filter(Boolean).join(" · "))));
  }, () => { /* ids can be written all the same */ });
  const add = (event) => {
    event.preventDefault();
    const text = other.value.trim();
    const added = known.find((run) => run.name === text)?.run_id ?? text;
    if (!added || added === id || view.others.includes(added)) return;
    if (view.others.length >= OTHERS) { say(`At most ${OTHERS + 1} runs are compared.`); return; }
    view.others.push(added);
    other.value = "";
    compare();
  };
  return el("form", { class: "row", onsubmit: add }, field("Over", by), field("Smoothing", weight), field("Compare with", other), offered,
    el("button", { type: "submit", class: "plain" }, "Add"),
    el("button", { type: "button", class: "plain", onclick: () => { view.range = null; load(); } }, "Show everything"));
}

function showRequests(place, requests, saved) {
  const done = requests.filter((request) => request.kind.startsWith("save") && request.state === "succeeded").length;
  if (place.saves !== undefined && done !== place.saves) saved();
  place.saves = done;
  const count = (state) => requests.filter((request) => request.state === state).length;
  const counts = [["running", count("running")], ["waiting", count("queued")], ["failed", count("failed")]].filter(([, number]) => number > 0);
  const summary = counts.map(([state, number]) => `, ${number} ${state}`).join("");
  if (!place.summary) {
    place.summary = el("summary");
    place.rows = el("div");
    fill(place, place.summary, place.rows);
  }
  fill(place.summary, el("h2", null, "Requests"), " ", el("span", { class: "muted" }, `the newest ${requests.length}${summary}`));
  fill(place.rows, requests.length === 0 ? empty("None yet.") : table("The newest requests", [
    ["#", (request) => request.seq_id, true], ["Operation", (request) => request.kind],
    ["State", (request) => el("span", { class: request.state === "failed" ? "bad" : null }, request.state)],
    ["Tokens", (request) => number(request.tokens), true], ["Accepted", (request) => time(request.created)],
    ["Took", (request) => (request.seconds === null ? "" : duration(request.seconds)), true],
    ["Why it waits or failed", (request) => request.reason],
  ], requests));
}
