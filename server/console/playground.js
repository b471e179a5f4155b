// Chat or completion with one or two models side by side.

import { get, stream } from "./api.js";
import { el, empty, field, fill, number } from "./dom.js";
import { token } from "./token.js";

export async function playground(main, { signal, query }) {
  const { data } = await get("oai/api/v1/models", signal);
  const names = el("datalist", { id: "models" }, data.map((model) => el("option", { value: model.id })));
  const mode = el("select", { id: "mode" }, el("option", { value: "chat" }, "chat"), el("option", { value: "completion" }, "completion"));
  const system = el("input", { type: "text", placeholder: "none" });
  const prompt = el("textarea", { required: true, rows: 4, "aria-keyshortcuts": "Control+Enter", onkeydown: (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(send); }
  } });
  const settings = {
    max_tokens: el("input", { type: "number", min: 1, value: 128, required: true }),
    temperature: el("input", { type: "number", min: 0, max: 2, step: 0.05, value: 1 }),
    top_p: el("input", { type: "number", min: 0, max: 1, step: 0.01, value: 1 }),
    seed: el("input", { type: "number", min: 0, placeholder: "random" }),
  };
  const logprobs = el("input", { type: "checkbox" });
  const two = el("input", { type: "checkbox", onchange: () => { panes[1].element.hidden = !two.checked; } });
  const panes = [new Pane("First model", query.get("model") || data[0]?.id || ""), new Pane("Second model", data[0]?.id ?? "")];
  panes[1].element.hidden = true;
  const send = el("button", { type: "submit", title: "Ctrl+Enter" }, "Send");
  const stop = el("button", { type: "button", class: "plain", disabled: true }, "Stop");
  const submit = async (event) => {
    event.preventDefault();
    const shown = panes.filter((pane) => !pane.element.hidden);
    // While an answer comes, and without a model, nothing is sent.
    if (send.disabled || !shown.every((pane) => pane.hasModel())) return;
    const asked = {
      mode: mode.value, system: system.value, prompt: prompt.value, logprobs: logprobs.checked,
      settings: Object.fromEntries(Object.entries(settings).filter(([, input]) => input.value !== "").map(([name, input]) => [name, Number(input.value)])),
    };
    const left = new AbortController();
    const cancel = () => left.abort();
    stop.onclick = cancel;
    signal.addEventListener("abort", cancel);
    send.disabled = true;
    stop.disabled = false;
    const answered = await Promise.all(shown.map((pane) => pane.answer(asked, left.signal)));
    send.disabled = false;
    stop.disabled = true;
    const isComplete = answered.every((isAnswered) => isAnswered);
    // A turn that failed for one is no part of any conversation: the prompt stays, to be sent again.
    if (!isComplete) for (const pane of shown) pane.forget();
    if (isComplete && asked.mode === "chat" && prompt.value === asked.prompt) prompt.value = "";
    prompt.focus();
  };
  const form = el("form", { onsubmit: submit },
      el("div", { class: "row" }, field("Mode", mode), field("Maximum tokens", settings.max_tokens), field("Temperature", settings.temperature), field("Top p", settings.top_p), field("Seed", settings.seed),
        el("label", { class: "inline" }, logprobs, "Log-probabilities"), el("label", { class: "inline" }, two, "Two side by side")),
      field("System message (chat)", system, true), field("Prompt", prompt, true),
      el("div", { class: "row" }, send, stop, el("button", { type: "button", class: "plain", onclick: () => panes.forEach((pane) => pane.clear()) }, "New conversation"),
        el("span", { class: "muted" }, "Ctrl+Enter sends.")));
  fill(main, el("h1", null, "Playground"), names, form,
    data.length === 0 ? empty("No model of this server accepts text, because none has a tokenizer. You can still enter the path of a sampler checkpoint, ", el("code", null, "tinker://…/sampler_weights/…"), ".") : null,
    el("div", { class: "panes" }, panes.map((pane) => pane.element)));
}

/** A model, its conversation and its answer. */
class Pane {
  constructor(title, model) {
    this.model = el("input", { type: "text", value: model, list: "models", placeholder: "choose a model, or write a checkpoint's path", required: true });
    this.problem = el("p", { class: "bad", role: "alert" });
    this.model.addEventListener("input", () => { this.problem.textContent = ""; });
    this.talk = el("div", { class: "talk", role: "log", "aria-label": `${title}: conversation`, tabindex: 0 });
    this.element = el("section", { "aria-label": title }, field(title, this.model, true), this.problem, this.talk);
    this.messages = [];
    this.turn = [];
  }

  clear() {
    this.messages = [];
    this.turn = [];
    fill(this.talk);
  }

  /** Whether a model is chosen; says so if not. */
  hasModel() {
    const isChosen = this.model.value.trim() !== "";
    this.problem.textContent = isChosen ? "" : "Choose a model first.";
    if (!isChosen) this.model.focus();
    return isChosen;
  }

  /** Takes the latest turn out of the conversation; it stays to be read. */
  forget() {
    this.messages.length = this.begun;
    for (const part of this.turn) part.classList.add("dropped");
  }

  /** Answers a prompt; returns whether it did. */
  async answer({ mode, system, prompt, logprobs, settings }, signal) {
    const isChat = mode === "chat";
    if (!isChat) this.clear();
    const shown = el("div", { class: "turn" }), note = el("div", { class: "note" }, "…");
    this.begun = this.messages.length;
    this.turn = [el("div", { class: "turn user" }, prompt), shown];
    this.talk.append(...this.turn, note);
    this.messages.push({ role: "user", content: prompt });
    const messages = [...(system ? [{ role: "system", content: system }] : []), ...this.messages];
    const body = { model: this.model.value.trim(), stream: true, stream_options: { include_usage: true }, ...settings };
    const path = isChat ? "oai/api/v1/chat/completions" : "oai/api/v1/completions";
    if (isChat) Object.assign(body, { messages }, logprobs ? { logprobs: true } : {});
    else Object.assign(body, { prompt }, logprobs ? { logprobs: 0 } : {});
    let text = "", usage = null, reason = null;
    try {
      for await (const chunk of stream(path, body, signal)) {
        usage = chunk.usage ?? usage;
        const choice = chunk.choices?.[0];
        if (!choice) continue;
        reason = choice.finish_reason ?? reason;
        const part = isChat ? (choice.delta.content ?? choice.delta.reasoning_content ?? "") : choice.text;
        text += part;
        const tokens = tokensOf(choice);
        if (logprobs) shown.append(...tokens.map((each) => token(each))); else if (part) shown.append(part);
        this.talk.scrollTop = this.talk.scrollHeight;
      }
      this.messages.push({ role: "assistant", content: text });
      note.textContent = `${reason ?? "ended"}${usage ? ` · ${number(usage.prompt_tokens)} + ${number(usage.completion_tokens)} tokens` : ""}`;
      return true;
    } catch (error) {
      note.textContent = signal.aborted ? "stopped" : error.message;
      note.className = signal.aborted ? "note" : "note bad";
      return false;
    }
  }
}

/** [text, log-probability] of the tokens of a chunk, of either API. */
function tokensOf(choice) {
  const found = choice.logprobs;
  if (!found) return [];
  if (found.content) return found.content.map((each) => [each.token, each.logprob]);
  return found.tokens.map((each, at) => [each, found.token_logprobs[at]]);
}
