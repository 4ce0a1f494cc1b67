// Which steps of a job's progress are worth a webhook: at most one in each ten percent, and at most one a second.

const STEP_PERCENT = 10;
const PAUSE_MS = 1_000;

/** `from`: what was reached before, as when a job begins again after a restart. `nowMs`: of any steady clock. */
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
