// Checkpoints of a run: expiry, publication, download, deletion.

import { get, post, put, remove } from "./api.js";
import { bytes, confirmed, el, empty, field, fill, say, table, time } from "./dom.js";

/** Shows the checkpoints of a run, with what can be done with them. */
export async function showCheckpoints(place, base, signal) {
  const again = () => showCheckpoints(place, base, signal);
  const { checkpoints } = await get(`${base}/checkpoints?limit=200`, signal).catch(() => ({ checkpoints: [] }));
  const act = (text, work) => async () => {
    try { await work(); say(text); again(); } catch (error) { say(error.message); }
  };
  const path = (checkpoint) => `${base}/checkpoints/${checkpoint.checkpoint_id.split("/").map(encodeURIComponent).join("/")}`;
  const actions = (checkpoint) => el("div", { class: "row" },
    el("button", { class: "plain", type: "button", onclick: act(checkpoint.public ? "It is private again." : "Every tenant may read it now.", () => (checkpoint.public ? remove : post)(`${path(checkpoint)}/publish`)) }, checkpoint.public ? "Make private" : "Publish"),
    el("button", { class: "plain", type: "button", onclick: () => setTtl(checkpoint, path(checkpoint), act) }, "Expiry"),
    checkpoint.checkpoint_type === "external" ? el("button", { class: "plain", type: "button", onclick: act("The download starts.", () => download(path(checkpoint))) }, "Download") : null,
    el("button", { class: "danger", type: "button", onclick: async () => {
      if (await confirmed(`Delete ${checkpoint.tinker_path}? This can't be undone.`)) await act("The checkpoint was deleted.", () => remove(path(checkpoint)))();
    } }, "Delete"));
  fill(place, checkpoints.length === 0 ? empty("None yet. Save weights for sampling with ", el("code", null, 'run.save_weights_for_sampler("name")'), ", or a state to resume from with ", el("code", null, 'run.save_state("name")'), ".") : table("Newest first", [
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
  const end = async (seconds) => { dialog.close(); dialog.remove(); await act("The expiry was changed.", () => put(`${path}/ttl`, { ttl_seconds: seconds }))(); };
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
