/** How fast counters grow: kept in this tab, from one look to the next. */

const KEPT = 90;

/** Remembers counters by name, and says their rates. */
export class History {
  constructor() {
    /** @type {Map<string, {at: number, total: number, rates: (number | null)[]}>} */
    this.series = new Map();
  }

  /**
   * Take a counter as it is now.
   * @param {string} name
   * @param {number} total
   * @param {number} at ms, of a clock that never runs backwards
   */
  add(name, total, at) {
    if (total === null || total === undefined) return;
    const known = this.series.get(name);
    if (!known) {
      this.series.set(name, { at, total, rates: [] });
      return;
    }
    const passed = (at - known.at) / 1000;
    if (passed <= 0) return;
    // A counter that is smaller began anew, with the program.
    const grown = total - known.total;
    known.rates.push(grown < 0 ? null : grown / passed);
    if (known.rates.length > KEPT) known.rates.shift();
    known.at = at;
    known.total = total;
  }

  /** @param {string} name @returns {(number | null)[]} per second, oldest first */
  rates(name) {
    return this.series.get(name)?.rates ?? [];
  }

  /** The rate of late, over a few looks: what comes in gusts is read more easily so.
   * @param {string} name @param {number} [looks] @returns {number | null} null before the second */
  rate(name, looks = 3) {
    const newest = this.rates(name)
      .slice(-looks)
      .filter((one) => one !== null);
    if (!newest.length) return null;
    return newest.reduce((sum, one) => sum + one, 0) / newest.length;
  }

  /** Forget all but these. @param {Set<string>} names */
  keep(names) {
    for (const name of this.series.keys()) if (!names.has(name)) this.series.delete(name);
  }
}
