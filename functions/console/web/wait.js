/** Time that passes. @module */

/** Waits; returns whether there is still somebody to wait for. @param {number} ms @param {AbortSignal} signal */
export function passed(ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve(!signal.aborted);
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
    if (signal.aborted) {
      end();
    }
  });
}
