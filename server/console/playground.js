// Chat or completion with one or two models side by side.

import { get, stream } from "./api.js";
import { el, field, fill, number } from "./dom.js";
import { token } from "./token.js";

export async function playground(main, { signal, query }) {
  const { data } = await get("oai/api/v1/models", signal);
  const names = el("datalist", { id: "models" }, data.map((model) => el("option", { value: model.id })));
  const mode = el("select", { id: "mode" }, el("option", { value: "chat" }, "chat"), el("option", { value: "completion" }, "completion"));
  const system = el("input", { type: "text", placeholder: "none" });
  const prompt = el("textarea", { required: true, rows: 4 });
  const settings = {
    max_tokens: el("input", { type: "number", min: 1, value: 128, required: true }),
    temperature: el("input", { type: "number", min: 0, max: 2, step: 0.05, value: 1 }),
    top_p: el("input", { type: "number", min: 0, max: 1, step: 0.01, value: 1 }),
    seed: el("input", { type: "number", min: 0, placeholder: "random" }),
  };
  const logprobs = el("input", { type: "checkbox" });
  const two = el("input", { type: "checkbox", onchange: () => { panes[1].element.hidden = !two.checked; } });
  const panes = [new Pane("First model", query.get("model") ?? data[0]?.id ?? ""), new Pane("Second model", data[0]?.id ?? "")];
  panes[1].element.hidden = true;
  const send = el("button", { type: "submit" }, "Send");
  const stop = el("button", { type: "button", class: "plain", disabled: true }, "Stop");
  const submit = async (event) => {
    event.preventDefault();
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
    await Promise.all(panes.filter((pane) => !pane.element.hidden).map((pane) => pane.answer(asked, left.signal)));
    send.disabled = false;
    stop.disabled = true;
    if (mode.value === "chat") prompt.value = "";
    prompt.focus();
  };
  fill(main, el("h1", null, "Playground"), names,
    el("form", { onsubmit: submit },
      el("div", { class: "row" }, field("Mode", mode), field("Most tokens", settings.max_tokens), field("Temperature", settings.temperature), field("Top p", settings.top_p), field("Seed", settings.seed),
        el("label", { class: "inline" }, logprobs, "Log-probabilities"), el("label", { class: "inline" }, two, "Two side by side")),
      field("System message (chat)", system, true), field("Prompt", prompt, true),
      el("div", { class: "row" }, send, stop, el("button", { type: "button", class: "plain", onclick: () => panes.forEach((pane) => pane.clear()) }, "New conversation"))),
    el("div", { class: "panes" }, panes.map((pane) => pane.element)));
}

/** A model, its conversation and its answer. */
class Pane {
  constructor(title, model) {
    this.model = el("input", { type: "text", value: model, list: "models", required: true });
    this.talk = el("div", { class: "talk", role: "log", "aria-label": `${title}: conversation`, tabindex: 0 });
    this.element = el("section", { "aria-label": title }, field(title, this.model, true), this.talk);
    this.messages = [];
  }

  clear() {
    this.messages = [];
    fill(this.talk);
  }

  async answer({ mode, system, prompt, logprobs, settings }, signal) {
    const isChat = mode === "chat";
    if (!isChat) this.clear();
    this.talk.append(el("div", { class: "turn user" }, prompt));
    const shown = el("div", { class: "turn" }), note = el("div", { class: "note" }, "…");
    this.talk.append(shown, note);
    this.messages.push({ role: "user", content: prompt });
    const messages = [...(system ? [{ role: "system", content: system }] : []), ...this.messages];
    const body = { model: this.model.value, stream: true, stream_options: { include_usage: true }, ...settings };
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
    } catch (error) {
      this.messages.pop();
      note.textContent = signal.aborted ? "stopped" : error.message;
      note.className = signal.aborted ? "note" : "note bad";
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
