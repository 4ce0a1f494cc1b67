// The effect of each fault as seen from outside: by senders, by a subscriber, and how long it took to recover.

import { touches } from './checks/windows.ts';
import { freshCopies } from './checks/bus.ts';
import type { Attempt, Episode, Message, Recorded, Injection } from './recorded.ts';
import { isAcknowledged } from '../support/sender.ts';

/** Of one strike of a fault, or of several: then counts are sums, and each time is the worst one. */
export type Effect = {
  readonly fault: string;
  readonly strikes: number;
  readonly lastedMs: number;
  readonly sender: {
    /** How many answers had each status, and how many requests failed with each error. */
    readonly saw: Readonly<Record<string, number>>;
    /** Requests that were repeats of one that had failed. */
    readonly retries: number;
    readonly slowestMs: number;
    /** The longest time without an acknowledgement. */
    readonly longestGapMs: number;
  };
  readonly subscriber: { readonly longestSilenceMs: number; readonly copies: number };
  readonly heal: {
    /** From the fault's end until a replica that it touched acknowledged a delivery. */
    readonly firstSuccessMs: number | undefined;
    /** From the fault's end until the outbox had no entry from before it. */
    readonly outboxMs: number | undefined;
  };
};

export const TOGETHER = 'several together';

/** One effect for each fault that struck alone, and one for all that struck together. */
export function effectsOf(recorded: Recorded): Effect[] {
  const copies = copyTimes(recorded.messages);
  const struck = new Map<string, Effect>();
  for (const episode of recorded.episodes) {
    const injections = recorded.injections.filter((injection) => injection.episode === episode.number);
    for (const injection of injections) {
      const fault = injections.length === 1 ? injection.fault : TOGETHER;
      const effect = { ...effectOf(recorded, episode, injection, copies), fault };
      const before = struck.get(fault);
      struck.set(fault, before === undefined ? effect : worst(before, effect));
    }
  }
  return [...struck.values()].toSorted((a, b) => (a.fault < b.fault ? -1 : 1));
}

function effectOf(
  recorded: Recorded,
  episode: Episode,
  injection: Injection,
  copies: readonly number[],
): Effect {
  const { startMs, endMs, healedMs } = injection;
  const untilMs = episode.recoveredMs ?? recorded.endMs;
  // Only requests that are events: a forgery is unauthorized with or without a fault.
  const during = recorded.attempts.filter(
    (each) => each.notice.eventId !== undefined && each.startMs <= healedMs && each.endMs >= startMs,
  );
  const acknowledged = recorded.attempts.filter(isAcknowledged);
  const firstMs = acknowledged
    .filter((each) => each.startMs >= endMs && touches(injection, each.replica))
    .reduce((earliest, each) => Math.min(earliest, each.endMs), Number.POSITIVE_INFINITY);
  return {
    fault: injection.fault,
    strikes: 1,
    lastedMs: endMs - startMs,
    sender: {
      saw: tally(during),
      retries: countRetries(recorded.attempts, during),
      slowestMs: largest(during.map((each) => each.endMs - each.startMs)),
      longestGapMs: longestGap(
        acknowledged.map((each) => each.endMs),
        startMs,
        untilMs,
      ),
    },
    subscriber: {
      longestSilenceMs: longestGap(
        recorded.messages.map(({ atMs }) => atMs),
        startMs,
        untilMs,
      ),
      copies: copies.filter((atMs) => atMs >= startMs && atMs <= untilMs).length,
    },
    heal: {
      firstSuccessMs: Number.isFinite(firstMs) ? firstMs - endMs : undefined,
      outboxMs: episode.drainMs === undefined ? undefined : episode.endMs - endMs + episode.drainMs,
    },
  };
}

function tally(attempts: readonly Attempt[]): Record<string, number> {
  const saw: Record<string, number> = {};
  for (const { status, error } of attempts) {
    const what = status === undefined ? String(error) : String(status);
    saw[what] = (saw[what] ?? 0) + 1;
  }
  return saw;
}

function countRetries(all: readonly Attempt[], during: readonly Attempt[]): number {
  const failedMs = new Map<string, number>();
  for (const each of all) {
    const before = failedMs.get(each.notice.id) ?? Number.POSITIVE_INFINITY;
    if (!isAcknowledged(each) && each.notice.eventId !== undefined)
      failedMs.set(each.notice.id, Math.min(before, each.endMs));
  }
  return during.filter((each) => (failedMs.get(each.notice.id) ?? Number.POSITIVE_INFINITY) <= each.startMs)
    .length;
}

function copyTimes(messages: readonly Message[]): number[] {
  const seen = new Set<string>();
  return freshCopies(messages)
    .filter(({ id }) => seen.has(id) || !seen.add(id))
    .map(({ atMs }) => atMs);
}

/** The longest interval between the two that has none of `timesMs` in it. */
function longestGap(timesMs: readonly number[], fromMs: number, toMs: number): number {
  const marks = [fromMs, ...timesMs.filter((ms) => ms > fromMs && ms < toMs).toSorted((a, b) => a - b), toMs];
  return largest(marks.slice(1).map((ms, index) => ms - (marks[index] as number)));
}

const max = (a: number | undefined, b: number | undefined) =>
  a === undefined || b === undefined ? undefined : Math.max(a, b);

function worst(a: Effect, b: Effect): Effect {
  const names = new Set([...Object.keys(a.sender.saw), ...Object.keys(b.sender.saw)]);
  const saw = [...names].map((name) => [name, (a.sender.saw[name] ?? 0) + (b.sender.saw[name] ?? 0)]);
  return {
    fault: a.fault,
    strikes: a.strikes + b.strikes,
    lastedMs: Math.max(a.lastedMs, b.lastedMs),
    sender: {
      saw: Object.fromEntries(saw) as Record<string, number>,
      retries: a.sender.retries + b.sender.retries,
      slowestMs: Math.max(a.sender.slowestMs, b.sender.slowestMs),
      longestGapMs: Math.max(a.sender.longestGapMs, b.sender.longestGapMs),
    },
    subscriber: {
      longestSilenceMs: Math.max(a.subscriber.longestSilenceMs, b.subscriber.longestSilenceMs),
      copies: a.subscriber.copies + b.subscriber.copies,
    },
    heal: {
      firstSuccessMs: max(a.heal.firstSuccessMs, b.heal.firstSuccessMs),
      outboxMs: max(a.heal.outboxMs, b.heal.outboxMs),
    },
  };
}

/** 0 if there is none. Not `Math.max(...values)`: a long run has more values than a call takes arguments. */
function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
