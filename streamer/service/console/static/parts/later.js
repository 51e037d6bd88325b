/** Doing something when nothing has happened for a while. */

/**
 * Return what calls `work` once nothing has called it for a while. A call that is overtaken while
 * it works is told so by its signal.
 * @param {(signal: AbortSignal) => Promise<void>} work
 * @param {number} delay ms
 * @param {(stop: () => void) => void} onLeave takes what is to be done when one leaves
 * @returns {(now?: boolean) => void}
 */
export function later(work, delay, onLeave) {
  let timer = 0;
  let running = new AbortController();
  const stop = () => {
    clearTimeout(timer);
    running.abort();
  };
  onLeave(stop);
  return (now = false) => {
    stop();
    running = new AbortController();
    const { signal } = running;
    const call = () => work(signal).catch((error) => signal.aborted || console.error(error));
    timer = setTimeout(call, now ? 0 : delay);
  };
}
