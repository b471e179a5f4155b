// The newest samples of a run: prompt and completions as text, each token the redder the less likely.

import { follow, remove } from "./api.js";
import { bytes, confirmed, el, fill, number, runAddress, say, time } from "./dom.js";
import { token } from "./token.js";

export function samples(main, { signal, rest: id }) {
  const note = el("p", { class: "muted" }, "Loading…"), list = el("div");
  const clear = el("button", { class: "danger", type: "button", hidden: true, onclick: async () => {
    if (!(await confirmed("Delete the stored samples of this run? This can't be undone."))) return;
    try { say(`${number((await remove(`console/data/runs/${encodeURIComponent(id)}/samples`)).deleted)} samples were deleted.`); } catch (error) { say(error.message); }
  } }, "Delete all");
  fill(main, el("h1", null, "Samples of ", el("a", { href: runAddress(id), class: "id" }, id)), note,
    el("div", { class: "row" }, scale(), clear), list);
  const shown = new Map();
  follow(() => ({ topic: "samples", run_id: id }), {
    samples: (found) => {
      note.textContent = description(found);
      note.className = "muted";
      clear.hidden = found.count === 0;
      const wanted = found.samples.map((sample) => {
        if (!shown.has(sample.request_id)) shown.set(sample.request_id, card(sample));
        return shown.get(sample.request_id);
      });
      for (const known of shown.keys()) if (!found.samples.some((sample) => sample.request_id === known)) shown.delete(known);
      fill(list, wanted);
    },
    failure: ({ detail }) => { note.textContent = detail; note.className = "bad"; },
  }, signal);
}

/** What is stored, and how to have it stored. */
function description({ newest, count, bytes: held, key, most, quota_is_full: full }) {
  if (newest === null && count === 0) return `This run stores no samples. To store them, create a run with user_metadata ${key}: the number of its newest samples, from 1 to ${most}.`;
  const kept = newest === null ? "" : ` of at most ${number(newest)}`;
  return `${number(count)}${kept} stored, ${bytes(held)}. The newest are shown.${full ? " The organisation's storage quota is used up: further samples are not stored." : ""}`;
}

/** What the colours mean. */
function scale() {
  const steps = [0, -0.5, -1, -2, -4, -8];
  return el("div", { role: "note", "aria-label": "Colours of tokens by log-probability" }, "Log-probability: ", steps.flatMap((step) => [token([String(step), step]), " "]));
}

function card(sample) {
  const cut = sample.prompt_tokens > sample.prompt.length ? `, of which the last ${number(sample.prompt.length)} follow` : "";
  const completions = sample.sequences.flatMap((sequence, at) => completion(sequence, at, sample.sampled));
  const more = sample.sampled - sample.sequences.length;
  return el("article", { class: "card sample", "aria-label": `Sample ${sample.request_id}` },
    el("h2", null, time(sample.time), " ", el("span", { class: "id muted" }, sample.sampling_session_id)),
    el("h3", null, "Prompt ", el("span", { class: "muted" }, `${number(sample.prompt_tokens)} tokens${cut}`)),
    el("div", { class: "turn user", tabindex: 0, role: "group", "aria-label": "Prompt" }, sample.prompt_text ?? sample.prompt.join(" ")),
    sample.images.map(picture),
    completions, more > 0 ? el("p", { class: "muted" }, `${number(more)} more completions are not stored.`) : null);
}

/** An image of the prompt, or its size where the file was too large to be stored. */
function picture({ url, width, height, tokens }) {
  const size = `${number(width)} × ${number(height)} pixels, ${number(tokens)} tokens`;
  return el("figure", null, url === null ? null : el("img", { src: url, alt: "Image of the prompt", loading: "lazy" }),
    el("figcaption", { class: "muted" }, url === null ? `${size}; the file is not stored` : size));
}

function completion(sequence, at, all) {
  const cut = sequence.sampled > sequence.tokens.length ? `, of which the first ${number(sequence.tokens.length)} follow` : "";
  const mean = sequence.logprobs.reduce((sum, each) => sum + each, 0) / Math.max(1, sequence.logprobs.length);
  const spans = sequence.tokens.map((id, place) => token([sequence.texts?.[place] ?? `${id} `, sequence.logprobs[place] ?? null, id]));
  return [
    el("h3", null, all > 1 ? `Completion ${at + 1} ` : "Completion ", el("span", { class: "muted" },
      `${number(sequence.sampled)} tokens${cut} · ${sequence.stop_reason} · mean log-probability ${mean.toFixed(3)}`)),
    el("div", { class: "turn", tabindex: 0, role: "group", "aria-label": `Completion ${at + 1}` }, spans),
  ];
}
