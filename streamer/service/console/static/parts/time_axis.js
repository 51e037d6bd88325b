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
 * Place labels in a row: near their places, on no other label, and within the picture.
 * @param {{at: number, width: number}[]} labels places and widths in pixels
 * @param {number} left the first pixel that may be used
 * @param {number} right the last one
 * @param {number} gap pixels between two labels
 * @returns {{x: number}[]} the middle of each label, in the order given
 */
export function placeLabels(labels, left, right, gap = 6) {
  const inside = ({ at, width }) => Math.max(left + width / 2, Math.min(right - width / 2, at));
  const placed = labels.map((label, index) => ({ ...label, index, x: inside(label) })).sort((a, b) => a.at - b.at);
  for (let at = 1; at < placed.length; at += 1) {
    const [one, next] = [placed[at - 1], placed[at]];
    const lack = (one.width + next.width) / 2 + gap - (next.x - one.x);
    if (lack <= 0) continue;
    // Each gives way by half, unless the picture ends.
    one.x = Math.max(left + one.width / 2, one.x - lack / 2);
    next.x = Math.min(right - next.width / 2, one.x + (one.width + next.width) / 2 + gap);
    one.x = Math.min(one.x, next.x - (one.width + next.width) / 2 - gap);
  }
  return placed.sort((a, b) => a.index - b.index).map(({ x }) => ({ x }));
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
