// Checks a recorded run against every promise, and counts what was lost, unexpected, duplicated and recovered. Pure: the
// same record gives the same verdict, so a test can show that each kind of violation is caught.

import { audit } from './checks/audit.ts';
import { cutOffRequests, lateAnswers, missingRetryAfter, wrongAnswers } from './checks/answers.ts';
import { altered, copies, freshCopies, groupBy, ids, lost, order, unexpected } from './checks/bus.ts';
import { type Violation, violation } from './checks/violation.ts';
import { effectiveParks, parks } from './checks/parks.ts';
import { RECOVERY_LIMIT_MS } from './episodes.ts';
import type { Recorded } from './recorded.ts';
import { isAcknowledged } from '../support/sender.ts';

export type { Violation } from './checks/violation.ts';

export type Verdict = {
  readonly violations: readonly Violation[];
  readonly counts: {
    readonly requests: number;
    readonly acknowledged: number;
    readonly events: number;
    readonly messages: number;
    /** Acknowledged or in the ledger, but not on the bus. */
    readonly lost: number;
    /** On the bus, but never correctly signed. */
    readonly unexpected: number;
    /** Copies beyond the first. */
    readonly duplicated: number;
    /** Events on the bus of which a request failed or a publication was not confirmed. */
    readonly recovered: number;
    /** Parks that lasted long enough to be checked. */
    readonly parked: number;
    readonly discarded: number;
  };
};

export function check(recorded: Recorded): Verdict {
  const violations = [
    ...lost(recorded),
    ...unexpected(recorded),
    ...altered(recorded),
    ...copies(recorded),
    ...order(recorded),
    ...parks(recorded),
    ...ids(recorded),
    ...audit(recorded),
    ...lateAnswers(recorded),
    ...wrongAnswers(recorded),
    ...missingRetryAfter(recorded),
    ...cutOffRequests(recorded),
    ...wrongReturns(recorded),
    ...exits(recorded),
    ...recorded.leaks.map((place) => violation('leak', `something planted stands in ${place}`)),
    ...recorded.alarms.map((line) => violation('exit', line)),
    ...drains(recorded),
  ];
  return { violations, counts: count(recorded, violations) };
}

/** An event is `returned` only while a fault had unbound the queue. */
function wrongReturns({ ledger, injections, episodes }: Recorded): Violation[] {
  const unbound = episodes.filter(({ number }) =>
    injections.some((injection) => injection.episode === number && injection.unbinds),
  );
  return ledger.publications
    .filter(({ result }) => result === 'returned')
    .filter(
      ({ atMs }) => !unbound.some((each) => each.startMs <= atMs && atMs <= (each.recoveredMs ?? Infinity)),
    )
    .map(({ eventId }) => violation('wrong answer', `${eventId} was returned though a queue was bound`));
}

function exits({ exits: found }: Recorded): Violation[] {
  return found.flatMap(({ replica, asked, code, signal }) => {
    if (asked === 'SIGKILL' || (asked === 'SIGTERM' && code === 0)) return [];
    const how = `replica ${replica} ended with ${signal ?? code}`;
    return [
      violation('exit', asked === undefined ? `${how}, and nobody asked it to` : `${how} after ${asked}`),
    ];
  });
}

function drains(recorded: Recorded): Violation[] {
  const { ledger, episodes, finalDrainMs, undelivered, injections } = recorded;
  const named = (number: number) =>
    injections
      .filter(({ episode }) => episode === number)
      .map(({ fault }) => fault)
      .join(' + ');
  return [
    ...episodes
      .filter(({ recoveredMs }) => recoveredMs === undefined)
      .map(({ number }) =>
        violation('not drained', `not well ${RECOVERY_LIMIT_MS} ms after ${named(number)}`),
      ),
    ...(finalDrainMs === undefined ? [violation('not drained', 'the outbox was not empty in the end')] : []),
    ...(ledger.outboxLeft === 0
      ? []
      : [violation('not drained', `${ledger.outboxLeft} entries left in the outbox`)]),
    ...undelivered.map((id) => violation('not drained', `${id} was never acknowledged`)),
  ];
}

function count(recorded: Recorded, violations: readonly Violation[]): Verdict['counts'] {
  const { attempts, messages, ledger } = recorded;
  const received = groupBy(freshCopies(messages), ({ id }) => id);
  const troubled = new Set([
    ...attempts.filter((each) => !isAcknowledged(each)).map(({ notice }) => notice.eventId),
    ...ledger.publications.filter(({ result }) => result !== 'confirmed').map(({ eventId }) => eventId),
  ]);
  const ofKind = (kind: Violation['kind']) => violations.filter((each) => each.kind === kind).length;
  return {
    requests: attempts.length,
    acknowledged: attempts.filter(isAcknowledged).length,
    events: ledger.events.length,
    messages: messages.length,
    lost: ofKind('lost'),
    unexpected: ofKind('unexpected'),
    duplicated: [...received.values()].reduce((sum, { length }) => sum + length - 1, 0),
    recovered: [...received.keys()].filter((id) => troubled.has(id)).length,
    parked: effectiveParks(recorded),
    discarded: recorded.parked.filter(({ isDiscarded }) => isDiscarded).length,
  };
}
