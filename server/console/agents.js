// The list of agent sessions, live.

import { follow } from "./api.js";
import { agentAddress, el, empty, fill, number, table, time } from "./dom.js";

const PAGE = 50;

export function agents(main, { signal }) {
  const list = el("div", null, el("p", { class: "muted" }, "Loading…"));
  let offset = 0, left = new AbortController();
  signal.addEventListener("abort", () => left.abort());
  const load = () => {
    left.abort();
    left = new AbortController();
    const failure = ({ detail }) => fill(list, el("p", { class: "bad", role: "alert" }, detail));
    follow(() => ({ topic: "agents", skip: offset }), { agents: show, failure }, left.signal);
  };
  const turn = (text, to, disabled) => el("button", { type: "button", class: "plain", disabled, onclick: () => { offset = to; load(); } }, text);
  const show = ({ agent_sessions: found, more }) => {
    const focused = document.activeElement?.dataset?.focus;
    if (found.length === 0 && offset === 0) {
      fill(list, empty("There are no agent sessions. ", el("code", null, "POST /api/v1/agent_sessions"), " creates one: its key lets a program sample through the OpenAI or Anthropic API, and everything that it samples is recorded."));
      return;
    }
    fill(list, rows(found), offset > 0 || more ? el("div", { class: "row" }, turn("Newer", Math.max(0, offset - PAGE), offset === 0),
      el("span", { class: "muted" }, `${number(offset + 1)}–${number(offset + found.length)}`), turn("Older", offset + PAGE, !more)) : null);
    if (focused) list.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  };
  fill(main, el("h1", null, "Agent sessions"), list);
  load();
}

function rows(found) {
  const id = (session) => session.agent_session_id;
  return table("Newest first", [
    ["Session", (session) => el("a", { href: agentAddress(id(session)), class: "id", "data-focus": id(session) }, id(session))],
    ["State", (session) => el("span", { class: session.state === "open" ? "good" : null }, session.state)],
    ["Weights", (session) => session.sampling_session_id ?? session.model_path ?? session.base_model],
    ["Turns", (session) => `${number(session.turns)} of ${number(session.limits.max_turns)}`, true],
    ["Sampled tokens", (session) => `${number(session.tokens)} of ${number(session.limits.max_tokens)}`, true],
    ["Reward", (session) => (session.reward === undefined ? "" : String(session.reward)), true],
    ["Created", (session) => time(session.created_at)],
    ["Expires", (session) => time(session.expires_at)],
  ], found);
}
