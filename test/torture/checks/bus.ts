// What a subscriber received, held against what was sent and acknowledged: nothing lost, nothing unexpected, every
// digit as it was signed, no copy that is not accounted for, the first copies of a job in the order of acceptance.

import type { Notice } from '../history.ts';
import type { Attempt, LedgerEvent, Message, Properties, Recorded } from '../recorded.ts';
import { canonical, canonicalText, parseExactly } from './exact.ts';
import { type Violation, violation } from './violation.ts';
import { type Span, woundsDuring } from './windows.ts';
import { isAcknowledged } from '../../support/sender.ts';

const AUTHENTIC: ReadonlySet<string> = new Set(['new', 'repeat', 'conflict']);
/** So padded, they sort as text as they do as numbers. */
const SEQUENCE_DIGITS = 19;
/** Attempts that a killed relay made just before, and that no record tells of. */
const KILLED: ReadonlySet<NodeJS.Signals | undefined> = new Set(['SIGKILL']);

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

/** Acknowledged, or in the ledger, and yet never received. */
export function lost({ attempts, messages, ledger }: Recorded): Violation[] {
  const received = new Set(messages.map(({ id }) => id));
  const acknowledged = attempts.filter((each) => isAuthentic(each) && isAcknowledged(each));
  const due = new Set([
    ...acknowledged.map(({ notice }) => notice.eventId as string),
    ...ledger.events.map(({ id }) => id),
  ]);
  return [...due].filter((id) => !received.has(id)).map((id) => violation('lost', id));
}

/** Received, though nobody signed such a thing, or the ledger does not have it. */
export function unexpected({ attempts, messages, ledger }: Recorded): Violation[] {
  const signed = new Set(attempts.filter(isAuthentic).map(({ notice }) => notice.eventId));
  const tallied = new Set(ledger.events.map(({ id }) => id));
  const received = new Set(messages.map(({ id }) => id));
  return [...received].flatMap((id) => {
    if (!signed.has(id)) return [violation('unexpected', `${id} was never signed`)];
    return tallied.has(id) ? [] : [violation('unexpected', `${id} is not in the ledger`)];
  });
}

/** Every field of every message, numbers by their text; and that answers said the truth about which body it is. */
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

/** What stands around the text of each copy. */
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
  if (some === undefined) return []; // unexpected, and said so there
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
  const lies = attempts.filter((attempt) => isAcknowledged(attempt) && isLie(attempt, data));
  return [
    ...wrong.map(([name]) => `${name} is ${JSON.stringify(event[name])}`),
    ...(isSigned ? [] : ['its data is none that was signed']),
    ...lies.map(({ requestId, outcome }) => `${requestId} was answered ${outcome}`),
  ];
}

/** What the ledger alone knows. An event that it does not have is unexpected, and said so there. */
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

/** `accepted` and `duplicate` say that the body is the one that counts, `conflict` that it is not. */
function isLie({ notice, outcome }: Attempt, data: string): boolean {
  const isTheOne = canonicalText(notice.data) === data;
  return outcome === 'conflict' ? isTheOne : !isTheOne;
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

/**
 * Copies of an id: at most the publications on record and one more for each replica that was killed in between, since
 * it took the record of its last ones with it. Exactly one where no fault was at work from the first request until
 * the confirmed publication was on record. What the broker handed out again is no copy.
 */
export function copies(recorded: Recorded): Violation[] {
  const { messages, ledger, exits } = recorded;
  const received = groupBy(freshCopies(messages), ({ id }) => id);
  const published = groupBy(ledger.publications, ({ eventId }) => eventId);
  const accepted = new Map(ledger.events.map((event) => [event.id, event.recordedMs]));
  const sentMs = firstSent(recorded.attempts);
  const kills = exits.filter(({ asked }) => KILLED.has(asked)).map(({ atMs }) => atMs);
  return [...received].flatMap(([id, { length }]) => {
    const records = published.get(id) ?? [];
    const confirmedMs = Math.min(
      ...records.filter(({ result }) => result === 'confirmed').map(({ atMs }) => atMs),
    );
    const fromMs = accepted.get(id) ?? Number.NEGATIVE_INFINITY;
    const unrecorded = kills.filter((atMs) => atMs >= fromMs && atMs <= confirmedMs).length;
    const span: Span = { fromMs: sentMs.get(id) ?? fromMs, toMs: confirmedMs };
    const isQuiet = length > 1 && woundsDuring(recorded, span).length === 0;
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

/** Without those that the broker handed out for a second time. */
export function freshCopies(messages: readonly Message[]): Message[] {
  const seen = new Set<string>();
  return messages.filter(({ id, redelivered }) => {
    const isFirst = !seen.has(id);
    seen.add(id);
    return isFirst || !redelivered;
  });
}

/**
 * First copies of a job come in the order of their sequence, and that is the order in which a sender that waits for
 * each answer had them acknowledged. Events that were `returned` are left out: later ones do not wait for them, and
 * they come when an operator sends them again.
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
  const told = attempts
    .filter(({ notice }) => notice.kind === 'new')
    .map(({ notice }) => notice.eventId as string);
  return [
    ...inTurn(
      messages.map(({ id }) => id).filter((id) => !returned.has(id)),
      'came after a later event of its job',
    ),
    ...inTurn(told, 'was told before another event of its job, and numbered after it'),
  ];
}

/** One id for each dedup key, in answers and in the ledger. */
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
