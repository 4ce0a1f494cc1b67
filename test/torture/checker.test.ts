import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { check } from './checker.ts';
import { canonicalText } from './checks/exact.ts';
import { FORGED_MARK, HEADER_SECRETS, type Notice } from './notices.ts';
import type {
  Attempt,
  Episode,
  LedgerDelivery,
  LedgerEvent,
  Message,
  Parked,
  Recorded,
  Injection,
} from './recorded.ts';
import { createSecretsSearch } from './secrets-search.ts';

// A small run in which every promise was kept. Each test breaks one of them in the record and expects the violation.

type Change<T> = Partial<T>;

const RECORDED_AT = '2026-01-15T10:30:00.123Z';

function notice(change: Change<Notice> = {}): Notice {
  const percent = change.eventId?.split(':').at(-1) ?? '10';
  const data = `{"job_id":"job_1","status":"processing","progress_percentage":${percent},"x_number":123456789012345678.50}`;
  return {
    id: 'job_1#1',
    kind: 'new',
    source: 'default',
    jobId: 'job_1',
    eventId: 'default:job_1:processing:10',
    body: data,
    data,
    ...change,
  };
}

function attempt(change: Change<Attempt> = {}): Attempt {
  const of = change.notice ?? notice();
  return {
    requestId: 'r1',
    notice: of,
    replica: 0,
    secret: 'planted-default',
    startMs: 100,
    endMs: 110,
    status: 202,
    error: undefined,
    outcome: 'accepted',
    eventId: of.eventId,
    retryAfter: undefined,
    lateAnswerMs: undefined,
    ...change,
  };
}

function message(of: Notice, change: Change<Message> & { sequence?: number } = {}): Message {
  const { sequence = 1, ...rest } = change;
  const type = 'conversion.job.progress';
  const event = {
    specversion: '1.0',
    id: of.eventId,
    type,
    source: '/sources/default',
    subject: of.jobId,
    time: RECORDED_AT,
    recordedtime: RECORDED_AT,
    sequence: String(sequence).padStart(19, '0'),
    datacontenttype: 'application/json',
    dataschema: 'urn:tallyhook:schema:conversion.job.progress:1',
  };
  return {
    atMs: 120 + sequence,
    id: String(of.eventId),
    routingKey: 'job.progress.default',
    redelivered: false,
    properties: {
      deliveryMode: 2,
      contentType: 'application/cloudevents+json',
      type,
      messageId: of.eventId,
      appId: 'tallyhook',
    },
    text: `${JSON.stringify(event).slice(0, -1)},"data":${of.data}}`,
    ...rest,
  };
}

const tallied = (of: Notice, change: Change<LedgerEvent>): LedgerEvent => ({
  id: String(of.eventId),
  sequence: '1',
  late: false,
  recordedAt: RECORDED_AT,
  recordedMs: 105,
  ...change,
});

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** The row of a request whose body was authentic. */
function row(requestId: string, outcome: string, status: number, of: Notice): LedgerDelivery {
  const hasBody = outcome === 'accepted';
  const [bodySha256, bodyBytes] = [sha256(of.body), Buffer.byteLength(of.body)];
  return {
    requestId,
    outcome,
    status,
    jobId: of.jobId,
    secretFingerprint: sha256('tallyhook secret fingerprint\0planted-default').slice(0, 12),
    bodySha256,
    bodyBytes,
    hasBody,
    keptSha256: hasBody ? bodySha256 : null,
    keptBytes: hasBody ? bodyBytes : null,
  };
}

const first = notice();
const second = notice({ id: 'job_1#2', eventId: 'default:job_1:processing:20' });
const forged = notice({ id: 'job_1#3', kind: 'forged', eventId: undefined, forgery: 'altered' });
const attempts = [
  attempt(),
  attempt({ requestId: 'r2', notice: second, startMs: 200, endMs: 210 }),
  attempt({
    requestId: 'r3',
    notice: forged,
    secret: undefined,
    status: 401,
    outcome: undefined,
    eventId: undefined,
    startMs: 300,
    endMs: 301,
  }),
];
const messages = [message(first), message(second, { sequence: 2 })];

const kept: Recorded = {
  seed: 1,
  startMs: 0,
  endMs: 100_000,
  attempts,
  messages,
  ledger: {
    events: [
      tallied(first, { sequence: '1', recordedMs: 105 }),
      tallied(second, { sequence: '2', recordedMs: 205 }),
    ],
    publications: [
      { eventId: String(first.eventId), result: 'confirmed', atMs: 130 },
      { eventId: String(second.eventId), result: 'confirmed', atMs: 230 },
    ],
    deliveries: [row('r1', 'accepted', 202, first), row('r2', 'accepted', 202, second)],
    countedRefusals: 1,
    outboxLeft: 0,
  },
  parked: [],
  injections: [],
  episodes: [],
  exits: [{ replica: 0, atMs: 99_000, asked: 'SIGTERM', code: 0, signal: null }],
  secrets: [{ secret: 'planted-default', fromMs: 0, untilMs: Number.POSITIVE_INFINITY }],
  leaks: [],
  alarms: [],
  undelivered: [],
  finalDrainMs: 10,
};

const ledger = (change: Change<Recorded['ledger']>) => ({ ledger: { ...kept.ledger, ...change } });
const kinds = (change: Change<Recorded>) =>
  new Set(check({ ...kept, ...change }).violations.map(({ kind }) => kind));
const whats = (change: Change<Recorded>) =>
  check({ ...kept, ...change }).violations.map(({ kind, what }) => `${kind}: ${what}`);
const replaced = <T>(items: readonly T[], at: number, item: T) => items.with(at, item);
const changed = (at: number, change: Change<Attempt>) => ({
  attempts: replaced(attempts, at, { ...(attempts[at] as Attempt), ...change }),
});

/** A fault that struck alone while the first event was on its way. */
function during(
  fault: string,
  change: Change<Injection> = {},
): { injections: Injection[]; episodes: Episode[] } {
  const [startMs, endMs] = [50, 150];
  return {
    injections: [
      {
        fault,
        episode: 1,
        replicas: [],
        silences: false,
        unbinds: false,
        startMs,
        endMs,
        healedMs: endMs,
        ...change,
      },
    ],
    episodes: [{ number: 1, startMs, endMs, recoveredMs: 160, drainMs: 10 }],
  };
}

test('a run that kept every promise has no violations, and is counted', () => {
  expect(check(kept)).toEqual({
    violations: [],
    counts: {
      requests: 3,
      acknowledged: 2,
      events: 2,
      messages: 2,
      lost: 0,
      unexpected: 0,
      duplicated: 0,
      recovered: 0,
      parked: 0,
      discarded: 0,
    },
  });
});

/** The second event, which came at 122, was parked when so much time had passed. */
const parkedAt = (parkedMs: number, change: Change<Parked> = {}): Change<Recorded> => ({
  parked: [
    { eventId: String(second.eventId), parkedMs, settledMs: undefined, isDiscarded: false, ...change },
  ],
});

test('a parked event that comes more than a second later is revived, unless it was to be published again', () => {
  expect(whats(parkedAt(-2_000))).toEqual([
    'revived: default:job_1:processing:20 came 2122 ms after it was parked',
  ]);
  expect(whats(parkedAt(-1_000))).toEqual([]);
  expect(whats(parkedAt(-2_000, { settledMs: 121 }))).toEqual([]);
  expect(whats(parkedAt(-2_000, { settledMs: 123 }))).toHaveLength(1);
});

/** The second event is parked while the fault is at work, and arrives then. */
const parkedDuring = (fault: string, atMs: number) =>
  kinds({
    ...during(fault),
    ...parkedAt(100),
    messages: [...messages, { ...(messages[1] as Message), atMs }],
  });

test('a park has its effect once a fault is over that kept what was in flight on its way', () => {
  expect(parkedDuring('rabbitmq-freeze', 3_600)).not.toContain('revived');
  expect(parkedDuring('rabbitmq-freeze', 3_700)).toContain('revived');
  expect(parkedDuring('sender-link-cut', 3_600)).toContain('revived');
});

/** The second event is parked while RabbitMQ is frozen and comes at 2,000, the first one of its job then. */
const cameBehind = (firstMs: number) =>
  kinds({
    ...during('rabbitmq-freeze'),
    ...parkedAt(100),
    messages: [
      { ...(messages[0] as Message), atMs: firstMs },
      { ...(messages[1] as Message), atMs: 2_000 },
    ],
  });

test('an event was not in flight when it was parked if the one before it of its job came later', () => {
  expect(cameBehind(1_500)).not.toContain('revived');
  expect(cameBehind(1_700)).toContain('revived');
});

test('what two leaders have published is on record once, if the first could not know of the second', () => {
  const copy = { ...(messages[0] as Message), atMs: 400 };
  const twice = (fault: string) => kinds({ ...during(fault), messages: [...messages, copy] });
  expect(twice('hand-off-freeze')).toEqual(new Set());
  expect(twice('rabbitmq-freeze')).toEqual(new Set(['too many copies']));
  expect(kinds({ ...during('hand-off-freeze'), messages: [...messages, copy, copy] })).toEqual(
    new Set(['too many copies']),
  );
});

test('a discarded event is not lost, and one that comes all the same is revived', () => {
  const only = { messages: messages.slice(0, 1) };
  expect(whats({ ...only, ...parkedAt(100, { isDiscarded: true }) })).toEqual([]);
  expect(whats({ ...only, ...parkedAt(100) })).toEqual(['lost: default:job_1:processing:20']);
  expect(whats(parkedAt(-2_000, { isDiscarded: true }))).toEqual([
    'revived: default:job_1:processing:20 came 2122 ms after it was parked, and was discarded',
  ]);
});

test('a parked event may have a second copy, since it may have been in flight, and no third', () => {
  const copy = { ...(messages[1] as Message), atMs: 400 };
  const parked = parkedAt(100, { settledMs: 300 });
  expect(kinds({ messages: [...messages, copy], ...parked })).toEqual(new Set());
  expect(kinds({ messages: [...messages, copy, copy], ...parked })).toEqual(new Set(['too many copies']));
});

test('events that were sent at the same moment may be numbered in either order', () => {
  const events = kept.ledger.events.map((event, at) => ({ ...event, sequence: String(2 - at) }));
  const inSequence = [message(second), message(first, { sequence: 2 })];
  const beside = attempts.map((each) =>
    each.notice.kind === 'new' ? { ...each, notice: { ...each.notice, isBeside: true } } : each,
  );
  expect(kinds({ attempts: beside, messages: inSequence, ...ledger({ events }) })).toEqual(new Set());
});

test('an acknowledged event that never came is lost', () => {
  expect(whats({ messages: messages.slice(0, 1) })).toEqual(['lost: default:job_1:processing:20']);
});

test('an event of the ledger that never came is lost, though nobody was told of it', () => {
  const unanswered = changed(1, { status: undefined, error: 'ECONNRESET', outcome: undefined });
  const trouble = during('replica-kill');
  const span = { episodes: trouble.episodes.map((each) => ({ ...each, recoveredMs: 1_000 })) };
  expect([...kinds({ ...unanswered, ...trouble, ...span, messages: messages.slice(0, 1) })]).toEqual([
    'lost',
  ]);
});

test('a message that nobody signed is unexpected, and so is one that the ledger does not have', () => {
  const stranger = notice({ eventId: 'default:job_9:processing:10', jobId: 'job_9' });
  expect(whats({ messages: [...messages, message(stranger, { sequence: 3 })] })).toContain(
    'unexpected: default:job_9:processing:10 was never signed',
  );
  expect(whats(ledger({ events: kept.ledger.events.slice(0, 1) }))).toContain(
    'unexpected: default:job_1:processing:20 is not in the ledger',
  );
});

test('a forgery that reached the bus is caught by what it says', () => {
  const text = (messages[0] as Message).text.replace('"x_number"', `"x_mark":"${FORGED_MARK}","x_number"`);
  expect(kinds({ messages: replaced(messages, 0, { ...(messages[0] as Message), text }) })).toContain(
    'altered',
  );
});

test.for([
  ['a digit far behind the point of what a double holds', '123456789012345678.50', '123456789012345678.51'],
  ['a number that went through a double', '123456789012345678.50', '123456789012345680'],
  ['a number that became text', '123456789012345678.50', '"123456789012345678.50"'],
  ['another subject', '"subject":"job_1"', '"subject":"job_2"'],
  ['another type', 'job.progress"', 'job.completed"'],
  ['a field that is gone', ',"x_number":123456789012345678.50', ''],
] as const)('%s is altered', ([, from, to]) => {
  const [one] = messages as [Message];
  const text = one.text.replace(from, to);
  expect(text).not.toBe(one.text);
  expect(kinds({ messages: replaced(messages, 0, { ...one, text }) })).toEqual(new Set(['altered']));
});

test.for([
  ['another sequence than the ledger’s', '0000000000000000001', '0000000000000000002'],
  ['a sequence without its zeros', '"0000000000000000001"', '"1"'],
  ['another recordedtime', `"recordedtime":"${RECORDED_AT}"`, '"recordedtime":"2026-01-15T10:30:00.124Z"'],
  ['another time', `"time":"${RECORDED_AT}"`, '"time":"2026-01-15T10:30:01.123Z"'],
  ['late that was not', '"datacontenttype"', '"late":true,"datacontenttype"'],
] as const)('%s is altered, since the ledger says otherwise', ([, from, to]) => {
  const [one] = messages as [Message];
  const text = one.text.replace(from, to);
  expect(text).not.toBe(one.text);
  expect(kinds({ messages: replaced(messages, 0, { ...one, text }) })).toEqual(new Set(['altered']));
});

test('an event that was late and does not say so is altered', () => {
  const events = kept.ledger.events.map((event) => ({ ...event, late: true }));
  expect(kinds(ledger({ events }))).toEqual(new Set(['altered']));
});

test('the time of an event that ended is when its data says so', () => {
  const ended = { jobId: 'job_2', eventId: 'default:job_2:completed' };
  const data = '{"job_id":"job_2","status":"completed","completed_at":"2026-01-01T00:00:00Z"}';
  const done = notice({ id: 'job_2#1', ...ended, body: data, data });
  const [one] = messages as [Message];
  const event = message(done, { sequence: 3 });
  const said = (time: string): Change<Recorded> => ({
    attempts: [...attempts, attempt({ requestId: 'r4', notice: done })],
    messages: [
      ...messages,
      {
        ...event,
        routingKey: 'job.completed.default',
        properties: { ...one.properties, type: 'conversion.job.completed', messageId: done.eventId },
        text: event.text
          .replaceAll('conversion.job.progress', 'conversion.job.completed')
          .replace(`"time":"${RECORDED_AT}"`, `"time":"${time}"`),
      },
    ],
    ...ledger({
      events: [...kept.ledger.events, tallied(done, { sequence: '3' })],
      publications: [
        ...kept.ledger.publications,
        { eventId: String(done.eventId), result: 'confirmed', atMs: 330 },
      ],
      deliveries: [...kept.ledger.deliveries, row('r4', 'accepted', 202, done)],
    }),
  });
  expect(whats(said('2026-01-01T00:00:00Z'))).toEqual([]);
  expect(kinds(said(RECORDED_AT))).toEqual(new Set(['altered']));
});

test.for([
  ['deliveryMode', 1],
  ['contentType', 'application/json'],
  ['type', undefined],
  ['messageId', 'default:job_1:completed'],
  ['appId', undefined],
] as const)('another AMQP property %s is caught, on a copy as well', ([name, value]) => {
  const [one] = messages as [Message];
  const other = { ...one, properties: { ...one.properties, [name]: value } };
  expect(kinds({ messages: replaced(messages, 0, other) })).toEqual(new Set(['altered']));
  expect(kinds({ messages: [...messages, { ...other, redelivered: true }] })).toEqual(new Set(['altered']));
});

test('numbers are compared by their exact value, whatever their form', () => {
  expect(canonicalText('{"b":15e-1,"a":[0.0,-1.50]}')).toBe(canonicalText('{"a":[0,-1.5],"b":1.5}'));
  expect(canonicalText('1e400')).not.toBe(canonicalText('1e401'));
  expect(canonicalText('9007199254740993')).not.toBe(canonicalText('9007199254740992'));
});

test('a routing key that is not the event’s is caught', () => {
  const [one] = messages as [Message];
  expect(kinds({ messages: replaced(messages, 0, { ...one, routingKey: 'job.completed.default' }) })).toEqual(
    new Set(['altered']),
  );
});

test('an answer that says "accepted" of a body that is not the one on the bus is a lie', () => {
  const other = { ...first, data: first.data.replace('123', '124') };
  const lie = attempt({ requestId: 'r4', notice: other, outcome: 'duplicate', status: 200 });
  const deliveries = [...kept.ledger.deliveries, row('r4', 'duplicate', 200, other)];
  expect(whats({ attempts: [...attempts, lie], ...ledger({ deliveries }) })).toEqual([
    'altered: default:job_1:processing:10: r4 was answered duplicate',
  ]);
});

test('without a fault a second copy is one too many, also if a publication accounts for it', () => {
  const copy = { ...(messages[0] as Message), atMs: 400 };
  const publications = [
    ...kept.ledger.publications,
    { ...kept.ledger.publications[0], result: 'failed' } as never,
  ];
  expect(kinds({ messages: [...messages, copy], ...ledger({ publications }) })).toEqual(
    new Set(['too many copies']),
  );
});

test('with a fault as many copies may come as publications are on record, and not one more', () => {
  const copy = { ...(messages[0] as Message), atMs: 400 };
  const publications = [
    ...kept.ledger.publications,
    { ...kept.ledger.publications[0], result: 'failed' } as never,
  ];
  const fault = during('rabbitmq-link-cut');
  expect(kinds({ ...fault, messages: [...messages, copy], ...ledger({ publications }) })).toEqual(new Set());
  expect(kinds({ ...fault, messages: [...messages, copy, copy], ...ledger({ publications }) })).toEqual(
    new Set(['too many copies']),
  );
});

test('a replica that was killed accounts for one copy more, and only while the event was on its way', () => {
  const copy = { ...(messages[0] as Message), atMs: 400 };
  const killed = (atMs: number) => ({
    ...during('replica-kill'),
    messages: [...messages, copy],
    exits: [{ replica: 0, atMs, asked: 'SIGKILL', code: null, signal: 'SIGKILL' } as const],
  });
  expect(kinds(killed(120))).toEqual(new Set());
  expect(kinds(killed(140))).toEqual(new Set(['too many copies']));
});

test('what the broker hands out again is no copy', () => {
  const again = { ...(messages[0] as Message), atMs: 400, redelivered: true };
  expect(check({ ...kept, messages: [...messages, again] })).toMatchObject({
    violations: [],
    counts: { duplicated: 0 },
  });
});

test('first copies that come in another order than they were accepted are caught', () => {
  expect(kinds({ messages: messages.toReversed() })).toEqual(new Set(['out of order']));
});

test('events that are numbered in another order than their sender told them are caught', () => {
  const events = kept.ledger.events.map((event, at) => ({ ...event, sequence: String(2 - at) }));
  const inSequence = [message(second), message(first, { sequence: 2 })];
  expect(kinds({ messages: inSequence, ...ledger({ events }) })).toEqual(new Set(['out of order']));
});

test('an event that was returned may come later, and one that was not may not', () => {
  const publications = [
    { eventId: String(first.eventId), result: 'returned', atMs: 130 },
    ...kept.ledger.publications,
  ];
  const unbound = during('queue-unbound', { unbinds: true });
  expect(kinds({ ...unbound, messages: messages.toReversed(), ...ledger({ publications }) })).toEqual(
    new Set(),
  );
  expect(whats(ledger({ publications }))).toEqual([
    'wrong answer: default:job_1:processing:10 was returned though a queue was bound',
  ]);
});

test('an event under another id, accepted twice, or twice in the ledger is caught', () => {
  expect(kinds(changed(0, { eventId: 'default:job_1:completed' }))).toEqual(new Set(['ids']));
  const [one] = kept.ledger.events as [(typeof kept.ledger.events)[number]];
  expect(kinds(ledger({ events: [...kept.ledger.events, one] }))).toContain('ids');
  const again = attempt({ requestId: 'r4' });
  const deliveries = [...kept.ledger.deliveries, { ...kept.ledger.deliveries[0], requestId: 'r4' } as never];
  expect(kinds({ attempts: [...attempts, again], ...ledger({ deliveries }) })).toEqual(new Set(['ids']));
});

test('a complete request without its audit row, with two, or with another outcome is caught', () => {
  const [one, two] = kept.ledger.deliveries as [never, never];
  expect(whats(ledger({ deliveries: [one] }))).toEqual(['audit: r2 (202 accepted) has no row']);
  expect(kinds(ledger({ deliveries: [one, two, two] }))).toEqual(new Set(['audit']));
  const other = { ...kept.ledger.deliveries[1], outcome: 'conflict', status: 200 } as never;
  expect(kinds(ledger({ deliveries: [one, other] }))).toEqual(new Set(['audit']));
});

test.for([
  ['job_id', { jobId: 'job_2' }],
  ['secret_fingerprint', { secretFingerprint: '0123456789ab' }],
  ['body_sha256', { bodySha256: '00' }],
  ['body_bytes', { bodyBytes: 1 }],
  ['body', { keptSha256: '00' }],
  ['body', { keptBytes: 1 }],
] as const)('a row whose %s is not that of what was sent is caught', ([name, change]) => {
  const [one, two] = kept.ledger.deliveries as [LedgerDelivery, LedgerDelivery];
  expect(whats(ledger({ deliveries: [{ ...one, ...change }, two] }))).toEqual([
    `audit: r1 (accepted): ${name} is not that of what was sent`,
  ]);
});

test('a request that was answered 503 may have one row, and not two', () => {
  const unavailable = changed(0, { status: 503, outcome: undefined, eventId: undefined, retryAfter: '2' });
  const [one, two] = kept.ledger.deliveries as [LedgerDelivery, LedgerDelivery];
  const fault = during('postgres-kill');
  expect(kinds({ ...unavailable, ...fault })).toEqual(new Set());
  expect(whats({ ...unavailable, ...fault, ...ledger({ deliveries: [one, one, two] }) })).toEqual([
    'audit: r1 has 2 rows',
  ]);
});

test('a 503 without Retry-After is caught', () => {
  const unavailable = changed(0, { status: 503, outcome: undefined, eventId: undefined });
  expect(whats({ ...unavailable, ...during('postgres-kill') })).toEqual([
    'wrong answer: r1 got 503 with Retry-After undefined',
  ]);
});

test('requests that a stopping replica left without an answer are caught, but for one in the queue as it closes', () => {
  const stop = { replicas: [0], cutOff: 2 };
  expect(whats(during('replica-stop-under-connections', stop))).toEqual([
    'wrong answer: replica-stop-under-connections: 2 requests got no answer from replica 0',
  ]);
  expect(kinds(during('replica-stop-under-connections', { ...stop, cutOff: 1 }))).toEqual(new Set());
});

test('a fault on one replica excuses no answer of another', () => {
  const unavailable = changed(0, { status: 503, outcome: undefined, eventId: undefined, retryAfter: '2' });
  const reset = changed(0, {
    status: undefined,
    error: 'ECONNRESET',
    outcome: undefined,
    eventId: undefined,
  });
  for (const failed of [unavailable, reset]) {
    expect(kinds({ ...failed, ...during('postgres-link-cut', { replicas: [1] }) })).toContain('wrong answer');
    expect(kinds({ ...failed, ...during('postgres-link-cut', { replicas: [0] }) })).toEqual(new Set());
  }
});

test('a row that nobody sent, or that keeps the body of a forgery, is caught', () => {
  const stray = row('r9', 'accepted', 202, first);
  expect(kinds(ledger({ deliveries: [...kept.ledger.deliveries, stray] }))).toEqual(new Set(['audit']));
  const refused = { ...row('r3', 'unauthorized', 401, forged), jobId: null, secretFingerprint: null };
  const kept401 = { ...refused, hasBody: true, keptSha256: refused.bodySha256, keptBytes: 1 };
  expect(kinds(ledger({ deliveries: [...kept.ledger.deliveries, kept401] }))).toEqual(new Set(['audit']));
});

test('a refused request with neither a row nor a count is caught, unless its replica was killed just then', () => {
  expect(kinds(ledger({ countedRefusals: 0 }))).toEqual(new Set(['audit']));
  const killed = {
    ...during('replica-kill'),
    exits: [{ replica: 0, atMs: 400, asked: 'SIGKILL', code: null, signal: 'SIGKILL' } as const],
  };
  expect(kinds({ ...killed, ...ledger({ countedRefusals: 0 }) })).toEqual(new Set());
});

test('an answer after 10 s is late, and so is none, unless the replica was cut off from its sender', () => {
  const late = changed(0, { endMs: 10_101 });
  const never = changed(0, { endMs: 10_100, status: undefined, error: 'time-out', outcome: undefined });
  const afterAll = changed(0, { ...never.attempts[0], lateAnswerMs: 12_000 });
  expect(kinds(late)).toContain('late answer');
  expect(kinds(never)).toContain('late answer');
  expect(kinds(afterAll)).toContain('late answer');
  expect(kinds({ ...never, ...during('postgres-freeze') })).toContain('late answer');
  expect(kinds({ ...never, ...during('replica-freeze', { silences: true, replicas: [1] }) })).toContain(
    'late answer',
  );
  expect(kinds({ ...never, ...during('replica-freeze', { silences: true, replicas: [0] }) })).toEqual(
    new Set(),
  );
});

test('an acknowledged forgery is caught, whatever else went on', () => {
  const forgery = changed(2, { status: 202, outcome: 'accepted', eventId: 'default:job_1:processing:10' });
  expect(kinds({ ...forgery, ...during('postgres-kill') })).toContain('wrong answer');
});

test('an authentic notification that is refused is caught, unless its secret was being rotated', () => {
  const refused = changed(0, { status: 401, outcome: undefined, eventId: undefined });
  expect(kinds({ ...refused, ...during('postgres-kill') })).toContain('wrong answer');
  const secrets = [{ secret: 'planted-default', fromMs: 0, untilMs: 105 }];
  expect(kinds({ ...refused, secrets })).not.toContain('wrong answer');
});

test('guarantee 7: a 503 while the broker alone is in trouble is caught, and one without any fault', () => {
  const unavailable = changed(0, { status: 503, outcome: undefined, eventId: undefined, retryAfter: '2' });
  expect(kinds(unavailable)).toContain('wrong answer');
  expect(kinds({ ...unavailable, ...during('rabbitmq-kill') })).toContain('wrong answer');
  expect(kinds({ ...unavailable, ...during('clock-jump') })).toContain('wrong answer');
  expect(kinds({ ...unavailable, ...during('postgres-kill') })).toEqual(new Set());
});

test('an exit that nobody asked for is caught, and one that did not end in order', () => {
  const exit = { replica: 1, atMs: 500, code: 70, signal: null };
  expect(whats({ exits: [{ ...exit, asked: undefined }] })).toEqual([
    'exit: replica 1 ended with 70, and nobody asked it to',
  ]);
  expect(whats({ exits: [{ ...exit, asked: 'SIGTERM' }] })).toEqual([
    'exit: replica 1 ended with 70 after SIGTERM',
  ]);
  expect(kinds({ alarms: ['{"level":"fatal"}'] })).toEqual(new Set(['exit']));
});

test('a planted secret is caught wherever it stands, and never repeated', () => {
  const search = createSecretsSearch({
    postgres: { url: 'postgres://u:the-password@h/d' },
    rabbitmq: { url: 'amqp://u:other-password@h' },
    sources: { inForce: kept.secrets },
  } as never);
  search.scan('an answer', '{"outcome":"accepted"}');
  search.scan('the log', 'connect postgres://u:the-password@h/d');
  search.scan('the bus', 'planted-default');
  expect(search.found()).toEqual(['the log', 'the bus']);
  for (const before of ['', '1', '12']) {
    const text = Buffer.from(`${before}the-password?`);
    search.scan(`base64 ${before}`, text.toString('base64'));
    search.scan(`base64url ${before}`, text.toString('base64url'));
    search.scan(`hex ${before}`, text.toString('hex'));
  }
  search.scan('URL', encodeURIComponent(HEADER_SECRETS.cookie));
  expect(search.found().slice(2)).toEqual([
    ...['', '1', '12'].flatMap((before) => ['base64', 'base64url', 'hex'].map((form) => `${form} ${before}`)),
    'URL',
  ]);
  expect(whats({ leaks: ['the log', 'the bus'] })).toEqual([
    'leak: something planted stands in the log',
    'leak: something planted stands in the bus',
  ]);
});

test('what is not well again in time, left in the outbox, or never delivered is caught', () => {
  const { injections, episodes } = during('postgres-kill');
  const ill = episodes.map((each) => ({ ...each, recoveredMs: undefined }));
  expect(whats({ injections, episodes: ill })).toEqual([
    'not drained: not well 60000 ms after postgres-kill',
  ]);
  expect(kinds({ finalDrainMs: undefined })).toEqual(new Set(['not drained']));
  expect(kinds(ledger({ outboxLeft: 1 }))).toEqual(new Set(['not drained']));
  expect(kinds({ undelivered: ['job_1#2'] })).toEqual(new Set(['not drained']));
});

test('what met trouble on its way and came all the same is recovered; copies beyond the first are duplicated', () => {
  const failedFirst = attempt({
    requestId: 'r0',
    status: 503,
    retryAfter: '2',
    outcome: undefined,
    eventId: undefined,
    startMs: 60,
    endMs: 70,
  });
  const copy = { ...(messages[0] as Message), atMs: 400 };
  const publications = [
    ...kept.ledger.publications,
    { ...kept.ledger.publications[0], result: 'failed' } as never,
  ];
  const { violations, counts } = check({
    ...kept,
    ...during('postgres-kill'),
    ...ledger({ publications }),
    attempts: [failedFirst, ...attempts],
    messages: [...messages, copy],
  });
  expect(violations).toEqual([]);
  expect(counts).toMatchObject({ recovered: 1, duplicated: 1, lost: 0, unexpected: 0 });
});
