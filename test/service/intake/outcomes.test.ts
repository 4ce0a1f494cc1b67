// The design's table "What becomes of a delivery", row by row: the answer, the audit row, the event, the job, the
// outbox and the bus.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { createHash, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type DeliveryRow, deliveries, events, jobs, outbox } from '../../support/ledger.ts';
import { secretOf } from '../../support/records.ts';
import {
  completed,
  deliver,
  failed,
  newJobId,
  progress,
  type Reply,
  SECRET,
  sign,
} from '../../support/sender.ts';
import { testWithWatched as it } from '../../support/fixtures.ts';
import { SENTINEL, startWatchedService, type WatchedService } from '../../support/watched.ts';

const sha256 = (body: string) => createHash('sha256').update(body).digest();
const fingerprint = secretOf(SECRET).fingerprint;

/** All that subscribers were told so far, and the jobs of all that is there to be told. */
async function told({
  database,
  published,
}: WatchedService): Promise<{ published: string[]; jobs: string[] }> {
  const ids = await published();
  const rows = [...(await events(database)), ...(await jobs(database)), ...(await outbox(database))];
  const jobIds = rows.map(({ job_id }) => job_id).filter((id) => !id.startsWith(SENTINEL));
  return { published: ids, jobs: jobIds.toSorted() };
}

const messagesOf = ({ bus }: WatchedService, jobId: string) =>
  bus.messages.filter(({ event }) => event.subject === jobId);

/** Sends one delivery that can be told apart, and waits for its audit row: refusals are traced after their answer. */
async function deliverTraced(
  { relay, database }: WatchedService,
  path: string,
  content: string | Buffer,
  options: { headers?: Record<string, string | undefined>; method?: string } = {},
): Promise<{ reply: Reply; delivery: DeliveryRow | undefined }> {
  const requestId = randomUUID();
  const reply = await deliver(`${relay.intake}${path}`, content, {
    ...options,
    headers: { ...options.headers, 'x-request-id': requestId },
  });
  const ownRows = async () =>
    (await deliveries(database)).filter(({ headers }) => headers.includes(requestId));
  await expect.poll(ownRows).toHaveLength(1);
  return { reply, delivery: (await ownRows())[0] };
}

describe('new and understood: 202 accepted', () => {
  test('a completed job has an audit row with its body, an event, a job and an outbox entry, and is published', async () => {
    await using watched = await startWatchedService({ holdsOutbox: true });
    const { relay, database, bus } = watched;
    const jobId = newJobId();
    const body = JSON.stringify(completed(jobId, { completed_at: '2026-01-15T12:35:00.123456789+02:00' }));

    const reply = await deliver(relay.webhooks, body, { headers: { 'user-agent': 'conversion/1' } });

    expect(reply).toMatchObject({
      status: 202,
      body: { outcome: 'accepted', event_id: `default:${jobId}:completed` },
    });
    expect(Object.keys(reply.body)).toEqual(['outcome', 'event_id']);
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');

    const [event, ...moreEvents] = await events(database);
    expect(moreEvents).toEqual([]);
    const [delivery, ...moreDeliveries] = await deliveries(database);
    expect(moreDeliveries).toEqual([]);
    expect(delivery).toMatchObject({
      source: 'default',
      outcome: 'accepted',
      http_status: 202,
      reason: null,
      job_id: jobId,
      status: 'completed',
      progress_percentage: null,
      event_sequence: event?.sequence,
      path: '/webhooks',
      remote_address: '127.0.0.1',
      secret_fingerprint: fingerprint,
      body_bytes: body.length,
    });
    expect(delivery?.body?.toString()).toBe(body);
    expect(delivery?.body_sha256?.equals(sha256(body))).toBe(true);
    expect(JSON.parse(delivery?.headers ?? '')).toEqual({
      'content-type': 'application/json',
      'content-length': String(body.length),
      'user-agent': 'conversion/1',
    });
    expect(event).toMatchObject({
      source: 'default',
      job_id: jobId,
      status: 'completed',
      progress_percentage: null,
      late: false,
      occurred_at: new Date('2026-01-15T10:35:00.123Z'),
      delivery_id: delivery?.id,
      repeats: 0,
    });
    expect(event?.recorded_at).toEqual(delivery?.received_at);
    expect(await jobs(database)).toEqual([
      {
        source: 'default',
        job_id: jobId,
        first_seen_at: event?.recorded_at,
        last_seen_at: event?.recorded_at,
        highest_progress: null,
        completed_at: event?.recorded_at,
        failed_at: null,
        terminal_at: event?.recorded_at,
        last_status: 'completed',
        last_writer: expect.stringMatching(/^-?\d+$/),
        writer_changed: false,
        is_held: false,
        hold_version: 0,
      },
    ]);
    const data = JSON.stringify(completed(jobId, { completed_at: '2026-01-15T10:35:00.123456789Z' }));
    expect(await outbox(database)).toMatchObject([
      {
        sequence: event?.sequence,
        source: 'default',
        job_id: jobId,
        status: 'completed',
        late: false,
        state: 'pending',
      },
    ]);
    expect(bus.messages).toEqual([]);

    expect(await watched.published()).toEqual([`default:${jobId}:completed`]);

    const [message] = bus.messages;
    expect(message?.event).toStrictEqual({
      specversion: '1.0',
      id: `default:${jobId}:completed`,
      type: 'conversion.job.completed',
      source: '/sources/default',
      subject: jobId,
      time: '2026-01-15T10:35:00.123456789Z',
      recordedtime: event?.recorded_at.toISOString(),
      sequence: event?.sequence.padStart(19, '0'),
      datacontenttype: 'application/json',
      dataschema: 'urn:tallyhook:schema:conversion.job.completed:1',
      data: JSON.parse(data),
    });
    expect(message).toMatchObject({
      routingKey: 'job.completed.default',
      properties: {
        messageId: `default:${jobId}:completed`,
        contentType: 'application/cloudevents+json',
        type: 'conversion.job.completed',
        deliveryMode: 2,
        appId: 'tallyhook',
      },
    });
    await expect.poll(() => outbox(database)).toEqual([]);
  });

  it('a failed job ends its job as failed', async ({ watched }) => {
    const { relay, database } = watched;
    const jobId = newJobId();

    const reply = await deliver(relay.webhooks, failed(jobId));

    expect(reply).toMatchObject({
      status: 202,
      body: { outcome: 'accepted', event_id: `default:${jobId}:failed` },
    });
    expect(await events(database, jobId)).toMatchObject([
      { status: 'failed', progress_percentage: null, occurred_at: new Date('2026-01-15T10:31:00Z') },
    ]);
    expect(await jobs(database, jobId)).toMatchObject([
      {
        last_status: 'failed',
        completed_at: null,
        failed_at: expect.any(Date),
        terminal_at: expect.any(Date),
      },
    ]);
    expect(await watched.published(jobId)).toEqual([`default:${jobId}:failed`]);
  });

  it('each percentage of progress is an event of its own', async ({ watched }) => {
    const { relay, database } = watched;
    const jobId = newJobId();

    for (const percent of [0, 45, 100]) {
      const reply = await deliver(relay.webhooks, progress(jobId, percent));
      expect(reply).toMatchObject({
        status: 202,
        body: { outcome: 'accepted', event_id: `default:${jobId}:processing:${percent}` },
      });
    }

    expect(await events(database, jobId)).toMatchObject([
      { status: 'processing', progress_percentage: 0, late: false, occurred_at: null },
      { status: 'processing', progress_percentage: 45, late: false },
      { status: 'processing', progress_percentage: 100, late: false },
    ]);
    expect(await jobs(database, jobId)).toMatchObject([
      { last_status: 'processing', highest_progress: 100, terminal_at: null },
    ]);
    expect(await watched.published(jobId)).toEqual(
      [0, 45, 100].map((percent) => `default:${jobId}:processing:${percent}`),
    );
  });

  it('unknown fields pass through to subscribers with every digit', async ({ watched }) => {
    const member =
      '"extra":{"big":12345678901234567890.10,"list":[1e400,"a\\u0000b","\\ud800"]},"__proto__":{"x":1}';
    const jobId = newJobId();
    const body = `${JSON.stringify(completed(jobId)).slice(0, -1)},${member}}`;

    expect(await deliver(watched.relay.webhooks, body)).toMatchObject({ status: 202 });
    await watched.published();

    expect(messagesOf(watched, jobId)[0]?.text).toContain(member);
  });
});

describe('the same key and content: 200 duplicate', () => {
  it('it tells the event, keeps a hash and no body, and publishes nothing', async ({ watched }) => {
    const { relay, database } = watched;
    const jobId = newJobId();
    const body = JSON.stringify(completed(jobId));
    const respelled = JSON.stringify(
      Object.fromEntries(Object.entries(completed(jobId)).toReversed()),
      null,
      2,
    ).replace('125,', '1.25e2,');

    await deliver(relay.webhooks, body);
    for (const again of [body, respelled]) {
      expect(await deliver(relay.webhooks, again)).toMatchObject({
        status: 200,
        body: { outcome: 'duplicate', event_id: `default:${jobId}:completed` },
      });
    }

    const [event, ...moreEvents] = await events(database, jobId);
    expect(moreEvents).toEqual([]);
    expect(event).toMatchObject({ repeats: 2 });
    const rows = await deliveries(database, jobId);
    expect(rows).toMatchObject([
      { outcome: 'accepted', http_status: 202, event_sequence: event?.sequence },
      { outcome: 'duplicate', http_status: 200, event_sequence: event?.sequence, job_id: jobId, body: null },
      { outcome: 'duplicate', http_status: 200, event_sequence: event?.sequence, job_id: jobId, body: null },
    ]);
    expect(rows.map(({ body_sha256 }) => body_sha256?.toString('hex'))).toEqual(
      [body, body, respelled].map((text) => sha256(text).toString('hex')),
    );
    expect(await watched.published(jobId)).toEqual([`default:${jobId}:completed`]);
  });

  it('progress of the same percentage is one event', async ({ watched }) => {
    const jobId = newJobId();

    await deliver(watched.relay.webhooks, progress(jobId, 45));

    expect(
      await deliver(watched.relay.webhooks, JSON.stringify(progress(jobId, 45)).replace(':45', ':45.0')),
    ).toMatchObject({
      status: 200,
      body: { outcome: 'duplicate', event_id: `default:${jobId}:processing:45` },
    });
    expect(await watched.published(jobId)).toEqual([`default:${jobId}:processing:45`]);
  });
});

describe('the same key and other content: 200 conflict', () => {
  it('it names the event, keeps the other body, changes nothing and publishes nothing', async ({
    watched,
  }) => {
    const { relay, database } = watched;
    const jobId = newJobId();
    const other = JSON.stringify(completed(jobId, { cost_micros: 9_999_999 }));

    await deliver(relay.webhooks, completed(jobId));
    const before = await events(database, jobId);
    const reply = await deliver(relay.webhooks, other);

    expect(reply).toMatchObject({
      status: 200,
      body: { outcome: 'conflict', event_id: `default:${jobId}:completed` },
    });
    expect(await events(database, jobId)).toEqual(before.map((event) => ({ ...event, repeats: 1 })));
    const [, delivery] = await deliveries(database, jobId);
    expect(delivery).toMatchObject({
      outcome: 'conflict',
      http_status: 200,
      event_sequence: before[0]?.sequence,
      body_bytes: other.length,
    });
    expect(delivery?.body?.toString()).toBe(other);
    expect(await watched.published(jobId)).toEqual([`default:${jobId}:completed`]);
    expect(messagesOf(watched, jobId)[0]?.event.data).toMatchObject({ cost_micros: 1_250_000 });
  });

  it('contents that differ beyond the precision of a double conflict', async ({ watched }) => {
    const [body, other] = ['9007199254740992', '9007199254740993'].map(
      (digits) => `${JSON.stringify(completed('job_big')).slice(0, -1)},"x":${digits}}`,
    );

    await deliver(watched.relay.webhooks, body ?? '');

    expect(await deliver(watched.relay.webhooks, other ?? '')).toMatchObject({
      status: 200,
      body: { outcome: 'conflict' },
    });
  });

  it('copies that arrive at once are judged by the one that was accepted', async ({ watched }) => {
    const jobId = newJobId();
    const contents = Array.from({ length: 20 }, (_, index) => completed(jobId, { cost_cents: index % 2 }));

    const replies = await Promise.all(contents.map((content) => deliver(watched.relay.webhooks, content)));

    const outcomes = replies.map(({ body }) => body['outcome']);
    const accepted = outcomes.indexOf('accepted');
    expect(outcomes).toEqual(
      contents.map((_, index) => {
        if (index === accepted) return 'accepted';
        return index % 2 === accepted % 2 ? 'duplicate' : 'conflict';
      }),
    );
    const rows = await deliveries(watched.database, jobId);
    expect(rows.filter(({ outcome }) => outcome === 'duplicate').every(({ body }) => body === null)).toBe(
      true,
    );
    expect(rows.filter(({ outcome }) => outcome === 'conflict').every(({ body }) => body !== null)).toBe(
      true,
    );
  });
});

describe('a job_id, but not understood: 202 quarantined', () => {
  it.for([
    ['an unknown status', { status: 'queued' }, 'unknown status'],
    ['a field that is missing', { status: 'completed' }, 'job_type'],
    ['a number out of range', progress('x', 101), 'progress_percentage'],
    ['an impossible date', completed('x', { completed_at: '2026-02-30T10:35:00Z' }), 'completed_at'],
  ] as const)('%s', async ([, fields, reason], { watched }) => {
    const jobId = newJobId();
    const body = JSON.stringify({ ...fields, job_id: jobId });

    const before = await told(watched);
    const { reply, delivery } = await deliverTraced(watched, '/webhooks', body);

    expect(reply.status).toBe(202);
    expect(reply.body).toEqual({ outcome: 'quarantined', event_id: null });
    expect(delivery).toMatchObject({
      outcome: 'quarantined',
      http_status: 202,
      reason: expect.stringContaining(reason),
      job_id: jobId,
      status: fields.status,
      progress_percentage: null,
      event_sequence: null,
      secret_fingerprint: fingerprint,
      body_bytes: body.length,
    });
    expect(delivery?.body?.toString()).toBe(body);
    expect(await told(watched), 'nothing is told').toEqual(before);
  });

  it('a quarantined delivery does not take the key: the event can still come', async ({ watched }) => {
    const jobId = newJobId();

    await deliver(watched.relay.webhooks, completed(jobId, { cost_micros: '1' }));
    await deliver(watched.relay.webhooks, completed(jobId, { cost_micros: '1' }));

    expect(await deliver(watched.relay.webhooks, completed(jobId))).toMatchObject({
      status: 202,
      body: { outcome: 'accepted' },
    });
    expect(await watched.published(jobId)).toEqual([`default:${jobId}:completed`]);
  });
});

describe('authentic, but no usable job_id and status: 400 malformed', () => {
  it.for([
    ['no JSON', '{"job_id":'],
    ['no object', '[]'],
    ['no job_id', '{"status":"completed"}'],
    ['two job_ids', '{"job_id":"a","job_id":"b","status":"completed"}'],
    ['a NUL in the job_id', '{"job_id":"a\\u0000","status":"completed"}'],
    ['half a letter in the job_id', '{"job_id":"\\ud800","status":"completed"}'],
    ['a status that is no text', '{"job_id":"a","status":1}'],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x00, 0x22, 0x7d])],
    ['an empty body', ''],
  ] as const)('%s', async ([, content], { watched }) => {
    const before = await told(watched);
    const { reply, delivery } = await deliverTraced(watched, '/webhooks', content);

    expect(reply.status).toBe(400);
    expect(reply.body).toEqual({ error: 'malformed', message: expect.any(String) });
    expect(delivery).toMatchObject({
      outcome: 'malformed',
      http_status: 400,
      reason: reply.body['message'],
      job_id: null,
      status: null,
      event_sequence: null,
      secret_fingerprint: fingerprint,
    });
    expect(delivery?.body?.equals(Buffer.from(content))).toBe(true);
    expect(await told(watched), 'nothing is told').toEqual(before);
  });
});

describe('missing or wrong signature, or unknown source: 401 unauthorized', () => {
  const body = JSON.stringify(completed('job_forged'));

  it.for([
    ['a missing signature', '/webhooks', { 'x-service-signature': undefined }, 'default'],
    ['a wrong signature', '/webhooks', { 'x-service-signature': sign(`${body} `) }, 'default'],
    [
      'the signature of another secret',
      '/webhooks',
      { 'x-service-signature': sign(body, 'x'.repeat(32)) },
      'default',
    ],
    ['an unknown source', '/webhooks/nobody', {}, 'unknown'],
    [
      'an unknown source and no signature',
      '/webhooks/nobody',
      { 'x-service-signature': undefined },
      'unknown',
    ],
    ['the name kept for strangers', '/webhooks/unknown', {}, 'unknown'],
    ['a source with an escaped NUL', '/webhooks/a%00b', {}, 'unknown'],
  ] as const)('%s', async ([, path, headers, source], { watched }) => {
    const before = await told(watched);
    const { reply, delivery } = await deliverTraced(watched, path, body, { headers });

    expect(reply.status).toBe(401);
    expect(reply.body).toEqual({ error: 'unauthorized', message: 'missing or invalid signature' });
    expect(delivery).toMatchObject({
      source,
      outcome: 'unauthorized',
      http_status: 401,
      path,
      job_id: null,
      status: null,
      secret_fingerprint: null,
      body_bytes: body.length,
      body_sha256: null,
      body: null,
    });
    expect(await told(watched), 'nothing is told').toEqual(before);
  });

  it('the answers are the same for every cause, to the byte', async ({ watched: { relay } }) => {
    const answers = await Promise.all(
      [
        fetch(relay.webhooks, { method: 'POST', body }),
        fetch(relay.webhooks, { method: 'POST', body, headers: { 'x-service-signature': 'rubbish' } }),
        fetch(relay.webhooks, { method: 'POST', body, headers: { 'x-service-signature': sign('other') } }),
        fetch(`${relay.webhooks}/nobody`, {
          method: 'POST',
          body,
          headers: { 'x-service-signature': sign(body) },
        }),
        fetch(`${relay.webhooks}/nobody`, { method: 'POST', body }),
      ].map(async (response) => {
        const { status, headers, text } = await response.then(async (answer) => ({
          status: answer.status,
          headers: [...answer.headers].filter(([name]) => name !== 'date'),
          text: await answer.text(),
        }));
        return JSON.stringify({ status, headers, text });
      }),
    );

    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toContain('401');
  });
});

describe('too large, encoded or another method: refused', () => {
  it.for<[number, string, { body?: string; headers?: Record<string, string>; method?: string }]>([
    [413, 'payload_too_large', { body: 'x'.repeat(2_000) }],
    [415, 'unsupported_media_type', { headers: { 'content-encoding': 'gzip' } }],
    [405, 'method_not_allowed', { method: 'PUT' }],
  ])('%i %s', async ([status, error, { body = '{}', ...options }], { watched }) => {
    const before = await told(watched);
    const { reply, delivery } = await deliverTraced(watched, '/webhooks', body, options);

    expect(reply.status).toBe(status);
    expect(reply.body).toEqual({ error, message: expect.any(String) });
    expect(delivery).toMatchObject({
      source: 'default',
      outcome: 'refused',
      http_status: status,
      reason: error,
      job_id: null,
      secret_fingerprint: null,
      body_bytes: null,
      body_sha256: null,
      body: null,
    });
    expect(await told(watched), 'nothing is told').toEqual(before);
  });
});

describe('late', () => {
  it.for([completed, failed])(
    'progress after the end of its job is accepted, marked and published so',
    async (end, { watched }) => {
      const { relay, database } = watched;
      const jobId = newJobId();

      await deliver(relay.webhooks, end(jobId));
      const reply = await deliver(relay.webhooks, progress(jobId, 99));

      expect(reply).toMatchObject({
        status: 202,
        body: { outcome: 'accepted', event_id: `default:${jobId}:processing:99` },
      });
      expect((await events(database, jobId)).map(({ late }) => late)).toEqual([false, true]);
      expect(await jobs(database, jobId)).toMatchObject([
        { highest_progress: 99, last_status: end(jobId).status },
      ]);
      await watched.published();
      expect(messagesOf(watched, jobId).map(({ event }) => event['late'])).toEqual([undefined, true]);
    },
  );

  it('progress below what was already reached is late, at or above it is not', async ({ watched }) => {
    const { relay, database } = watched;
    const jobId = newJobId();

    for (const percent of [40, 80, 79, 81, 0]) await deliver(relay.webhooks, progress(jobId, percent));

    expect(
      (await events(database, jobId)).map(({ progress_percentage, late }) => [progress_percentage, late]),
    ).toEqual([
      [40, false],
      [80, false],
      [79, true],
      [81, false],
      [0, true],
    ]);
    expect(await jobs(database, jobId)).toMatchObject([{ highest_progress: 81, last_status: 'processing' }]);
    expect(await watched.published(jobId)).toHaveLength(5);
  });

  it('a repeat of progress that was in time is a duplicate, however late it comes', async ({ watched }) => {
    const jobId = newJobId();

    await deliver(watched.relay.webhooks, progress(jobId, 45));
    await deliver(watched.relay.webhooks, completed(jobId));

    expect(await deliver(watched.relay.webhooks, progress(jobId, 45))).toMatchObject({
      status: 200,
      body: { outcome: 'duplicate' },
    });
    expect((await events(watched.database, jobId)).map(({ late }) => late)).toEqual([false, false]);
  });

  it('an end after another end is no progress, so it is not late, and both are told', async ({ watched }) => {
    const jobId = newJobId();

    await deliver(watched.relay.webhooks, completed(jobId));
    await deliver(watched.relay.webhooks, failed(jobId));

    expect(await watched.published(jobId)).toEqual([`default:${jobId}:completed`, `default:${jobId}:failed`]);
    expect((await events(watched.database, jobId)).map(({ late }) => late)).toEqual([false, false]);
    const [job] = await jobs(watched.database, jobId);
    expect(job).toMatchObject({ last_status: 'failed', terminal_at: job?.completed_at });
  });
});
