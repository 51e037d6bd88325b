/** Figures and times as people read them. */

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const CLOCK = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const SECOND = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** @param {number | null} value @returns {string} such as `12,345`; `–` where it is not known */
export function whole(value) {
  if (value === null || value === undefined) return "–";
  return WHOLE.format(value);
}

/** @param {number | null} value @returns {string} such as `12.3K`; `–` where it is not known */
export function short(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) < 1000 ? WHOLE.format(Math.round(value)) : SHORT.format(value);
}

/** @param {number | null} value per second @returns {string} such as `4.2/s`, `1.2K/s` */
export function rate(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0/s";
  if (value < 0.1) return "<0.1/s";
  return value < 10 ? `${value.toFixed(1).replace(/\.0$/, "")}/s` : `${short(value)}/s`;
}

/** @param {number} count @param {string} one @param {string} [many] @returns {string} */
export function number(count, one, many = `${one}s`) {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** @param {number | null} seconds @returns {string} such as `3.2 s`, `4 min` */
export function lasting(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const size = Math.abs(seconds);
  if (size < 1) return `${Math.round(seconds * 1000)} ms`;
  if (size < 60) return `${size < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (size < 3600) return `${Math.round(seconds / 60)} min`;
  if (size < 86_400) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86_400).toFixed(1)} d`;
}

/** @param {number} bytes @returns {string} such as `1.2 MB` */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = -1;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** @param {number} at Unix ms @returns {string} such as `10:20:05`, or `24 Nov, 10:20` of another day */
export function moment(at) {
  return new Date(at).toDateString() === new Date().toDateString() ? clock(at) : DAY.format(at);
}

/** @param {number} at Unix ms @returns {string} the day, unless it is today, and the time to the second */
export function momentToSecond(at) {
  return new Date(at).toDateString() === new Date().toDateString() ? clock(at) : SECOND.format(at);
}

/** @param {number} at Unix ms @returns {string} the time of day here, such as `10:20:05` */
export function clock(at) {
  return CLOCK.format(at);
}
