// Compares what a subscriber received with what was sent and acknowledged: nothing is lost or unexpected, every digit is as
// it was signed, each copy is accounted for, and the first copies of a job are in the order of acceptance.

import type { Notice } from '../notices.ts';
import type { Attempt, LedgerEvent, Message, Properties, Recorded } from '../recorded.ts';
import { canonical, canonicalText, parseExactly } from './exact.ts';
import { type Violation, violation } from './violation.ts';
import { type Span, injectionsDuring } from './windows.ts';
import { isAcknowledged } from '../../support/sender.ts';

const AUTHENTIC: ReadonlySet<string> = new Set(['new', 'repeat', 'conflict']);
/** Padded to this length, sequences sort as text in the order of their numbers. */
const SEQUENCE_DIGITS = 19;
export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

const isAuthentic = ({ notice }: Attempt) => AUTHENTIC.has(notice.kind) && notice.eventId !== undefined;

/** Events that were acknowledged or are in the ledger, and were neither received nor discarded by the operator. */
export function lost({ attempts, messages, ledger, parked }: Recorded): Violation[] {
  const received = new Set(messages.map(({ id }) => id));
  for (const { eventId, isDiscarded } of parked) if (isDiscarded) received.add(eventId);
  const acknowledged = attempts.filter((each) => isAuthentic(each) && isAcknowledged(each));
  const due = new Set([
    ...acknowledged.map(({ notice }) => notice.eventId as string),
    ...ledger.events.map(({ id }) => id),
  ]);
  return [...due].filter((id) => !received.has(id)).map((id) => violation('lost', id));
}

/** Messages of events that nobody signed, or that are not in the ledger. */
export function unexpected({ attempts, messages, ledger }: Recorded): Violation[] {
  const signed = new Set(attempts.filter(isAuthentic).map(({ notice }) => notice.eventId));
  const tallied = new Set(ledger.events.map(({ id }) => id));
  const received = new Set(messages.map(({ id }) => id));
  return [...received].flatMap((id) => {
    if (!signed.has(id)) return [violation('unexpected', `${id} was never signed`)];
    return tallied.has(id) ? [] : [violation('unexpected', `${id} is not in the ledger`)];
  });
}

/** Compares every field of every message, numbers by their text, and whether each answer named the right body. */
export function altered({ attempts, messages, ledger }: Recorded): Violation[] {
  const tallied = new Map(ledger.events.map((event) => [event.id, event]));
  const authentic = groupBy(attempts.filter(isAuthentic), ({ notice }) => notice.eventId as string);
  const first = new Map<string, Message>();
  return messages.flatMap((message) => {
    const before = first.get(message.id);
    const attempt = authentic.get(message.id)?.[0];
    const around = attempt === undefined ? [] : inProperties(message, attempt.notice);
    const said = (what: string) => violation('altered', `${message.id}: ${what}`);
    if (before !== undefined)
      return [...around, ...(before.text === message.text ? [] : ['copies differ'])].map(said);
    first.set(message.id, message);
    const within = inMessage(message, authentic.get(message.id) ?? [], tallied.get(message.id));
    return [...around, ...within].map(said);
  });
}

/** The faults of the properties and the routing key, which each copy has to have. */
function inProperties({ properties, routingKey }: Message, notice: Notice): string[] {
  const expected: [keyof Properties, unknown][] = [
    ['deliveryMode', 2],
    ['contentType', 'application/cloudevents+json'],
    ['type', `conversion.job.${kindOf(notice)}`],
    ['messageId', notice.eventId],
    ['appId', 'tallyhook'],
  ];
  return [
    ...expected
      .filter(([name, value]) => properties[name] !== value)
      .map(([name]) => `${name} ${String(properties[name])}`),
    ...(routingKeyOf(notice) === routingKey ? [] : [`routing key ${routingKey}`]),
  ];
}

function inMessage(
  message: Message,
  attempts: readonly Attempt[],
  tallied: LedgerEvent | undefined,
): string[] {
  const [some] = attempts;
  if (some === undefined) return []; // `unexpected` reports it
  let event: Record<string, never>;
  try {
    event = parseExactly(message.text) as Record<string, never>;
  } catch {
    return ['no JSON'];
  }
  const data = canonical(event['data']);
  const expected = [...envelope(some.notice), ...fromLedger(event, some.notice, tallied)];
  const wrong = expected.filter(([name, value]) => event[name] !== value);
  const isSigned = attempts.some(({ notice }) => canonicalText(notice.data) === data);
  const wrongAnswers = attempts.filter((attempt) => isAcknowledged(attempt) && isWrong(attempt, data));
  return [
    ...wrong.map(([name]) => `${name} is ${JSON.stringify(event[name])}`),
    ...(isSigned ? [] : ['its data is none that was signed']),
    ...wrongAnswers.map(({ requestId, outcome }) => `${requestId} was answered ${outcome}`),
  ];
}

/** The fields that come from the ledger. An event that is not in it is reported by `unexpected`. */
function fromLedger(
  { data }: Readonly<Record<string, unknown>>,
  notice: Notice,
  tallied: LedgerEvent | undefined,
): [string, unknown][] {
  if (tallied === undefined) return [];
  const { sequence, recordedAt, late } = tallied;
  const ended = (data as Readonly<Record<string, unknown>> | null)?.[`${kindOf(notice)}_at`];
  return [
    ['sequence', sequence.padStart(SEQUENCE_DIGITS, '0')],
    ['recordedtime', recordedAt],
    ['time', typeof ended === 'string' ? ended : recordedAt],
    ['late', late ? true : undefined],
  ];
}

/** `accepted` and `duplicate` mean that this body is the published one, `conflict` that it is not. */
function isWrong({ notice, outcome }: Attempt, data: string): boolean {
  const isPublished = canonicalText(notice.data) === data;
  return outcome === 'conflict' ? isPublished : !isPublished;
}

function kindOf({ eventId = '' }: Notice): string {
  if (eventId.endsWith(':completed')) return 'completed';
  return eventId.endsWith(':failed') ? 'failed' : 'progress';
}

const routingKeyOf = (notice: Notice) => `job.${kindOf(notice)}.${notice.source}`;

function envelope(notice: Notice): [string, unknown][] {
  const type = `conversion.job.${kindOf(notice)}`;
  return [
    ['specversion', '1.0'],
    ['id', notice.eventId],
    ['type', type],
    ['source', `/sources/${notice.source}`],
    ['subject', notice.jobId],
    ['datacontenttype', 'application/json'],
    ['dataschema', `urn:tallyhook:schema:${type}:1`],
  ];
}

/** Faults that keep a leader from its lease, and that it outlives. */
const DEPOSES = /^(replica-freeze|hand-off-freeze|loop-stall|postgres-|disk-full)/;

/**
 * An id has at most as many copies as publications on record, and one more for
 * - each replica that was killed before the confirmed one, since it could not record its last publications;
 * - each fault that made another replica lead without the leader's knowledge: what both have published is on record once; or that
 *   ended Postgres before the results of the last moments were on disk;
 * - each park: the event may have been in flight then, and is published again.
 * It has exactly one where no fault was at work from the first request to the confirmed publication. What the broker redelivers
 * is no copy.
 */
export function copies(recorded: Recorded): Violation[] {
  const { messages, ledger, exits } = recorded;
  const received = groupBy(freshCopies(messages), ({ id }) => id);
  const published = groupBy(ledger.publications, ({ eventId }) => eventId);
  const accepted = new Map(ledger.events.map((event) => [event.id, event.recordedMs]));
  const sentMs = firstSent(recorded.attempts);
  const kills = exits.filter(({ asked }) => asked === 'SIGKILL').map(({ atMs }) => atMs);
  const deposals = recorded.injections.filter(({ fault }) => DEPOSES.test(fault));
  return [...received].flatMap(([id, { length }]) => {
    const records = published.get(id) ?? [];
    const confirmedMs = Math.min(
      ...records.filter(({ result }) => result === 'confirmed').map(({ atMs }) => atMs),
    );
    const fromMs = accepted.get(id) ?? Number.NEGATIVE_INFINITY;
    const parks = recorded.parked.filter(({ eventId }) => eventId === id).length;
    const deposed = deposals.filter(({ startMs, healedMs }) => fromMs <= healedMs && confirmedMs >= startMs);
    const killed = kills.filter((atMs) => atMs >= fromMs && atMs <= confirmedMs);
    const unrecorded = parks + deposed.length + killed.length;
    const span: Span = { fromMs: sentMs.get(id) ?? fromMs, toMs: confirmedMs };
    const isQuiet = length > 1 && parks === 0 && injectionsDuring(recorded, span).length === 0;
    const allowed = isQuiet ? 1 : records.length + unrecorded;
    if (length <= allowed) return [];
    return [violation('too many copies', `${id}: ${length} copies, ${allowed} accounted for`)];
  });
}

function firstSent(attempts: readonly Attempt[]): Map<string, number> {
  const sent = new Map<string, number>();
  for (const { notice, startMs } of attempts) {
    if (notice.eventId !== undefined && !sent.has(notice.eventId)) sent.set(notice.eventId, startMs);
  }
  return sent;
}

/** Without the broker's redeliveries. */
export function freshCopies(messages: readonly Message[]): Message[] {
  const seen = new Set<string>();
  return messages.filter(({ id, redelivered }) => {
    const isFirst = !seen.has(id);
    seen.add(id);
    return isFirst || !redelivered;
  });
}

/**
 * First copies of a job arrive in the order of their sequence, which is the order in which a sender that waits for each
 * answer sent them. Events that were `returned` are left out: later ones do not wait for them, and they arrive when an
 * operator sends them again.
 */
export function order({ attempts, messages, ledger }: Recorded): Violation[] {
  const returned = new Set(
    ledger.publications.filter(({ result }) => result === 'returned').map(({ eventId }) => eventId),
  );
  const sequences = new Map(ledger.events.map(({ id, sequence }) => [id, BigInt(sequence)]));
  const job = new Map(attempts.map(({ notice }) => [notice.eventId, `${notice.source} ${notice.jobId}`]));
  const inTurn = (inOrder: Iterable<string>, what: string) => {
    const last = new Map<string | undefined, bigint>();
    return [...new Set(inOrder)].flatMap((id) => {
      const sequence = sequences.get(id);
      const before = last.get(job.get(id));
      if (sequence === undefined) return [];
      if (before !== undefined && before > sequence) return [violation('out of order', `${id} ${what}`)];
      last.set(job.get(id), sequence);
      return [];
    });
  };
  const sent = attempts
    .filter(({ notice }) => notice.kind === 'new' && notice.isBeside !== true)
    .map(({ notice }) => notice.eventId as string);
  return [
    ...inTurn(
      messages.map(({ id }) => id).filter((id) => !returned.has(id)),
      'came after a later event of its job',
    ),
    ...inTurn(sent, 'was told before another event of its job, and numbered after it'),
  ];
}

/** Each dedup key has one id, in answers and in the ledger. */
export function ids({ attempts, ledger }: Recorded): Violation[] {
  const rows = groupBy(ledger.events, ({ id }) => id);
  const accepted = groupBy(
    attempts.filter(({ outcome, status }) => outcome === 'accepted' && status !== undefined),
    ({ eventId }) => String(eventId),
  );
  return [
    ...attempts
      .filter((each) => isAuthentic(each) && isAcknowledged(each) && each.eventId !== each.notice.eventId)
      .map(({ notice, eventId }) => violation('ids', `${notice.eventId} was called ${eventId}`)),
    ...[...rows]
      .filter(([, { length }]) => length > 1)
      .map(([id]) => violation('ids', `${id} is twice in the ledger`)),
    ...[...accepted]
      .filter(([, { length }]) => length > 1)
      .map(([id, { length }]) => violation('ids', `${id} was accepted ${length} times`)),
  ];
}
