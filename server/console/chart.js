// Curves on a canvas: zoom by dragging or by keys, a cursor with a readout, gaps where a number was not finite.

import { ticks, timeName, timeText, timeTicks } from "./axis.js";
import { el, fill, significant, swatch } from "./dom.js";

/** How near to what is seen a chart is drawn. */
const NEAR = 200;
const MARGIN = `${NEAR}px`;
const PAD = { left: 58, right: 10, top: 8, bottom: 24 };

/** Running mean in exponential steps; `weight` from 0 (none) to 1. Gaps stay. */
export function smooth(values, weight) {
  let mean = 0, norm = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    return mean / norm;
  });
}

export class Chart {
  /** `zoomed` is called with [low, high], or null for everything. `fromZero` is for counts and rates. */
  constructor(title, { zoomed, time = () => false, fromZero = false } = {}) {
    this.series = [];
    this.weight = 0;
    this.zoomed = zoomed ?? (() => {});
    this.isTime = time;
    this.fromZero = fromZero;
    this.readout = el("output", { "aria-live": "off" });
    this.canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": `${title}: no values yet` });
    this.title = title;
    this.element = el("figure", null, el("figcaption", null, el("span", null, title), this.readout), this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.moved(event));
    this.canvas.addEventListener("pointerdown", (event) => this.pressed(event));
    this.canvas.addEventListener("pointerup", (event) => this.released(event));
    this.canvas.addEventListener("pointerleave", () => { this.cursor = null; this.tell(); this.draw(); });
    this.canvas.addEventListener("blur", () => { this.cursor = null; this.tell(); this.draw(); });
    this.canvas.addEventListener("dblclick", () => this.zoomed(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => { if (this.width !== this.canvas.clientWidth) this.draw(); }).observe(this.canvas);
    new IntersectionObserver((seen) => { if (this.isStale && seen.at(-1).isIntersecting) this.draw(); }, { rootMargin: MARGIN }).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** Series are {label, xs, ys, color: 0…7}. */
  set(series, weight = this.weight) {
    this.series = series;
    this.weight = weight;
    const said = series.filter(({ ys }) => ys.length > 0).map(({ label, ys }) => {
      const finite = ys.filter((y) => y !== null);
      return `${label}: ${ys.length} points, from ${significant(finite[0])} to ${significant(finite.at(-1))}`;
    });
    this.canvas.setAttribute("aria-label", `${this.title}. ${said.join(". ") || "No values yet"}. Arrow keys move the cursor, plus and minus zoom, 0 shows everything.`);
    this.box = this.bounds();
    this.tell();
    if (!this.pending) {
      this.pending = true;
      requestAnimationFrame(() => { this.pending = false; this.draw(); });
    }
  }

  bounds() {
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { xs, ys } of this.series) {
      for (let i = 0; i < xs.length; i++) {
        left = Math.min(left, xs[i]); right = Math.max(right, xs[i]);
        if (ys[i] !== null) { low = Math.min(low, ys[i]); high = Math.max(high, ys[i]); }
      }
    }
    if (left > right) return null;
    if (low > high) [low, high] = [0, 1];
    if (this.fromZero) low = Math.min(0, low);
    const margin = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
    return { left, right: right > left ? right : left + (this.isTime() ? 60000 : 1), low: this.fromZero && low === 0 ? 0 : low - margin, high: high + margin };
  }

  draw() {
    const { canvas } = this, ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (width === 0) return;
    const place = canvas.getBoundingClientRect();
    this.isStale = place.bottom < -NEAR || place.top > innerHeight + NEAR;
    if (this.isStale) return;
    this.width = width;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const g = canvas.getContext("2d"), style = getComputedStyle(canvas);
    const color = (name) => style.getPropertyValue(name).trim();
    g.scale(ratio, ratio);
    g.font = "12px system-ui, sans-serif";
    const b = this.bounds();
    this.box = b;
    if (!b) return;
    const x = (value) => PAD.left + ((value - b.left) / (b.right - b.left)) * (width - PAD.left - PAD.right);
    const y = (value) => height - PAD.bottom - ((value - b.low) / (b.high - b.low)) * (height - PAD.top - PAD.bottom);
    this.x = x;
    g.fillStyle = color("--muted");
    g.strokeStyle = color("--soft");
    g.lineWidth = 1;
    g.textAlign = "right";
    for (const at of ticks(b.low, b.high, 5)) {
      g.beginPath(); g.moveTo(PAD.left, y(at)); g.lineTo(width - PAD.right, y(at)); g.stroke();
      g.fillText(Number(at.toPrecision(5)).toString(), PAD.left - 6, y(at) + 4);
    }
    g.textAlign = "center";
    // A mark near an edge is written within it.
    const mark = (at, text) => {
      const half = g.measureText(text).width / 2;
      g.fillText(text, Math.min(width - half, Math.max(half, x(at))), height - 6);
    };
    const count = Math.max(2, width / 110);
    if (this.isTime()) {
      const { step, found } = timeTicks(b.left, b.right, count);
      for (const at of found) mark(at, timeName(at, step));
    } else {
      for (const at of ticks(b.left, b.right, count)) mark(at, this.name(at));
    }
    for (const { xs, ys, color: index } of this.series) {
      g.strokeStyle = color(`--c${index % 8}`);
      const lines = this.weight > 0 ? [[ys, 0.3, 1], [smooth(ys, this.weight), 1, 2]] : [[ys, 1, 1.5]];
      for (const [values, alpha, stroke] of lines) {
        g.globalAlpha = alpha;
        g.lineWidth = stroke;
        g.beginPath();
        let open = false;
        for (let i = 0; i < xs.length; i++) {
          if (values[i] === null) { open = false; continue; }
          if (open) g.lineTo(x(xs[i]), y(values[i])); else g.moveTo(x(xs[i]), y(values[i]));
          if (!open && (i + 1 >= xs.length || values[i + 1] === null)) g.arc(x(xs[i]), y(values[i]), 2, 0, 7);
          open = true;
        }
        g.stroke();
      }
      g.globalAlpha = 1;
    }
    if (this.start !== undefined && this.cursor !== null && this.cursor !== undefined) {
      g.globalAlpha = 0.2; g.fillStyle = color("--accent");
      g.fillRect(x(this.start), PAD.top, x(this.cursor) - x(this.start), height - PAD.top - PAD.bottom);
      g.globalAlpha = 1;
    }
    if (this.cursor !== null && this.cursor !== undefined) {
      g.strokeStyle = color("--line");
      g.beginPath(); g.moveTo(x(this.cursor), PAD.top); g.lineTo(x(this.cursor), height - PAD.bottom); g.stroke();
    }
  }

  name(at) {
    if (!this.isTime()) return Number(at.toPrecision(6)).toString();
    return timeText(at, this.box ? this.box.right - this.box.left : 0);
  }

  /** Shows the points nearest to a position. */
  show(position) {
    this.cursor = position;
    this.tell();
    this.draw();
  }

  /** Writes the points nearest to the cursor, or else the newest: one line for each series, so that the height stays. */
  tell() {
    const isMoved = this.cursor !== null && this.cursor !== undefined;
    // The newest values change by themselves.
    this.readout.setAttribute("aria-live", isMoved ? "polite" : "off");
    fill(this.readout, this.series.map(({ label, xs, ys, color }) => {
      const at = isMoved ? nearest(xs, this.cursor) : xs.length - 1;
      const text = at >= 0 ? `${this.name(xs[at])}: ${significant(ys[at])}` : "–";
      return el("div", null, this.series.length > 1 ? [swatch(color), el("span", { class: "label" }, label), " "] : null, el("span", { class: "value" }, text));
    }));
  }

  at(event) {
    const b = this.box, width = this.canvas.clientWidth - PAD.left - PAD.right;
    const share = (event.offsetX - PAD.left) / width;
    return b.left + Math.min(1, Math.max(0, share)) * (b.right - b.left);
  }

  moved(event) { if (this.box) this.show(this.at(event)); }

  pressed(event) { if (this.box) this.start = this.at(event); }

  released(event) {
    if (this.start === undefined || !this.box) return;
    const range = [this.start, this.at(event)].sort((a, b) => a - b);
    this.start = undefined;
    if (range[1] - range[0] > (this.box.right - this.box.left) / 50) this.zoomed(range);
    else this.draw();
  }

  key(event) {
    if (!this.box) return;
    const { left, right } = this.box, middle = this.cursor ?? (left + right) / 2, width = right - left;
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key in moves) this.show(Math.min(right, Math.max(left, middle + (moves[event.key] * width) / 50)));
    else if (event.key === "+") this.zoomed([middle - width / 4, middle + width / 4]);
    else if (event.key === "-") this.zoomed([left - width / 2, right + width / 2]);
    else if (event.key === "0") this.zoomed(null);
    else return;
    event.preventDefault();
  }
}

/** The index of the nearest of rising positions. */
export function nearest(xs, position) {
  let [low, high] = [0, xs.length - 1];
  if (high < 0) return -1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] < position) low = middle; else high = middle;
  }
  return Math.abs(xs[low] - position) <= Math.abs(xs[high] - position) ? low : high;
}
