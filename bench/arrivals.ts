// From the times of sending and of receipt: how many events were confirmed in a second, and how long they took.

import { createLatencies, type Latency, recordUs, summarize } from './load/latency.ts';
import type { LoadReport } from './load/plan.ts';

const SECOND_US = 1_000_000;

/** Pure. When the events that were first sent in the window were received. */
export function arrivals(
  report: Pick<LoadReport, 'fromUs' | 'toUs' | 'firstNumber' | 'endNumber'>,
  sent: Float64Array,
  received: Float64Array,
): { confirmedPerS: number; receipt: Latency; drainS: number } {
  const histogram = createLatencies();
  let [lastUs, events] = [report.fromUs, 0];
  for (let number = report.firstNumber; number < report.endNumber; number++) {
    const [sentUs = 0, receivedUs = 0] = [sent[number], received[number]];
    if (sentUs === 0 || receivedUs === 0) continue;
    events += 1;
    recordUs(histogram, receivedUs - sentUs);
    lastUs = Math.max(lastUs, receivedUs);
  }
  return {
    confirmedPerS: events === 0 ? 0 : (events / (lastUs - report.fromUs)) * SECOND_US,
    receipt: summarize(histogram),
    drainS: Math.max(0, lastUs - report.toUs) / SECOND_US,
  };
}
