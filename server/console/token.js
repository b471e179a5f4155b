// A token with its log-probability.

import { el } from "./dom.js";

/** A token, the redder the less likely; with its number where that is known. */
export function token([text, logprob, id]) {
  const said = logprob === null ? "no log-probability" : `log-probability ${logprob.toFixed(4)}`;
  const span = el("span", { class: "token", title: id === undefined ? said : `${said}, token ${id}` }, text);
  const surprise = logprob === null ? 0 : Math.min(1, -logprob / 8);
  span.style.background = `color-mix(in srgb, var(--bad) ${Math.round(surprise * 35)}%, transparent)`;
  return span;
}
