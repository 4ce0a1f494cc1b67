// The order of the checks of `tallyhook doctor`, and which of them make sense after what was found.

import type { NamedSecret } from '../verify/secrets.ts';
import { checkAddress } from './address.ts';
import { checkTime } from './answer-time.ts';
import { checkEvent } from './event.ts';
import { CHECKS, type CheckName, type Finding, skipped } from './finding.ts';
import type { Endpoint } from './probe.ts';
import { checkEncoding, checkMethod, checkSize } from './refusals.ts';
import { checkBytes, checkForged, checkSignatures, checkUnsigned } from './signature.ts';
import { checkTls } from './tls.ts';

export type Plan = {
  readonly endpoint: Endpoint;
  /** At least one. */
  readonly secrets: readonly NamedSecret[];
  /** The job of the event that is made, once `mayMake` says yes. Without it there is no event. */
  readonly event?: { readonly job: string; readonly mayMake: () => Promise<boolean> } | undefined;
};

/** The name, its connection and TLS, 3; forged, unsigned, bytes, method, encoding, 5; size, 2, and what it holds back; time, 2. */
const TIMEOUTS_ONCE = 13;
/** That it is accepted, and not for another body. */
const TIMEOUTS_PER_SECRET = 2;

/**
 * How long all checks may take, in time-outs of one request: the most that they need if each is answered within it. So no endpoint
 * fails because of the sum. A dead one ends the checks at the first time-out.
 */
export const timeoutsFor = (secrets: readonly NamedSecret[]): number =>
  TIMEOUTS_ONCE + TIMEOUTS_PER_SECRET * secrets.length;

/** Each finding as soon as it is there. The checks are made one after the other. */
export async function* examine(plan: Plan): AsyncGenerator<Finding> {
  const made = new Set<CheckName>();
  for await (const finding of findings(plan)) {
    made.add(finding.check);
    yield finding;
  }
  const isLate = plan.endpoint.signal.aborted;
  const why = isLate ? 'the time for all checks together was over' : 'it needs what failed before';
  for (const check of CHECKS) {
    const isPlanned = plan.event !== undefined || (check !== 'event' && check !== 'redelivery');
    if (isPlanned && !made.has(check)) yield skipped(check, why);
  }
}

/** Ends early where what follows makes no sense. */
async function* findings({ endpoint, secrets, event }: Plan): AsyncGenerator<Finding> {
  for (const check of [checkAddress, checkTls]) {
    const finding = await check(endpoint);
    yield finding;
    if (finding.result === 'failed') return;
  }
  const { findings: signed, secret, isReceiving } = await checkSignatures(endpoint, secrets);
  yield* signed;
  if (!isReceiving) return;
  const reached = { ...endpoint, isReached: true };
  yield await checkForged(reached, secrets);
  yield await checkUnsigned(reached);
  if (secret === undefined) return;
  for (const check of [checkBytes, checkMethod, checkEncoding, checkSize, checkTime]) {
    if (endpoint.signal.aborted) return;
    yield await check(reached, secret);
  }
  if (event === undefined || endpoint.signal.aborted) return;
  if (await event.mayMake()) {
    // The time in which somebody thought about the question does not count.
    const signal = AbortSignal.timeout(2 * endpoint.timeoutMs);
    yield* checkEvent({ ...reached, signal }, { secret, job: event.job });
  } else
    yield* [skipped('event', 'you did not want one'), skipped('redelivery', 'you did not want an event')];
}
