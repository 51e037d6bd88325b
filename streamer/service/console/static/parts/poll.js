/** Asking again and again, as long as somebody looks. */

import { ApiError, AwayError } from "../api.js";

/**
 * Do something now and then again, until one leaves. While the page is hidden it rests.
 * @param {() => Promise<void>} work an `AwayError` of it is passed over: the page says so already
 * @param {number} interval ms between the end of one and the start of the next
 * @param {(stop: () => void) => void} onLeave takes what is to be done when one leaves
 * @param {(error: Error) => void} [failed] hears of other errors after the first time
 * @returns {Promise<() => Promise<void>>} does it at once, once the first time is over
 */
export async function poll(work, interval, onLeave, failed = complain) {
  let timer = 0;
  let stopped = false;
  let busy = false;

  async function once(first) {
    clearTimeout(timer);
    if (busy) return;
    busy = true;
    try {
      if (first || !document.hidden) await work();
    } catch (error) {
      if (first && !(error instanceof AwayError)) throw error;
      if (!stopped && !(error instanceof AwayError)) failed(error);
    } finally {
      busy = false;
      if (!stopped) timer = setTimeout(once, interval);
    }
  }

  const seen = () => document.hidden || once(false);
  document.addEventListener("visibilitychange", seen);
  onLeave(() => {
    stopped = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  });
  await once(true);
  return () => once(false);
}

/** What the service refuses, it may allow the next time; all else is a mistake of ours. */
function complain(error) {
  if (!(error instanceof ApiError)) console.error(error);
}
