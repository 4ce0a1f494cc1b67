// The forms of a message: what is escaped and cut, and that docs/observability.md shows what is sent.

import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { createSecretKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Channel } from '../../../src/watch/messages/channels-file.ts';
import { contentFor, jsonMessage } from '../../../src/watch/messages/forms.ts';
import type { Links, Told } from '../../../src/watch/messages/told.ts';
import { sign } from '../../../src/signature/index.ts';

const read = (path: string) => readFileSync(new URL(`../../../docs/${path}`, import.meta.url), 'utf8');

const TOLD: Told = {
  id: '019bc1d2-6f00-7a3b-8c4d-5e6f70819203',
  moment: 'begin',
  incident: '019bc1d2-6eff-7111-9222-333344445555',
  condition: 'outbox-lag',
  severity: 'critical',
  subject: '',
  summary: 'The oldest pending event is 312 s old.',
  beganAt: new Date('2026-01-15T10:30:00Z'),
  endedAt: null,
  eventsWaited: 1_234,
};
const LINKS: Links = {
  console: 'https://ops.example.com',
  runbook: 'https://docs.example.com/tallyhook/runbook.md',
};
const SECRET = 'a-secret-of-the-receiver-01';

function sent(form: Channel['form'], told: Partial<Told> = {}, links: Links = {}) {
  const common = { name: 'room', url: '', takes: () => true };
  const channel: Channel =
    form === 'json' ? { ...common, form, key: createSecretKey(Buffer.from(SECRET)) } : { ...common, form };
  const { body, headers } = contentFor(channel, { ...TOLD, ...told }, links);
  return { body, headers, said: JSON.parse(body.toString('utf8')) as Record<string, unknown> };
}

const slackText = (told?: Partial<Told>, links?: Links) => String(sent('slack', told, links).said['text']);

test('in a text for Slack the three characters of its markup are escaped, also in links', () => {
  expect(
    slackText({ subject: 'a<b>&c', summary: '<!channel> & <https://x|y>' }, { console: 'https://a/<|>&' }),
  ).toBe(
    [
      '*Critical: outbox-lag of a&lt;b&gt;&amp;c*',
      '&lt;!channel&gt; &amp; &lt;https://x|y&gt;',
      'since 2026-01-15 10:30:00 UTC; 1,234 events waited so far',
      '<https://a/%3C%7C%3E&amp;/console|Console> · Runbook: docs/runbook.md#outbox-lag',
    ].join('\n'),
  );
});

test('a long summary is cut in each form', () => {
  const summary = '<'.repeat(20_000);
  expect(slackText({ summary }).length).toBeLessThan(5_000);
  expect(sent('teams', { summary }).body.length).toBeLessThan(3_000);
  expect(String(sent('json', { summary }).said['summary'])).toHaveLength(1_000);
});

test.for([
  [{ severity: 'critical' }, 'Critical: outbox-lag', 'attention'],
  [{ severity: 'warning' }, 'Warning: outbox-lag', 'warning'],
  [{ moment: 'end' }, 'Over: outbox-lag', 'good'],
  [{ moment: 'test' }, 'Test of alerts', 'default'],
] as const)('a card says by its title and colour what it is: %j', ([told, title, color]) => {
  expect(JSON.stringify(sent('teams', told).said)).toContain(
    `{"type":"TextRun","text":"${title}","weight":"bolder","size":"medium","color":"${color}"}`,
  );
});

test.for([
  [20, '20 s'],
  [90, '2 min'],
  [3_599, '1 h 0 min'],
  [90_000, '25 h 0 min'],
])('how long an incident lasted is said in the largest units: %i s', ([seconds, words]) => {
  const endedAt = new Date(TOLD.beganAt.getTime() + Number(seconds) * 1_000);
  expect(slackText({ moment: 'end', endedAt })).toContain(`(${words})`);
});

test('json is signed over the bytes that are sent', () => {
  const { body, headers } = sent('json');
  expect(headers['X-Service-Signature']).toBe(sign(body, SECRET));
  expect(headers['Idempotency-Key']).toBe(TOLD.id);
});

const ajv = new Ajv2020({ strict: true, allErrors: true });
formats.default(ajv);
const isMessage = ajv.compile(JSON.parse(read('alert-message.schema.json')) as object);

test.for([{}, { moment: 'end', endedAt: new Date() }, { subject: 'team-a', eventsWaited: 0 }] as const)(
  'the schema takes each message: %j',
  (told) => {
    expect([isMessage(sent('json', told, LINKS).said), isMessage.errors]).toEqual([true, null]);
    expect([isMessage(sent('json', told).said), isMessage.errors]).toEqual([true, null]);
  },
);

test('the schema takes a test, and no field that is left out or of another type', () => {
  const message = sent('json', { moment: 'test', incident: null, condition: 'test' }).said;
  expect([isMessage(message), isMessage.errors]).toEqual([true, null]);
  for (const field of Object.keys(message)) {
    expect(isMessage({ ...message, [field]: {} })).toBe(false);
    expect(isMessage({ ...message, [field]: undefined })).toBe(false);
  }
});

test('the page on observability shows a message as it is sent', () => {
  const shown = /```json\n(\{\n {2}"id"[^`]*)```/.exec(read('observability.md'))?.[1] ?? '';
  expect(JSON.parse(shown)).toEqual(jsonMessage(TOLD, LINKS));
});
