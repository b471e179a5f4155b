// A run: its metrics as curves, beside other runs; configuration, checkpoints and requests.

import { follow, get, post, put, remove } from "./api.js";
import { Chart } from "./chart.js";
import { bytes, confirmed, duration, el, field, fill, number, say, table, time } from "./dom.js";

/** Of a curve: about one for each pixel of a wide chart. */
const POINTS = 900;

export async function run(main, { signal, rest: id }) {
  const base = `api/v1/training_runs/${encodeURIComponent(id)}`;
  const view = { by: "step", range: null, weight: 0, others: [], curves: new Map(), charts: new Map(), last: -1 };
  const charts = el("div", { class: "charts" });
  const legend = el("ul", { class: "legend" });
  const facts = el("div"), checkpoints = el("div"), requests = el("div");
  fill(main, el("h1", null, "Run ", el("span", { class: "id" }, id)), facts,
    el("p", null, el("a", { href: `#/samples/${encodeURIComponent(id)}` }, "Samples of this run")),
    el("h2", null, "Metrics"), controls(view, () => load(), () => draw()), legend, charts,
    el("p", null, "Export: ", el("a", { href: `${base}/metrics/export?format=jsonl`, download: "" }, "JSON Lines"), " ",
      el("a", { href: `${base}/metrics/export?format=parquet`, download: "" }, "Parquet")),
    el("h2", null, "Checkpoints"), checkpoints, el("h2", null, "Requests"), requests);

  /** Reads the curves of all runs in the view. */
  async function load() {
    const asked = new URLSearchParams({ points: POINTS, by: view.by });
    if (view.range) {
      const [low, high] = view.range;
      if (view.by === "step") { asked.set("from_step", Math.max(0, Math.floor(low))); asked.set("to_step", Math.max(0, Math.ceil(high))); }
      else { asked.set("from_time", new Date(low).toISOString()); asked.set("to_time", new Date(high).toISOString()); }
    }
    const ids = [id, ...view.others];
    const answers = await Promise.all(ids.map((other) => get(`api/v1/training_runs/${encodeURIComponent(other)}/metrics?${asked}`, signal)
      .catch((error) => { if (!signal.aborted) say(`${other}: ${error.message}`); return null; })));
    if (signal.aborted) return;
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
        label: curve.run, color: curve.place, xs: view.by === "step" ? curve.steps : curve.times, ys: curve.values,
      })), view.weight);
    }
    const shown = names.map((name) => view.charts.get(name).element);
    if (shown.length !== charts.children.length || shown.some((figure, place) => charts.children[place] !== figure)) {
      fill(charts, shown.length > 0 ? shown : el("p", { class: "muted" }, "No metrics yet. They appear with the first forward_backward."));
    }
    fill(legend, view.others.length === 0 ? [] : [id, ...view.others].map((other, place) => {
      const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = `var(--c${place % 8})`;
      return el("li", null, swatch, el("span", { class: "id" }, other), place > 0 ? el("button", {
        class: "plain", type: "button", "aria-label": `Remove ${other}`,
        onclick: () => { view.others = view.others.filter((kept) => kept !== other); load(); },
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

  await Promise.all([get(`console/data/runs/${encodeURIComponent(id)}`, signal).then((found) => fill(facts, configuration(found))), load()]);
  showCheckpoints(checkpoints, base, signal);
  follow(() => ({ topic: "run", run_id: id, from_step: Math.max(0, view.last) }), {
    metrics: grow,
    requests: (answer) => showRequests(requests, answer.requests, () => showCheckpoints(checkpoints, base, signal)),
  }, signal);
}

/** Losses come first. */
const rank = (name) => (name.includes("loss:sum") ? (name.startsWith("forward_backward") ? 0 : 1) : name.startsWith("optim_step") ? 3 : 2);

function configuration(found) {
  const { lora } = found;
  const facts = [
    ["Base model", found.base_model], ["Trains", lora ? `an adapter of rank ${lora.rank} on ${lora.adapts.join(", ")}, seed ${lora.seed}` : "all parameters"],
    ["Optimizer", found.optimizer], ["State", found.corrupted ? el("span", { class: "bad" }, "its weights are lost") : found.state],
    ["Created", time(found.created)], ["Last request", time(found.last_request)],
    ["Project and tags", [found.project, ...found.tags].filter(Boolean).join(", ")],
    ...Object.entries(found.user_metadata),
    ...found.numerics_changed.map((change) => ["Numerics changed", `${change.from} → ${change.to}`]),
  ].filter(([, value]) => value !== "");
  return el("div", { class: "cards" }, facts.map(([name, value]) => el("div", { class: "card" }, el("div", { class: "muted" }, name), el("div", null, value))));
}

function controls(view, load, draw) {
  const by = el("select", { onchange: (event) => { view.by = event.target.value; view.range = null; load(); } },
    el("option", { value: "step" }, "steps"), el("option", { value: "time" }, "time"));
  const weight = el("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: 0, oninput: (event) => { view.weight = Number(event.target.value); draw(); } });
  const other = el("input", { type: "text", placeholder: "id of another run", autocomplete: "off" });
  const add = (event) => {
    event.preventDefault();
    const id = other.value.trim();
    if (id && !view.others.includes(id) && view.others.length < 7) { view.others.push(id); other.value = ""; load(); }
  };
  return el("form", { class: "row", onsubmit: add }, field("Over", by), field("Smoothing", weight), field("Compare with", other),
    el("button", { type: "submit", class: "plain" }, "Add"),
    el("button", { type: "button", class: "plain", onclick: () => { view.range = null; load(); } }, "Show everything"));
}

async function showCheckpoints(place, base, signal) {
  const again = () => showCheckpoints(place, base, signal);
  const { checkpoints } = await get(`${base}/checkpoints?limit=200`, signal).catch(() => ({ checkpoints: [] }));
  const act = (text, work) => async () => {
    try { await work(); say(text); again(); } catch (error) { say(error.message); }
  };
  const path = (checkpoint) => `${base}/checkpoints/${checkpoint.checkpoint_id.split("/").map(encodeURIComponent).join("/")}`;
  const actions = (checkpoint) => el("div", { class: "row" },
    el("button", { class: "plain", type: "button", onclick: act(checkpoint.public ? "It is private again." : "Everybody may read it.", () => (checkpoint.public ? remove : post)(`${path(checkpoint)}/publish`)) }, checkpoint.public ? "Make private" : "Publish"),
    el("button", { class: "plain", type: "button", onclick: () => setTtl(checkpoint, path(checkpoint), act) }, "Expiry"),
    checkpoint.checkpoint_type === "external" ? el("button", { class: "plain", type: "button", onclick: act("The files follow.", () => download(path(checkpoint))) }, "Download") : null,
    el("button", { class: "danger", type: "button", onclick: async () => {
      if (await confirmed(`Delete ${checkpoint.tinker_path}? It can't be brought back.`)) await act("It is deleted.", () => remove(path(checkpoint)))();
    } }, "Delete"));
  fill(place, checkpoints.length === 0 ? el("p", { class: "muted" }, "None.") : table("Newest first", [
    ["Path", (checkpoint) => el("span", { class: "id" }, checkpoint.tinker_path)], ["Saved", (checkpoint) => time(checkpoint.time)],
    ["Size", (checkpoint) => bytes(checkpoint.size_bytes), true], ["Public", (checkpoint) => (checkpoint.public ? "yes" : "no")],
    ["Expires", (checkpoint) => (checkpoint.expires_at ? time(checkpoint.expires_at) : "never")],
    ["Try", (checkpoint) => (checkpoint.checkpoint_type === "sampler" ? el("a", { href: `#/playground?model=${encodeURIComponent(checkpoint.tinker_path)}` }, "Playground") : "")],
    ["Actions", actions],
  ], checkpoints));
}

function setTtl(checkpoint, path, act) {
  const days = el("input", { type: "number", min: 0.05, step: "any", value: 7, required: true });
  const dialog = el("dialog", { "aria-label": "When the checkpoint expires" });
  const end = async (seconds) => { dialog.close(); dialog.remove(); await act("The expiry is set.", () => put(`${path}/ttl`, { ttl_seconds: seconds }))(); };
  dialog.append(el("form", { onsubmit: (event) => { event.preventDefault(); end(Math.round(Number(days.value) * 86400)); } },
    el("p", { class: "id" }, checkpoint.tinker_path), field("Days from now", days),
    el("div", { class: "row" }, el("button", { type: "submit" }, "Set"), el("button", { type: "button", class: "plain", onclick: () => end(null) }, "Never"),
      el("button", { type: "button", class: "plain", onclick: () => { dialog.close(); dialog.remove(); } }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
}

async function download(path) {
  const { urls } = await get(`${path}/external_weights_urls`);
  for (const [name, url] of Object.entries(urls)) {
    const address = new URL(url);
    el("a", { href: address.pathname + address.search, download: name }).click();
  }
}

function showRequests(place, requests, saved) {
  const done = requests.filter((request) => request.kind.startsWith("save") && request.state === "succeeded").length;
  if (place.saves !== undefined && done !== place.saves) saved();
  place.saves = done;
  fill(place, table("The newest requests", [
    ["#", (request) => request.seq_id, true], ["Operation", (request) => request.kind],
    ["State", (request) => el("span", { class: request.state === "failed" ? "bad" : null }, request.state)],
    ["Tokens", (request) => number(request.tokens), true], ["Accepted", (request) => time(request.created)],
    ["Took", (request) => (request.seconds === null ? "" : duration(request.seconds)), true],
    ["Why it waits or failed", (request) => request.reason],
  ], requests));
}
