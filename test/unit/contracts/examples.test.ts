// Every example that was ever published is valid for ever: by all forms of its kind, and by the code that reads it.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { CONTRACTS } from '../../../scripts/contracts/documents.ts';
import { filesOf, FORMS } from '../../../scripts/contracts/forms.ts';
import {
  type ConversionEvent,
  eventType,
  isStatus,
  type Kind,
  kindOf,
  parseEvent,
} from '../../../src/event/index.ts';
import { type AuthenticBody, understand } from '../../../src/ledger/index.ts';
import { toMessage } from '../../../src/relay/cloud-event.ts';

type Message = {
  readonly exchange: string;
  readonly routing_key: string;
  readonly properties: { readonly type: string };
  readonly headers: { readonly replay?: string; readonly replayed_by?: string };
  readonly payload: ConversionEvent;
};

const read = (path: string) => readFileSync(join(CONTRACTS, path), 'utf8');

const examples = (folder: string) =>
  readdirSync(join(CONTRACTS, 'examples', folder)).map((name) => {
    const text = read(`examples/${folder}/${name}`);
    return { name, text, value: JSON.parse(text) as unknown };
  });

const ajv = new Ajv2020({ strict: true });
addFormats.default(ajv);
const files = new Map(FORMS.map((form) => [form.name, filesOf(form, CONTRACTS)]));
for (const { form } of [...files.values()].flat()) ajv.addSchema(form);

/** The forms by which a value is not valid. */
function refusing(name: string, value: unknown): string[] {
  const known = files.get(name) ?? [];
  expect(known).not.toEqual([]);
  return known.filter(({ form }) => ajv.getSchema(form.$id)?.(value) !== true).map(({ path }) => path);
}

function kindOfStatus(status: string): Kind {
  if (!isStatus(status)) throw new Error(`no status: ${status}`);
  return kindOf(status);
}

/** The forms by which an event is not valid, and what parseEvent says of it. */
function judge(event: ConversionEvent) {
  const kind = kindOfStatus(event.data.status);
  const refused = [...refusing('events/envelope', event), ...refusing(`events/${kind}`, event.data)];
  return { kind, refused, parsed: parseEvent(event) };
}

function right(event: ConversionEvent) {
  const kind = kindOfStatus(event.data.status);
  return { kind, refused: [], parsed: { outcome: 'event', kind, event } };
}

describe('every example of an event', () => {
  test.for(examples('events'))('$name is valid by its forms, and parseEvent reads it', ({ value }) => {
    const event = value as ConversionEvent;
    expect(judge(event)).toEqual(right(event));
  });

  test('has more than one of each kind', () => {
    const types = examples('events').map(({ value }) => (value as ConversionEvent).type);
    for (const kind of ['completed', 'failed', 'progress'] as const) {
      expect(types.filter((type) => type === eventType(kind)).length).toBeGreaterThan(1);
    }
  });
});

describe('every example of a notification', () => {
  const known = examples('notifications').filter(({ name }) => name !== 'unknown-status.json');

  test.for(known)('$name is valid by its forms, and becomes an event', ({ text, value }) => {
    const kind = kindOfStatus((value as { status: string }).status);
    expect(refusing('notifications/addressee', value)).toEqual([]);
    expect(refusing(`notifications/${kind}`, value)).toEqual([]);
    const understanding = understand(Buffer.from(text) as AuthenticBody);
    expect(understanding.outcome).toBe('event');
    if (understanding.outcome !== 'event') return;
    expect(refusing(`events/${kind}`, JSON.parse(understanding.event.data))).toEqual([]);
  });

  test('unknown-status.json has an addressee, and is quarantined', () => {
    const text = read('examples/notifications/unknown-status.json');
    expect(refusing('notifications/addressee', JSON.parse(text))).toEqual([]);
    expect(understand(Buffer.from(text) as AuthenticBody).outcome).toBe('quarantined');
  });
});

describe('every example of a message', () => {
  test.for(examples('messages'))('$name is what the relay publishes', ({ value }) => {
    const { headers, payload, ...message } = value as Message;
    expect(judge(payload)).toEqual(right(payload));
    const isForQueue = message.exchange === '';
    const { replay, replayed_by: by } = headers;
    const made = toMessage(
      {
        sequence: payload.sequence.replace(/^0+/, ''),
        source: payload.source.replace('/sources/', ''),
        jobId: payload.subject,
        status: payload.data.status,
        progress: payload.data.status === 'processing' ? payload.data.progress_percentage : null,
        late: payload.late === true,
        occurredAt: payload.data.status === 'processing' ? null : payload.time,
        recordedAt: new Date(payload.recordedtime),
        data: JSON.stringify(payload.data),
        ...(replay === undefined || by === undefined
          ? {}
          : { replay: { id: replay, by, queue: isForQueue ? message.routing_key : null } }),
      },
      'job',
    );
    expect({
      exchange: typeof made.queue === 'string' ? '' : 'conversion.events',
      routing_key: made.queue ?? made.routingKey,
      properties: {
        message_id: made.messageId,
        content_type: made.contentType,
        type: made.type,
        delivery_mode: 2,
        timestamp: Math.floor(made.timestamp.getTime() / 1_000),
        app_id: 'tallyhook',
      },
      headers: made.headers ?? {},
      payload: JSON.parse(made.body.toString()) as unknown,
    }).toEqual(value);
  });
});

test('the event in docs/events.md is an example', () => {
  const page = readFileSync(new URL('../../../docs/events.md', import.meta.url), 'utf8');
  const [, shown = ''] = /```json\n(.+?)```/s.exec(page) ?? [];
  expect(shown).toBe(read('examples/events/progress.json'));
});
