// The check `time`: how long a delivery takes from the begin of its connection to the end of its answer.

import { duration } from '../../terminal/readable.ts';
import { explain, type Fault, isMalformed } from './explain.ts';
import { type Finding, failed, ok, warning } from './finding.ts';
import { type Answer, type Endpoint, post } from './probe.ts';
import { malformedBody } from './signature.ts';

/** Enough for a median. Each is recorded by the service. A slow endpoint gets fewer: it shows what it is earlier. */
const PROBES = 5;
/** With the 10 s of the conversion service: one second. */
const SLOW_SHARE = 0.1;

export async function checkTime(endpoint: Endpoint, secret: string): Promise<Finding> {
  const timesMs: number[] = [];
  while (timesMs.length < PROBES && sum(timesMs) < endpoint.timeoutMs) {
    const answer = await post(endpoint, malformedBody(), { secret });
    if (answer.kind === 'none' || !isMalformed(answer)) return failed('time', faultOf(answer, timesMs));
    timesMs.push(answer.ms);
  }
  return judgeTimes(timesMs, endpoint.timeoutMs);
}

const sum = (numbers: readonly number[]) => numbers.reduce((one, other) => one + other, 0);

function faultOf(answer: Answer, timesMs: readonly number[]): Fault {
  const { found, mend } = explain(answer, `request ${timesMs.length + 1} of ${PROBES}`);
  const before = timesMs.length === 0 ? '' : `. Before it, answers took ${timesMs.map(duration).join(', ')}`;
  return { found: found + before, mend };
}

/** `timeoutMs`: how long a sender waits. Pure. */
export function judgeTimes(timesMs: readonly number[], timeoutMs: number): Finding {
  const sorted = timesMs.toSorted((a, b) => a - b);
  const median = sorted[sorted.length >> 1] ?? 0;
  const slowest = sorted.at(-1) ?? 0;
  const isSlow = slowest > timeoutMs * SLOW_SHARE;
  const found = `${isSlow ? 'slow: ' : ''}the median of ${sorted.length} answers took ${duration(median)}, the slowest ${duration(slowest)}. Senders wait ${duration(timeoutMs)}`;
  const details = { median_ms: Math.floor(median), slowest_ms: Math.floor(slowest) }; // as in words
  return isSlow ? warning('time', { found, mend: MEND }, details) : ok('time', found, details);
}

const MEND: Fault['mend'] =
  'senders that get no answer in time send again. Look at the distance to the service, at its load and at its Postgres: tallyhook stats';
