// Keys, projects, users and usage of the organisation, for its admins.

import { get, login, post, remove } from "./api.js";
import { Chart } from "./chart.js";
import { confirmed, el, empty, field, fill, number, say, table, time } from "./dom.js";
import { showLimits } from "./limits.js";

export async function admin(main, { signal, who }) {
  const organisations = who.operator ? (await get("api/v1/admin/organisations", signal)).organisations.map(({ name }) => name) : [who.organisation];
  const chosen = el("select", null, organisations.map((name) => el("option", { value: name, selected: name === who.organisation }, name)));
  const limits = el("div"), keys = el("div"), projects = el("div"), users = el("div"), usage = el("div");
  const query = () => `organisation=${encodeURIComponent(chosen.value)}`;
  const act = async (text, work) => {
    try { await work(); say(text); } catch (error) { say(error.message); }
    await load();
  };
  async function load() {
    const organisation = chosen.value;
    // Another one was chosen meanwhile.
    const isStale = () => signal.aborted || chosen.value !== organisation;
    if (isStale()) return;
    const [foundKeys, foundProjects, foundUsers] = await Promise.all(["keys", "projects", "users"].map((name) => get(`api/v1/admin/${name}?${query()}`, signal)));
    if (isStale()) return;
    showKeys(keys, foundKeys.keys, query, act);
    showProjects(projects, foundProjects.projects, query, act);
    fill(users, foundUsers.users.length === 0 ? empty("None. Users are people with keys of their own: ", el("code", null, `trainyard tenants add-user ${organisation} EMAIL`), ".") : table("Users", [["Email", (user) => user.email], ["Name", (user) => user.name], ["Role", (user) => user.role], ["Disabled", (user) => (user.disabled_at ? time(user.disabled_at) : "")]], foundUsers.users));
    const itsLimits = el("div");
    await showLimits(itsLimits, organisation, who.operator, signal);
    if (isStale()) return;
    fill(limits, itsLimits);
    await showUsage(usage, query, signal);
  }
  chosen.addEventListener("change", () => {
    // Nothing of the former organisation can be changed any more.
    for (const part of [limits, keys, projects, users, usage]) fill(part);
    load();
  });
  fill(main, el("h1", null, "Keys, projects, usage"), who.operator ? field("Organisation", chosen) : null,
    el("h2", null, "API keys"), who.keyed ? keyForm(query, act) : firstKeyForm(query), keys, el("h2", null, "Projects"), projectForm(query, act), projects,
    el("h2", null, "Users"), users, el("h2", null, "Limits"), limits, el("h2", null, "Usage"), usage);
  await load();
}

function keyForm(query, act) {
  const name = el("input", { type: "text", required: true });
  const role = el("select", null, ["member", "read-only", "admin"].map((value) => el("option", { value }, value)));
  const days = el("input", { type: "number", min: 1, placeholder: "never" });
  const submit = (event) => {
    event.preventDefault();
    act("The key was created.", async () => {
      const body = { name: name.value, role: role.value, ...(days.value ? { expires_in_seconds: Number(days.value) * 86400 } : {}) };
      showSecret((await post(`api/v1/admin/keys?${query()}`, body)).key);
      name.value = "";
    });
  };
  return el("form", { class: "row", onsubmit: submit }, field("Name", name), field("Role", role), field("Expires in days", days), el("button", { type: "submit" }, "Create a key"));
}

const FIRST = [
  "Once this key exists, the server requires keys: every program and every browser needs one, and requests without a key are refused.",
  "So the first key must be an admin key of an operator, which can create all others. This page logs in with it and shows it once. If it is lost, the command “trainyard keys create” creates another on the server's machine.",
];

/** Creates the first key: an admin's, with which this page goes on. */
function firstKeyForm(query) {
  const name = el("input", { type: "text", required: true, value: "admin" });
  const submit = async (event) => {
    event.preventDefault();
    if (!(await confirmed(FIRST, { yes: "Create the first key", no: "Cancel" }))) return;
    try {
      const { key } = await post(`api/v1/admin/keys?${query()}`, { name: name.value, role: "admin" });
      // Shown first: the server has it, whatever comes of the login.
      showSecret(key, "It is an admin key. Programs read it from TINKER_API_KEY.");
      dispatchEvent(new CustomEvent("loggedin", { detail: await login(key) }));
      say("The first key was created, and this page is logged in with it.");
    } catch (error) {
      say(error.message);
    }
  };
  return el("form", { class: "row", onsubmit: submit, "aria-label": "The first key" },
    el("p", { class: "wide" }, "This server has no keys: everybody on its machine is an admin until the first key, an admin key, is created."),
    field("Name", name), el("button", { type: "submit" }, "Create a key"));
}

/** The one time that a key is shown. */
function showSecret(key, use = "") {
  const dialog = el("dialog", { "aria-label": "The new key" });
  const close = () => { dialog.close(); dialog.remove(); };
  dialog.append(el("p", null, `Save it now: it is shown only once. ${use}`), el("p", null, el("code", { id: "new-key" }, key)),
    el("div", { class: "row" }, el("button", { type: "button", onclick: () => navigator.clipboard?.writeText(key) }, "Copy"), el("button", { type: "button", class: "plain", onclick: close }, "Done")));
  document.body.append(dialog);
  dialog.showModal();
}

function showKeys(place, keys, query, act) {
  const revoke = (key) => async () => {
    if (await confirmed(`Revoke the key “${key.name}”? Requests with it are refused at once.`)) act("The key is revoked.", () => remove(`api/v1/admin/keys/${key.id}?${query()}`));
  };
  fill(place, keys.length === 0 ? empty("None in the store. Keys of the configuration file are not listed.") : table("Keys", [
    ["Name", (key) => key.name], ["Key", (key) => el("code", null, key.hint)], ["User", (key) => key.user], ["Role", (key) => key.role],
    ["Created", (key) => time(key.created_at)], ["Expires", (key) => (key.expires_at ? time(key.expires_at) : "never")],
    ["", (key) => (key.revoked_at ? el("span", { class: "muted" }, "revoked ", time(key.revoked_at)) : el("button", { class: "danger", type: "button", "aria-label": `Revoke ${key.name}`, onclick: revoke(key) }, "Revoke"))],
  ], keys));
}

function projectForm(query, act) {
  const id = el("input", { type: "text", required: true }), name = el("input", { type: "text" });
  const submit = (event) => {
    event.preventDefault();
    act("The project was created.", async () => {
      await post(`api/v1/admin/projects?${query()}`, { id: id.value, name: name.value || id.value });
      id.value = name.value = "";
    });
  };
  return el("form", { class: "row", onsubmit: submit }, field("Project id", id), field("Project name", name), el("button", { type: "submit" }, "Create a project"));
}

function showProjects(place, projects, query, act) {
  fill(place, projects.length === 0 ? empty("None. A project groups sessions: create it here, and name it in ", el("code", null, 'tinker.ServiceClient(project_id="…")'), ".") : table("Projects", [
    ["Id", (project) => el("a", { href: `#/runs?q=${encodeURIComponent(project.id)}` }, project.id)], ["Name", (project) => project.name], ["Created", (project) => time(project.created_at)],
    ["", (project) => el("button", { class: "danger", type: "button", "aria-label": `Delete ${project.id}`, onclick: async () => {
      if (await confirmed(`Delete the project “${project.id}”? Its runs stay.`)) act("The project is deleted.", () => remove(`api/v1/admin/projects/${encodeURIComponent(project.id)}?${query()}`));
    } }, "Delete")],
  ], projects));
}

const HOUR = 3600e3;

async function showUsage(place, query, signal) {
  const end = Math.ceil(Date.now() / HOUR) * HOUR, start = end - 7 * 24 * HOUR;
  const text = (ms) => new Date(ms).toISOString().replace(".000Z", "Z");
  const period = `starting_on=${text(start)}&ending_before=${text(end)}&${query()}`;
  const { data } = await get(`api/v1/billing/usage/events?${period}`, signal);
  const kinds = { training: 0, sampling_prefill: 1, sampling_sample: 2 };
  const totals = {}, hours = {};
  const starts = Array.from({ length: (end - start) / HOUR }, (_, at) => start + at * HOUR);
  for (const { bucket_start, event_info: info } of data) {
    if (!(info.type in kinds)) continue;
    totals[info.type] = (totals[info.type] ?? 0) + info.token_count;
    const hour = (hours[info.type] ??= new Map()), at = Date.parse(bucket_start);
    hour.set(at, (hour.get(at) ?? 0) + info.token_count);
  }
  const chart = new Chart("Tokens by hour, last week", { time: () => true, fromZero: true });
  // An hour without requests has no tokens.
  chart.set(Object.entries(hours).map(([label, points]) => (
    { label: label.replace("_", " "), color: kinds[label], xs: starts, ys: starts.map((at) => points.get(at) ?? 0) })));
  fill(place, data.length === 0 ? empty("No request of the last week has ended.") : table("Tokens of the last week", [["Kind", ([kind]) => kind.replace("_", " ")], ["Tokens", ([, count]) => number(count), true]], Object.entries(totals)),
    el("div", { class: "charts" }, chart.element), el("p", null, el("a", { href: `api/v1/admin/usage.csv?${period}`, download: "usage.csv" }, "Each request as CSV")));
}
