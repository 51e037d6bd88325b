/** Where times stand on a line, and the marks below it. */

const STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
  172_800, 604_800,
].map((seconds) => seconds * 1000);

/**
 * Return the places of times.
 * @param {number} from the first time, ms
 * @param {number} to the last one
 * @param {number} left pixels
 * @param {number} right pixels
 * @returns {(at: number) => number} pixels; within a little more than the bounds
 */
export function places(from, to, left, right) {
  const scale = (right - left) / Math.max(to - from, 1);
  return (at) => Math.max(left - 40, Math.min(right + 40, left + (at - from) * scale));
}

/**
 * Return times for marks, none closer than `room` pixels.
 * @param {number} from ms
 * @param {number} to ms
 * @param {number} width pixels
 * @param {number} room pixels
 * @returns {number[]} ms
 */
export function marks(from, to, width, room = 90) {
  const least = ((to - from) / Math.max(width, 1)) * room;
  const step = STEPS.find((one) => one >= least) ?? Math.ceil(least / STEPS.at(-1)) * STEPS.at(-1);
  // Whole days begin at midnight here, not in Greenwich.
  const shift = step > 3_600_000 ? new Date(from).getTimezoneOffset() * 60_000 : 0;
  const found = [];
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) found.push(at);
  return found;
}

/**
 * Put bars into lanes, so that none lies on another.
 * @param {{from: number, to: number}[]} bars in order of their starts
 * @returns {number[]} the lane of each
 */
export function lanes(bars) {
  const ends = [];
  return bars.map(({ from, to }) => {
    let lane = ends.findIndex((end) => end <= from);
    if (lane < 0) lane = ends.length;
    ends[lane] = to;
    return lane;
  });
}
