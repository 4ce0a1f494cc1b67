// Decides which steps of a job's progress get a notification: at most one per ten percent, and at most one per second.

const STEP_PERCENT = 10;
const PAUSE_MS = 1_000;

/** `from`: the percentage reached by an earlier run of the job, or 0. `nowMs`: of any monotonic clock. */
export function createMilestones(from: number): (percentage: number, nowMs: number) => boolean {
  let lastStep = from === 0 ? -1 : Math.floor(from / STEP_PERCENT);
  let lastMs = Number.NEGATIVE_INFINITY;
  return (percentage, nowMs) => {
    const step = Math.floor(percentage / STEP_PERCENT);
    if (step <= lastStep || nowMs - lastMs < PAUSE_MS) return false;
    lastStep = step;
    lastMs = nowMs;
    return true;
  };
}
