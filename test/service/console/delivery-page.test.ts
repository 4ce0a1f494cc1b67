// A delivery as a page: its headers, its body at a press, and what differs where it is a conflict.

import { expect, test } from 'vitest';
import { type Visit, visitConsole } from '../../support/console.ts';
import { createFolder } from '../../support/folder.ts';
import { operators } from '../../support/operators.ts';
import { completed, deliver, failed, newJobId, progress } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { paste } from '../../support/shell.ts';

const readings = (relay: TestService) =>
  relay.database.query<{ subject: string }>(
    `select subject from operator_log where action = 'body.read' order by id`,
  );

/** Records the bytes as a delivery in quarantine, where any body may be. */
async function quarantined(relay: TestService, body: Buffer): Promise<string> {
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'exploded' });
  const [row] = await relay.database.query<{ id: string }>(
    `update deliveries set body = $1, body_bytes = length($1::bytea)
     where id = (select id from deliveries order by received_at desc limit 1) returning id`,
    [body],
  );
  return row?.id ?? '';
}

async function press(visit: Visit, id: string, name: string) {
  const page = await visit.get(`/console/deliveries/${id}`);
  return visit.submit(page.forms.find(({ text }) => text === name));
}

test('a delivery shows what is known of it and its headers, and reads no body', async () => {
  await using relay = await startTestService();
  await using folder = await createFolder();
  const job = newJobId();
  await deliver(relay.webhooks, completed(job), {
    headers: { 'user-agent': '<script>alert(1)</script> javascript:alert(2)' },
  });
  const [row] = await relay.database.query<{ id: string }>('select id from deliveries');
  const visit = await visitConsole(relay, { role: 'viewer' });
  const page = await visit.get(`/console/deliveries/${row?.id}`);
  expect(page.status).toBe(200);
  expect(page.text).toContain('Outcome accepted, answered with 202');
  expect(page.text).toContain('<script>alert(1)</script> javascript:alert(2)');
  expect(page.html).not.toContain('<script>alert');
  expect(page.links).toContainEqual({
    href: `/console/event?id=default%3A${job}%3Acompleted`,
    text: `default:${job}:completed`,
  });
  expect(page.text).toContain('Only the role auditor and above may see bodies.');
  expect(page.forms.map(({ action }) => action)).toEqual(['/console/search', '/console/sign-out']);
  for (const part of ['body', 'download', 'difference']) {
    expect((await visit.post(`/console/deliveries/${row?.id}/${part}`)).status).toBe(403);
  }
  expect(await readings(relay)).toEqual([]);
  const shell = { operators: relay.operators, token: visit.value, folder: folder.path('.') };
  const [command, curl] = page.pres;
  const { body } = await (await operators(relay)).get(`/deliveries/${row?.id}`);
  expect(JSON.parse(await paste(command ?? '', shell))).toEqual(body);
  expect(JSON.parse(await paste(curl ?? '', shell))).toEqual(body);
});

test('a body is shown at a press, downloaded byte for byte, and each reading is one line', async () => {
  await using relay = await startTestService();
  const text = `{"job_id":"job_x","big":9223372036854775808,"exact":1.10,"a":"<script>\u202e\u0085","a":2}`;
  const id = await quarantined(relay, Buffer.from(text));
  const visit = await visitConsole(relay, { role: 'auditor' });

  const shown = await press(visit, id, 'Show the body');

  expect(shown.status).toBe(200);
  expect(shown.pres[0]).toBe(
    '{\n  "job_id": "job_x",\n  "big": 9223372036854775808,\n  "exact": 1.10,\n  "a": "<script>⟨U+202E⟩⟨U+0085⟩",\n  "a": 2\n}',
  );
  expect(shown.pres[1]).toBe(text.replace('\u202e', '⟨U+202E⟩').replace('\u0085', '⟨U+0085⟩'));
  expect(shown.pres[2]).toMatch(/^000000 {2}7b 22 6a 6f 62 /);
  expect(shown.text).toContain('Invisible characters are spelled out');
  expect(await readings(relay)).toEqual([{ subject: id }]);

  const file = await press(visit, id, 'Download');
  expect(file.bytes).toEqual(Buffer.from(text));
  expect(file.headers).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename="${id}.bin"`,
    'x-content-type-options': 'nosniff',
  });
  expect(await readings(relay)).toHaveLength(2);
  // A press that is opened as an address reads nothing.
  const opened = await visit.get(`/console/deliveries/${id}/body`);
  expect([opened.status, opened.location]).toEqual([303, `/console/deliveries/${id}`]);
  expect(await readings(relay)).toHaveLength(2);
});

test.for([
  [
    'all bytes there are',
    Buffer.from(Array.from({ length: 1024 }, (_, at) => at % 256)),
    'These bytes are not UTF-8 text.',
  ],
  ['NULs', Buffer.alloc(5_000), 'Invisible characters are spelled out'],
  ['a line of 200 kB', Buffer.from(`{"a":"${'x'.repeat(200_000)}"}`), 'The download is whole.'],
  ['256 KiB', Buffer.alloc(256 * 1024, 'é'), 'The first 16.0 KiB of 256.0 KiB.'],
  ['deep JSON', Buffer.from('['.repeat(50_000) + ']'.repeat(50_000)), 'As received'],
  ['right-to-left marks', Buffer.from('\u202e\u2066abc\u200f'), '⟨U+202E⟩⟨U+2066⟩abc⟨U+200F⟩'],
  [
    'markup',
    Buffer.from('</pre></details><script src="//evil"></script><img onerror=alert(1)>'),
    '<script src="//evil">',
  ],
  [
    'half of a character at the cut',
    Buffer.from('x'.repeat(65_535) + '😀'.repeat(100)),
    'The first 65,536 of',
  ],
  ['nothing', Buffer.alloc(0), 'The body is empty.'],
] as const)('a body of %s is inert and readable, and the download is whole', async ([, bytes, expected]) => {
  await using relay = await startTestService();
  const id = await quarantined(relay, bytes);
  const visit = await visitConsole(relay, { role: 'auditor' });
  const shown = await press(visit, id, 'Show the body');
  expect([shown.status, shown.text]).toEqual([200, expect.stringContaining(expected)]);
  expect(shown.html).not.toMatch(/<script src="\/\/evil|<img/);
  expect(shown.html.replaceAll(/[\t\n]/g, '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
  expect(shown.bytes.length).toBeLessThan(1_500_000);
  expect((await press(visit, id, 'Download')).bytes).toEqual(Buffer.from(bytes));
});

test('a conflict shows what differs at a press, with every digit, and two lines in the log', async () => {
  await using relay = await startTestService();
  const job = newJobId();
  await deliver(relay.webhooks, failed(job, { error_message: 'first', n: 9007199254740993n.toString() }));
  await deliver(
    relay.webhooks,
    failed(job, { error_message: '<i>second</i>', n: 9007199254740993n.toString() }),
  );
  const [first, conflict] = await relay.database.query<{ id: string }>(
    'select id from deliveries order by received_at',
  );
  const visit = await visitConsole(relay, { role: 'auditor' });
  const shown = await press(visit, conflict?.id ?? '', 'Compare the two bodies');
  expect(shown.status).toBe(200);
  expect(shown.text).toContain('/error_message "first" "<i>second</i>"');
  expect(shown.text).not.toContain('/n ');
  expect(await readings(relay)).toEqual([{ subject: first?.id }, { subject: conflict?.id }]);
  expect((await visit.get(`/console/deliveries/${first?.id}`)).text).not.toContain('What differs');
});

test('a delivery whose body is not kept, and one that there is not, say so', async () => {
  await using relay = await startTestService();
  const job = newJobId();
  await deliver(relay.webhooks, progress(job, 1));
  await deliver(relay.webhooks, progress(job, 1));
  const [row] = await relay.database.query<{ id: string }>(
    `select id from deliveries where outcome = 'duplicate'`,
  );
  const visit = await visitConsole(relay, { role: 'auditor' });
  const page = await visit.get(`/console/deliveries/${row?.id}`);
  expect(page.text).toContain('The body is not kept.');
  expect((await visit.post(`/console/deliveries/${row?.id}/body`)).status).toBe(404);
  const none = await visit.get('/console/deliveries/01a203a6-e43a-7e28-ae3d-2ce033e23f7a');
  expect([none.status, none.text]).toEqual([404, expect.stringContaining('There is no such delivery')]);
  expect((await visit.get('/console/deliveries/nonsense')).status).toBe(400);
});
