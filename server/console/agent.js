// An agent session turn by turn: its branches, the tokens of each turn, and which of them are trained.

import { follow, get } from "./api.js";
import { el, empty, field, fill, number, table, time } from "./dom.js";
import { token } from "./token.js";

/** Reasons why a branch begins, as docs/users/agents.md has them. */
const REASONS = {
  history_differs: "no recorded turn has these messages, tools and template variables",
  thoughts_differ: "the thoughts of a reply differ from those that were returned",
  reply_is_rewritten: "the template renders the reply differently",
  earlier_text_is_rewritten: "the template renders earlier messages differently when others follow",
  template_refuses: "the template does not render a part of the conversation",
  no_messages: "a completion of text or tokens has no messages",
};

export function agent(main, { signal, rest: id }) {
  const base = `console/data/agent_sessions/${encodeURIComponent(id)}`;
  const facts = el("div", null, el("p", { class: "muted" }, "Loading…")), branches = el("div"), turns = el("div"), further = el("div", { class: "row" });
  const select = el("select", { name: "branch", onchange: () => load().catch(failed) });
  const chooser = el("div", { class: "row", hidden: true }, field("Branch", select), legend());
  let shown = "";
  fill(main, el("h1", null, "Agent session ", el("span", { class: "id" }, id)), facts, branches, chooser, turns, further);

  /** Reads a page of the chosen branch: the first one, or one behind those that are shown. */
  async function load(from = 0) {
    const branch = Number(select.value || 0);
    const found = await get(`${base}?branch=${branch}&from=${from}`, signal);
    if (signal.aborted) return;
    describe(found.session);
    shown = JSON.stringify([found.session.turns, found.session.reward]);
    fill(branches, found.branches.length > 1 ? listed(found.branches) : null);
    const option = (one, at) => el("option", { value: String(at), selected: at === branch }, `${at + 1} · ${number(one.turns)} ${one.turns === 1 ? "turn" : "turns"}`);
    fill(select, found.branches.map(option));
    chooser.hidden = found.branches.length === 0;
    if (from === 0) fill(turns, found.branches.length === 0 ? empty("Nothing was sampled yet.") : null);
    turns.append(...found.turns.map((turn, at) => card(turn, from + at, found.branches[branch])));
    fill(further, found.next === null ? null : el("button", { type: "button", class: "plain", onclick: () => load(found.next).catch(failed) }, "Further turns"));
  }
  const failed = (error) => { if (!signal.aborted) fill(facts, el("p", { class: "bad", role: "alert" }, error.message)); };
  const describe = (session) => fill(facts, summary(session));
  const change = (session) => {
    describe(session);
    const now = JSON.stringify([session.turns, session.reward]);
    if (now !== shown) load().catch(failed);
    shown = now;
  };
  const failure = ({ detail }) => failed(new Error(detail));
  // A session that does not exist is not followed.
  load().then(() => follow(() => ({ topic: "agent", agent_session_id: id }), { agent: change, failure }, signal), failed);
}

function summary(session) {
  const { limits } = session;
  return el("div", { class: "cards" },
    fact("State", session.state, el("span", null, "expires ", time(session.expires_at))),
    fact("Turns", number(session.turns), `of ${number(limits.max_turns)}`),
    fact("Sampled tokens", number(session.tokens), `of ${number(limits.max_tokens)}`),
    fact("Reward", session.reward === undefined ? "–" : String(session.reward), "of the session"),
    fact("Weights", el("span", { class: "id" }, session.model_path ?? session.base_model), session.model_path ? session.base_model : null));
}

function fact(name, value, more) {
  return el("div", { class: "card" }, el("h2", { class: "fact" }, name), el("div", { class: "big" }, value), more === null ? null : el("div", { class: "muted" }, more));
}

/** What the marks of tokens mean. */
function legend() {
  return el("p", { class: "muted" }, "Sampled tokens are the redder the less likely, and ", el("span", { class: "trained" }, "underlined"), " where the branch trains them (weight 1). All other tokens have weight 0.");
}

function listed(branches) {
  return table("Branches", [
    ["Branch", (branch) => number(branches.indexOf(branch) + 1), true],
    ["Last turn", (branch) => el("span", { class: "id" }, branch.branch)],
    ["Begins because", (branch) => (branch.reason === null ? (branch.shared > 0 ? "continues turns of an earlier branch" : "first of the session") : reason(branch.reason))],
    ["Turns", (branch) => number(branch.turns), true],
    ["Trained elsewhere", (branch) => number(branch.shared), true],
    ["Tokens", (branch) => number(branch.tokens), true],
    ["Reward", (branch) => (branch.reward === null ? "" : String(branch.reward)), true],
    ["End", (branch) => (branch.truncated ? "cut off" : "")],
  ], branches);
}

function reason(name) {
  return [el("code", null, name), Object.hasOwn(REASONS, name) ? `: ${REASONS[name]}` : ""];
}

function card(turn, at, branch) {
  const { prompt, sampled } = turn;
  const why = at === 0 && branch.reason !== null ? el("p", null, "Begins a branch: ", reason(branch.reason)) : null;
  const cut = (tokens, which) => (tokens.count > tokens.ids.length ? `, of which the ${which} ${number(tokens.ids.length)} follow` : "");
  const mean = sampled.logprobs.reduce((sum, each) => sum + each, 0) / Math.max(1, sampled.logprobs.length);
  const facts = [`${number(sampled.count)} tokens${cut(sampled, "first")}`, turn.finish_reason, `temperature ${turn.temperature}`,
    `mean log-probability ${mean.toFixed(3)}`, turn.trained ? "weight 1" : "weight 0: an earlier branch trains it", turn.reward === null ? null : `reward ${turn.reward}`];
  const text = prompt.texts?.join("") ?? prompt.ids.join(" ");
  const spans = sampled.ids.map((id, place) => token([sampled.texts?.[place] ?? `${id} `, sampled.logprobs[place] ?? null, id]));
  return el("article", { class: "card sample", "aria-label": `Turn ${at + 1}` },
    el("h2", null, `Turn ${at + 1} `, el("span", { class: "muted" }, time(turn.time), " ", el("span", { class: "id" }, turn.turn_id))), why,
    el("h3", null, "Prompt ", el("span", { class: "muted" }, `${number(prompt.count)} tokens${cut(prompt, "last")} · weight 0`)),
    el("div", { class: "turn user", tabindex: 0, role: "group", "aria-label": `Prompt of turn ${at + 1}` }, text),
    el("h3", null, "Reply ", el("span", { class: "muted" }, facts.filter((fact) => fact !== null).join(" · "))),
    el("div", { class: `turn${turn.trained ? " trained" : ""}`, tabindex: 0, role: "group", "aria-label": `Reply of turn ${at + 1}` }, spans),
    el("p", { class: "muted" }, "Sampled by ", el("span", { class: "id" }, turn.weights)));
}
