// The limits of an organisation: shown to its admins, changed by the operator's.

import { get, put } from "./api.js";
import { el, field, fill, number, say, table } from "./dom.js";

const NAMES = {
  weight: "Fair-share weight", max_runs: "Runs at the same time", max_queued_tokens: "Tokens of unfinished requests",
  tokens_per_minute: "Tokens started per minute", max_storage_bytes: "Bytes of checkpoints and stored samples",
  max_queued_samples: "Unfinished samples", max_sessions: "Open or recent sessions", pixels_per_minute: "Pixels of images per minute",
  max_queued_requests: "Unfinished training requests", max_queued_bytes: "Bytes of their payloads",
};

/** Where a limit is set. */
const ORIGINS = { file: "the configuration file", store: "the store", default: "default" };

/** Shows the limits of an organisation; with a form where the caller may change them. */
export async function showLimits(place, organisation, mayChange, signal) {
  const path = `api/v1/admin/organisations/${encodeURIComponent(organisation)}/limits`;
  const found = await get(path, signal);
  const rows = Object.entries(NAMES).filter(([name]) => name in found);
  const text = ({ value }) => (value === null || value === undefined ? "none" : number(value));
  const values = table("Quotas and rate limits", [
    ["Limit", ([, title]) => title], ["Value", ([name]) => text(found[name]), true], ["Set in", ([name]) => ORIGINS[found[name].origin]],
  ], rows);
  fill(place, values, mayChange ? form(path, rows, found, () => showLimits(place, organisation, mayChange, signal)) : null);
}

/** What is emptied is unset; what the configuration file sets can't be changed here. */
function form(path, rows, found, again) {
  // Of a default it is the placeholder, so that what is not changed stays unset.
  const set = (name) => (found[name].origin === "store" ? found[name].value : null);
  const inputs = rows.filter(([name]) => found[name].origin !== "file").map(([name, title]) => {
    const fallback = found[name].origin === "default" ? found[name].value : null;
    return [name, title, el("input", { type: "number", min: 1, name, placeholder: fallback ?? "none", value: set(name) ?? "" })];
  });
  const submit = async (event) => {
    event.preventDefault();
    const given = inputs.map(([name, , input]) => [name, input.value === "" ? null : Number(input.value)]);
    const changes = given.filter(([name, value]) => value !== set(name));
    try { await put(path, Object.fromEntries(changes)); say("The limits were changed."); } catch (error) { say(error.message); return; }
    await again();
  };
  return el("form", { class: "row", onsubmit: submit, "aria-label": "Change limits" },
    inputs.map(([, title, input]) => field(title, input)), el("button", { type: "submit" }, "Change limits"));
}
