// Whether the process is under load, as a share of its time: so it means the same on a slow machine and on a fast one.

import { performance } from 'node:perf_hooks';

/** Long enough that one slow request is no load, and short enough that a flood is seen soon. */
const SAMPLE_MS = 500;
/** Above half, a little more work can already make others wait. */
const BUSY_SHARE = 0.5;

export type EventLoopLoad = {
  /** Whether the event loop was busy for most of the last sample. */
  readonly isBusy: () => boolean;
  readonly close: () => void;
};

export function createEventLoopLoad({ sampleMs = SAMPLE_MS } = {}): EventLoopLoad {
  let before = performance.eventLoopUtilization();
  let share = 0;
  const timer = setInterval(() => {
    const present = performance.eventLoopUtilization();
    share = performance.eventLoopUtilization(present, before).utilization;
    before = present;
  }, sampleMs).unref();
  return { isBusy: () => share > BUSY_SHARE, close: () => clearInterval(timer) };
}
