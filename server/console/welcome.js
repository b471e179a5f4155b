// How to start a run, for who has none.

import { get } from "./api.js";
import { el, fill } from "./dom.js";

/** The address of this server, also behind a path. */
const here = () => new URL(".", location.href.split("#")[0]).href.replace(/\/$/, "");

/** The environment of a client of this server. */
export function environment(keyed) {
  return [
    "pip install tinker jinja2",
    `export TINKER_BASE_URL=${here()} HF_ENDPOINT=${here()}/hf TINKER_API_KEY=${keyed ? "tml-…" : "tml-local"}`,
  ].join("\n");
}

/** The lines of Python that start a run and train one step. */
export function firstRun(model) {
  return [
    "import tinker; service = tinker.ServiceClient()",
    `run = service.create_lora_training_client(${JSON.stringify(model)}, rank=16, user_metadata={"name": "first run"}).result()`,
    'tokens = run.get_tokenizer().encode("Pack my box with five dozen liquor jugs.")',
    'run.forward_backward([tinker.Datum(model_input=tinker.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs={"target_tokens": tokens[1:]})], "cross_entropy")',
    "run.optim_step(tinker.AdamParams(learning_rate=1e-4)).result()",
  ].join("\n");
}

/** Shows both, with the first model of the server. */
export async function welcome(place, who, signal) {
  const found = await get("console/data/overview", signal).catch(() => null);
  if (signal.aborted) return;
  const code = (label, text) => el("figure", { class: "code" }, el("figcaption", null, el("span", null, label),
    el("button", { class: "plain", type: "button", "aria-label": `Copy: ${label}`, onclick: () => navigator.clipboard?.writeText(text) }, "Copy")),
  el("pre", { tabindex: 0, "aria-label": label }, el("code", null, text)));
  fill(place, el("p", null, "There are no runs yet. A run is created by a client, with any key of this organisation:"),
    code("In a shell", environment(who.keyed)), code("In Python", firstRun(found?.models[0]?.name ?? "MODEL")),
    el("p", { class: "muted" }, "It appears here at once, and its losses with the first forward_backward. These pages show it under its metadata “name”."));
}
