// Round positions and their names on the axes of charts.

import { clock, moment } from "./dom.js";

const SECOND = 1e3, MINUTE = 60e3, HOUR = 3600e3, DAY = 24 * HOUR;
/** Distances between marks of a time axis. */
const STEPS = [
  SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY,
];

/** Round positions within a range. */
export function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}

/** Times within a range at which the clock here shows round numbers, and the distance between them. */
export function timeTicks(low, high, count) {
  const step = STEPS.find((candidate) => candidate >= (high - low) / count) ?? STEPS.at(-1);
  // Of the time here, days and hours are round.
  const offset = new Date(low).getTimezoneOffset() * MINUTE;
  const found = [];
  for (let at = Math.ceil((low - offset) / step) * step + offset; at <= high; at += step) found.push(at);
  return { step, found };
}

/** The name of a mark: as much of date and time as its distance to the next one needs. */
export function timeName(at, step) {
  const date = new Date(at), text = moment(date);
  if (step >= 28 * DAY) return text.slice(0, 10);
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
  if (step >= DAY || (isMidnight && step >= HOUR)) return text.slice(5, 10);
  return step >= MINUTE ? text.slice(11, 16) : clock(date);
}

/** A time for reading: with its day, if the range has several. */
export const timeText = (at, span) => (span > DAY ? moment(new Date(at)) : clock(new Date(at)));
