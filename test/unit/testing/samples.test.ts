// The samples of tallyhook/testing: what a team's own tests rely on.

import { describe, expect, test } from 'vitest';
import { KINDS, parseEvent } from '../../../src/event/index.ts';
import { toMessage } from '../../../src/relay/cloud-event.ts';
import { type AuthenticBody, understand } from '../../../src/ledger/understanding/understand.ts';
import { verify } from '../../../src/signature/index.ts';
import {
  messageOf,
  sampleEvent,
  sampleNotification,
  signedNotification,
} from '../../../src/testing/index.ts';

const SECRET = 'a-test-secret-of-enough-bytes-0001';

/** The event that a relay makes of this body. */
function eventOf(body: string) {
  const understood = understand(Buffer.from(body) as AuthenticBody);
  if (understood.outcome !== 'event') throw new Error(understood.reason);
  return understood.event;
}

describe.for(KINDS)('a sample of the kind %s', (kind) => {
  test('is understood, without a field that we do not know', () => {
    const understood = understand(Buffer.from(sampleNotification({ kind })) as AuthenticBody);
    expect(understood).toMatchObject({ outcome: 'event', event: { jobId: 'job_sample' } });
    expect(understood.drift).toBeUndefined();
  });

  test('is signed so that its receiver accepts it', () => {
    const { body, headers } = signedNotification({ kind, secret: SECRET });
    expect(verify(body, headers['x-service-signature'], [SECRET])).toBe(true);
    expect(headers['content-type']).toBe('application/json');
  });

  test('is the same whenever it is made', () => {
    const options = { kind, secret: SECRET };
    expect(signedNotification(options)).toEqual(signedNotification(options));
    expect(sampleEvent(options)).toEqual(sampleEvent(options));
  });

  test('is an event to subscribers', () => {
    const event = sampleEvent({ kind });
    expect(parseEvent(event)).toEqual({ outcome: 'event', kind, event });
  });

  test.for([{}, { late: true, source: 'team-a', sequence: 42, otherFields: { note: 'not in the schemas' } }])(
    'makes, with %j, the very message that the relay makes of its notification',
    (options) => {
      const event = sampleEvent({ kind, ...options });
      const { sequence = 1, late = false, source = 'default' } = options;
      const published = toMessage(
        {
          ...eventOf(sampleNotification({ kind, ...options })),
          sequence: String(sequence),
          source,
          late,
          recordedAt: new Date(event.recordedtime),
        },
        'job',
      );
      const message = messageOf(event);
      expect(message.content.toString()).toBe(published.body.toString());
      expect(message.routingKey).toBe(published.routingKey);
      expect(message.properties).toMatchObject({
        messageId: published.messageId,
        contentType: published.contentType,
        type: published.type,
        timestamp: Math.floor(published.timestamp.getTime() / 1_000),
      });
    },
  );
});

test('fields replace the sample’s own, and times are in UTC as in every event', () => {
  const event = sampleEvent({
    kind: 'failed',
    job: 'job_42',
    percent: 70,
    fields: { error_code: 'TIMEOUT', failed_at: '2026-03-01T12:00:00.5+02:00' },
  });
  expect(event.data).toMatchObject({ job_id: 'job_42', error_code: 'TIMEOUT', progress_percentage: 70 });
  expect(event.time).toBe('2026-03-01T10:00:00.5Z');
  expect(event.id).toBe('default:job_42:failed');
});

test('an event that Tallyhook would never publish is refused, and the field is named', () => {
  expect(() => sampleEvent({ kind: 'completed', otherFields: { cost_cents: 'much' } })).toThrow(
    /cost_cents must be a whole number/,
  );
  expect(() => sampleEvent({ kind: 'progress', percent: 101 })).toThrow(/progress_percentage/);
  expect(() => sampleEvent({ kind: 'progress', source: 'Team A' })).toThrow(/source/);
  // @ts-expect-error -- a kind
  expect(() => sampleEvent({ kind: 'done' })).toThrow(
    new TypeError('kind is none of completed, failed, progress'),
  );
});

test('a replay’s copy is told by its headers alone', () => {
  const event = sampleEvent({ kind: 'completed' });
  const { properties, ...others } = messageOf(event, { replay: { id: 'a-replay', by: 'ada' } });
  const { headers, ...same } = properties;
  const { properties: own, ...rest } = messageOf(event);
  expect(headers).toEqual({ replay: 'a-replay', replayed_by: 'ada' });
  expect({ ...others, ...same }).toEqual({ ...rest, ...own });
});
