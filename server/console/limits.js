// The limits of an organisation: shown to its admins, changed by the operator's.

import { get, put } from "./api.js";
import { el, field, fill, number, say, table } from "./dom.js";

const NAMES = {
  weight: "Fair-share weight", max_runs: "Runs that live at once", max_queued_tokens: "Tokens of unfinished requests",
  tokens_per_minute: "Tokens started per minute", max_storage_bytes: "Bytes of checkpoints and stored samples",
  max_queued_requests: "Unfinished training requests", max_queued_bytes: "Bytes of their payloads",
};

/** Where a limit is set. */
const ORIGINS = { file: "the configuration file", store: "the store", default: "" };

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
  const inputs = rows.filter(([name]) => found[name].origin !== "file")
    .map(([name, title]) => [name, title, el("input", { type: "number", min: 1, name, placeholder: "none", value: found[name].value ?? "" })]);
  const submit = async (event) => {
    event.preventDefault();
    const given = inputs.map(([name, , input]) => [name, input.value === "" ? null : Number(input.value)]);
    const changes = given.filter(([name, value]) => value !== (found[name].value ?? null));
    try { await put(path, Object.fromEntries(changes)); say("The limits are changed."); } catch (error) { say(error.message); return; }
    await again();
  };
  return el("form", { class: "row", onsubmit: submit, "aria-label": "Change limits" },
    inputs.map(([, title, input]) => field(title, input)), el("button", { type: "submit" }, "Change limits"));
}
