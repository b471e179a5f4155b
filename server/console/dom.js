// Elements without markup in strings: whatever text a run carries stays text.

/** An element with properties, attributes (`aria-label`, `class`) and children. */
export function el(name, properties, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list" && key !== "form") element[key] = value;
    else element.setAttribute(key === "className" ? "class" : key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A table: columns are [title, row => content, isNumber]. On a narrow screen each row becomes a card, whose cells have
 *  their titles with them; the roles keep it a table. */
export function table(caption, columns, rows) {
  const head = columns.map(([title, , number]) => el("th", { scope: "col", role: "columnheader", class: number ? "number" : null }, title));
  const cell = (row) => ([title, content, number]) => {
    const found = content(row);
    const isEmpty = found === null || found === undefined || found === "";
    return el("td", { role: "cell", class: [number ? "number" : "", isEmpty ? "empty" : ""].join(" ").trim() || null, "data-title": title }, found ?? "");
  };
  const line = (row) => el("tr", { role: "row" }, columns.map(cell(row)));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", { role: "table" }, el("caption", null, caption), el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)),
      el("tbody", { role: "rowgroup" }, rows.map(line))));
}

/** A sample of one of the eight colours of curves. */
export function swatch(color) {
  const element = el("span", { class: "swatch", "aria-hidden": "true" });
  element.style.background = `var(--c${color % 8})`;
  return element;
}

/** The address of a run's page, beside others. */
export function runAddress(id, others = []) {
  const text = (one) => encodeURIComponent(one).replaceAll("%3A", ":");
  return `#/run/${text(id)}${others.length > 0 ? `?with=${others.map(text).join(",")}` : ""}`;
}

/** The address of an agent session's page. */
export function agentAddress(id) {
  return `#/agent/${encodeURIComponent(id)}`;
}

/** Nothing to show yet, and how there will be something. */
export function empty(...text) {
  return el("p", { class: "muted empty-state" }, ...text);
}

/** A labelled field; a wide one takes the whole line. */
export function field(label, input, wide = false) {
  return el("label", { class: wide ? "wide" : null }, label, input);
}

/** Tells the user, and a screen reader, what happened. */
export function say(text) {
  document.getElementById("status").textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => say.text === text && (document.getElementById("status").textContent = ""), 8000);
  say.text = text;
}

/** Asks before something that can't be undone; the text may have paragraphs. */
export function confirmed(text, { yes = "Yes", no = "No" } = {}) {
  return new Promise((resolve) => {
    const dialog = el("dialog", { "aria-label": "Please confirm" });
    const end = (answer) => { dialog.close(); dialog.remove(); resolve(answer); };
    dialog.append(...[text].flat().map((paragraph) => el("p", null, paragraph)), el("div", { class: "row" },
      el("button", { class: "danger", type: "button", onclick: () => end(true) }, yes),
      el("button", { class: "plain", type: "button", onclick: () => end(false) }, no)));
    dialog.addEventListener("cancel", () => end(false));
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Formats of our own: the browser's cost 20 to 100 ms when they are first used.
const two = (value) => String(value).padStart(2, "0");

/** A number with its thousands apart. */
export function number(value) {
  if (value === null || value === undefined) return "–";
  const [whole, ...rest] = String(value).split(".");
  return [whole.replace(/\B(?=(\d{3})+$)/g, ","), ...rest].join(".");
}
/** The time of a day, here. */
export const clock = (date) => `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
/** Day and time, here. */
export const moment = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(date)}`;
export const significant = (value) => (value === null || value === undefined ? "not finite" : Number(value.toPrecision(6)).toString());
export function bytes(value) {
  if (value >= 2 ** 30) return `${(value / 2 ** 30).toFixed(1)} GiB`;
  return value >= 2 ** 20 || value === 0 ? `${Math.round(value / 2 ** 20)} MiB` : `${(value / 2 ** 10).toFixed(1)} KiB`;
}
export const time = (text) => el("time", { dateTime: text, title: text }, moment(new Date(text)));
export function duration(seconds) {
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
