// Messages of incidents on real sockets: what receivers get, once and again, and what happens to the other messages meanwhile.

import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createFolder } from '../../support/folder.ts';
import { cliWith } from '../../support/cli.ts';
import { createTestDatabase } from '../../support/database.ts';
import {
  addIncident,
  addMessage,
  expireLease,
  loseLease,
  messageRows,
  startMessages,
} from '../../support/messages.ts';
import { IS_SHORT_RUN } from '../../only-in-all.ts';
import { promisedMs } from '../../support/patience.ts';
import { startReplica } from '../../support/replica.ts';
import { answer, hang, startReceiver } from '../../support/receiver.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { readMetrics } from '../../support/requests.ts';
import { startTestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';
import { verify } from '../../../src/signature/index.ts';

const SECRET = 'a-secret-of-the-receiver-01';
const slack = (url: string) => ({ form: 'slack', url });
const json = (url: string) => ({ form: 'json', url, secret: SECRET });

const text = (run: Record<string, string>) => ({
  type: 'RichTextBlock',
  inlines: [{ type: 'TextRun', ...run }],
});

test('each form has exactly the body that its receiver takes; json is signed over it, and has its id as a header', async () => {
  await using database = await createTestDatabase();
  await using receiver = await startReceiver();
  const at = (path: string) => new URL(path, receiver.url).href;
  await using started = await startMessages({
    database,
    alerts: {
      console: 'https://ops.example.com/',
      runbook: 'https://wiki.example.com/runbook',
      channels: {
        room: slack(at('/slack')),
        team: { form: 'teams', url: at('/teams') },
        pager: json(at('/json')),
      },
    },
  });
  const incident = await addIncident(database, {
    condition: 'source-silent',
    subject: 'team_a',
    summary: 'team_a <has> delivered nothing & was expected to.',
    endedAt: '2026-01-15T11:56:10Z',
    eventsWaited: 1_234,
  });
  for (const channel of ['room', 'team', 'pager'])
    await addMessage(database, incident, { channel, moment: 'end' });

  const received = await receiver.untilReceived(3);
  const of = (path: string) => received.find((one) => one.path === path);
  expect(of('/slack')?.said).toEqual({
    text: [
      '*Over: source-silent of team_a*',
      'team_a &lt;has&gt; delivered nothing &amp; was expected to.',
      'from 2026-01-15 10:30:00 UTC to 2026-01-15 11:56:10 UTC (1 h 26 min); 1,234 events waited at most',
      '<https://ops.example.com/console|Console> · <https://wiki.example.com/runbook#source-silent|Runbook>',
    ].join('\n'),
  });
  expect(of('/teams')?.said).toEqual({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.2',
          body: [
            text({
              text: 'Over: source-silent of team_a',
              weight: 'bolder',
              size: 'medium',
              color: 'good',
            }),
            text({ text: 'team_a <has> delivered nothing & was expected to.' }),
            text({ text: 'from 2026-01-15 10:30:00 UTC to 2026-01-15 11:56:10 UTC (1 h 26 min)' }),
            text({ text: '1,234 events waited at most' }),
          ],
          actions: [
            { type: 'Action.OpenUrl', title: 'Console', url: 'https://ops.example.com/console' },
            {
              type: 'Action.OpenUrl',
              title: 'Runbook',
              url: 'https://wiki.example.com/runbook#source-silent',
            },
          ],
        },
      },
    ],
  });
  const pager = of('/json');
  const rows = await messageRows(database);
  const id = rows.find(({ channel }) => channel === 'pager')?.id;
  expect(pager?.said).toEqual({
    id,
    incident,
    moment: 'end',
    condition: 'source-silent',
    severity: 'critical',
    subject: 'team_a',
    summary: 'team_a <has> delivered nothing & was expected to.',
    began_at: '2026-01-15T10:30:00.000Z',
    ended_at: '2026-01-15T11:56:10.000Z',
    events_waited: 1_234,
    console: 'https://ops.example.com/console',
    runbook: 'https://wiki.example.com/runbook#source-silent',
  });
  expect(received.map(({ method, headers }) => [method, headers['content-type']])).toEqual(
    Array.from({ length: 3 }, () => ['POST', 'application/json']),
  );
  const { body = Buffer.alloc(0), headers = {} } = pager ?? {};
  expect(headers['idempotency-key']).toBe(id);
  const signature = String(headers['x-service-signature']);
  expect(verify(body, signature, [SECRET])).toBe(true);
  await using folder = await createFolder();
  const verified = await cliWith({}).run(
    'verify',
    '--secret-file',
    await folder.write('secret', SECRET),
    '--body-file',
    await folder.write('body', body.toString('utf8')),
    '--signature',
    signature,
  );
  expect(verified.code).toBe(0);
  await waitFor(async () =>
    expect((await messageRows(database)).map((row) => row.is_sent)).toEqual([true, true, true]),
  );
  expect(await started.metric('tallyhook_alert_requests_total', 'sent')).toBe(3);
});

test('what is not taken is sent once more, with the same id and the same bytes, and then no more', async () => {
  await using database = await createTestDatabase();
  await using receiver = await startReceiver(answer(500, 200));
  await using started = await startMessages({
    database,
    alerts: { channels: { pager: json(receiver.url) } },
  });
  const id = await addMessage(database, await addIncident(database), { channel: 'pager' });

  const [first, second] = await receiver.untilReceived(2);
  expect([first?.said['id'], second?.said['id']]).toEqual([id, id]);
  expect(second?.body).toEqual(first?.body);
  await waitFor(async () =>
    expect(await messageRows(database)).toEqual([
      {
        id,
        moment: 'begin',
        channel: 'pager',
        attempts: 2,
        is_sent: true,
        is_given_up: false,
        last_error: null,
      },
    ]),
  );
  expect(await started.metric('tallyhook_alert_requests_total', 'failed')).toBe(1);
  expect(await started.metric('tallyhook_alert_requests_total', 'sent')).toBe(1);
  expect(started.lines).toContainEqual(
    expect.objectContaining({ channel: 'pager', attempt: 1, error: 'answered with status 500' }),
  );
  // Another message comes, and this one does not: it was looked for meanwhile.
  const next = await addMessage(database, await addIncident(database, { condition: 'parked' }), {
    channel: 'pager',
  });
  expect((await receiver.untilReceived(3)).map(({ said }) => said['id'])).toEqual([id, id, next]);
});

test('of an incident that has ended before its begin was told, one message tells', async () => {
  await using database = await createTestDatabase();
  await using receiver = await startReceiver();
  const incident = await addIncident(database, { endedAt: '2026-01-15T10:40:00Z' });
  await addMessage(database, incident, { channel: 'pager' });
  const end = await addMessage(database, incident, { channel: 'pager', moment: 'end' });
  await using started = await startMessages({
    database,
    alerts: { channels: { pager: json(receiver.url) } },
  });

  await waitFor(async () =>
    expect((await messageRows(database)).map((row) => row.is_sent)).toEqual([true, true]),
  );
  expect(receiver.received.map(({ said }) => said['id'])).toEqual([end]);
  expect(await started.metric('tallyhook_alert_requests_total', 'sent')).toBe(1);
});

const results = (metrics: ReadonlyMap<string, number>) =>
  [...metrics].filter(([name]) => /^tallyhook_(alert_requests|heartbeat_calls)_total/.test(name));

test('an address that hangs delays neither another channel, nor a delivery, nor the stop', async () => {
  await using database = await createTestDatabase();
  await using dead = await startReceiver(hang);
  await using receiver = await startReceiver();
  await using folder = await createFolder();
  const alerts = {
    channels: { dead: json(dead.url), pager: json(receiver.url) },
    heartbeat: { url: dead.url },
  };
  const file = await folder.write('alerts.json', JSON.stringify(alerts));
  await using relay = await startTestService({ database, env: { ALERTS_FILE: file } });
  expect(results(await readMetrics(relay.operators))).toEqual([
    ['tallyhook_alert_requests_total{result="sent"}', 0],
    ['tallyhook_alert_requests_total{result="failed"}', 0],
    ['tallyhook_alert_requests_total{result="given_up"}', 0],
    ['tallyhook_heartbeat_calls_total{result="ok"}', 0],
    ['tallyhook_heartbeat_calls_total{result="failed"}', 0],
  ]);
  for (const condition of ['quarantine', 'stuck-jobs', 'conflicts']) {
    const incident = await addIncident(database, { condition, severity: 'warning' });
    for (const channel of ['dead', 'pager']) await addMessage(database, incident, { channel });
  }

  await receiver.untilReceived(3);
  // The watch looks, and all is well: none of these is critical.
  await waitFor(() => expect(dead.received.map(({ method }) => method)).toContain('GET'), {
    timeout: 30_000,
  });
  expect((await deliver(relay.webhooks, completed(newJobId()))).status).toBe(202);
  const startedMs = performance.now();
  await relay.service.stop();
  expect(performance.now() - startedMs).toBeLessThan(promisedMs(5_000));
  const rows = await messageRows(database);
  expect(rows.filter(({ channel }) => channel === 'pager').map((row) => row.is_sent)).toEqual([
    true,
    true,
    true,
  ]);
  expect(rows.filter(({ channel }) => channel === 'dead').map((row) => row.is_sent)).toEqual([
    false,
    false,
    false,
  ]);
  expect(dead.mostAtOnce()).toBeLessThanOrEqual(2); // a message and a call
});

test('who has lost the lease sends nothing, even if it does not know yet; of two replicas one sends', async () => {
  await using database = await createTestDatabase();
  await using receiver = await startReceiver();
  const alerts = { channels: { pager: json(receiver.url) } };
  await using first = await startMessages({ database, alerts });
  await using second = await startMessages({ database, alerts });
  expect([first.lease.isLeading(), second.lease.isLeading()]).toEqual([true, false]);
  const told = await addMessage(database, await addIncident(database), { channel: 'pager' });
  await waitFor(async () => expect((await messageRows(database)).map((row) => row.is_sent)).toEqual([true]));

  await loseLease(database);
  expect(first.lease.isLeading()).toBe(true); // as far as it knows
  await addMessage(database, await addIncident(database, { condition: 'parked' }), { channel: 'pager' });
  const claims = () => first.statements.filter((name) => name === 'messages-claim').length;
  const before = claims();
  await waitFor(() => expect(claims()).toBeGreaterThan(before + 1));

  expect(receiver.received.map(({ said }) => said['id'])).toEqual([told]);
  expect(second.statements).toEqual([]);
});

test('a message whose result its sender could not write any more comes again from the next holder, with the same id', async () => {
  await using database = await createTestDatabase();
  await using receiver = await startReceiver((response, _received, index) => {
    if (index > 0) response.end();
    else void loseLease(database).then(() => response.end());
  });
  const alerts = { channels: { pager: json(receiver.url) } };
  await using first = await startMessages({ database, alerts });
  await using second = await startMessages({ database, alerts });
  const id = await addMessage(database, await addIncident(database), { channel: 'pager' });
  await receiver.untilReceived(1);
  await waitFor(() => expect(first.statements).toContain('messages-sent'));
  expect((await messageRows(database)).map((row) => row.is_sent)).toEqual([false]);

  await expireLease(database);
  await second.lease.attempt();

  const received = await receiver.untilReceived(2);
  expect(received.map(({ said }) => said['id'])).toEqual([id, id]);
  expect(received[1]?.body).toEqual(received[0]?.body);
  await waitFor(async () => expect((await messageRows(database)).map((row) => row.is_sent)).toEqual([true]));
});

test.skipIf(IS_SHORT_RUN)(
  'a replica that is killed between a request and its result leaves the message to the next one, which sends it with the same id',
  async () => {
    await using database = await createTestDatabase();
    await using folder = await createFolder();
    const killed = Promise.withResolvers<void>();
    await using receiver = await startReceiver((response, _received, index) => {
      if (index > 0) return void response.end();
      first.kill('SIGKILL');
      killed.resolve();
    });
    const file = await folder.write(
      'alerts.json',
      JSON.stringify({ channels: { pager: json(receiver.url) } }),
    );
    const options = { databaseUrl: database.url, env: { ALERTS_FILE: file } };
    await using first = await startReplica(options);
    await using second = await startReplica(options);
    const id = await addMessage(database, await addIncident(database), { channel: 'pager' });
    await killed.promise;
    expect((await first.exited).signal).toBe('SIGKILL');
    await expireLease(database);

    const received = await waitFor(
      () => {
        expect(receiver.received).toHaveLength(2);
        return receiver.received;
      },
      { timeout: 30_000 },
    );
    expect(received.map(({ said }) => said['id'])).toEqual([id, id]);
    await waitFor(async () =>
      expect((await messageRows(database)).map((row) => row.is_sent)).toEqual([true]),
    );
    expect(second.log).toContainEqual(expect.objectContaining({ message: id, attempt: 2 }));
  },
);

test('what was not taken for a day is given up, also of a channel that is gone; what is younger is sent', async () => {
  await using database = await createTestDatabase();
  await using receiver = await startReceiver();
  const incident = await addIncident(database);
  const other = await addIncident(database, { condition: 'parked' });
  await addMessage(database, incident, { channel: 'pager', dueAgo: '24 h 1 min', attempts: 99 });
  await addMessage(database, incident, { channel: 'gone', dueAgo: '25 h' });
  const young = await addMessage(database, other, { channel: 'pager', dueAgo: '23 h 50 min', attempts: 98 });
  await using started = await startMessages({
    database,
    alerts: { channels: { pager: json(receiver.url) } },
  });

  await waitFor(async () =>
    expect((await messageRows(database)).map((row) => [row.is_sent, row.is_given_up])).toEqual([
      [false, true],
      [false, true],
      [true, false],
    ]),
  );
  expect(receiver.received.map(({ said }) => said['id'])).toEqual([young]);
  expect(await started.metric('tallyhook_alert_requests_total', 'given_up')).toBe(2);
});

test('the file is read again while messages are sent: a broken one keeps the channels, a new one is used at once', async () => {
  await using database = await createTestDatabase();
  await using old = await startReceiver(answer(404));
  await using receiver = await startReceiver();
  await using started = await startMessages({ database, alerts: { channels: { pager: json(old.url) } } });
  await addMessage(database, await addIncident(database), { channel: 'pager' });
  await old.untilReceived(1);

  await started.write({ channels: { pager: { form: 'json', url: receiver.url, secret: 'planted' } } });
  await waitFor(() =>
    expect(started.lines).toContainEqual(
      expect.objectContaining({
        level: 50,
        msg: 'ALERTS_FILE is broken, the previous channels stay valid',
        faults: ['ALERTS_FILE channels.pager.secret is shorter than 16 bytes'],
      }),
    ),
  );
  expect(started.messages.channels.current().map(({ name }) => name)).toEqual(['pager']);
  await started.write({ channels: { pager: json(receiver.url) } });

  await receiver.untilReceived(1);
  expect(started.lines).toContainEqual(
    expect.objectContaining({ msg: 'channels of alerts loaded', channels: ['pager'] }),
  );
});

test('a test goes to each channel in its form, and says of each what became of it, without its address', async () => {
  await using database = await createTestDatabase();
  await using receiver = await startReceiver();
  await using moved = await startReceiver(
    (response) => void response.writeHead(302, { Location: receiver.url, 'Retry-After': '5' }).end(),
  );
  await using gone = await startReceiver(answer(410));
  await using started = await startMessages({
    database,
    alerts: {
      channels: {
        room: slack(receiver.url),
        team: { form: 'teams', url: receiver.url, severity: 'critical' },
        pager: json(receiver.url),
        moved: slack(moved.url),
        gone: slack(gone.url),
      },
    },
  });
  await loseLease(database); // a test is no incident: any replica sends it

  expect(await started.messages.sendTest()).toEqual([
    { channel: 'room', ok: true },
    { channel: 'team', ok: true },
    { channel: 'pager', ok: true },
    { channel: 'moved', ok: false, error: 'answered with status 302, and redirects are not followed' },
    { channel: 'gone', ok: false, error: 'answered with status 410' },
  ]);
  expect(receiver.received).toHaveLength(3);
  expect(receiver.received.map(({ said }) => said)).toContainEqual(
    expect.objectContaining({ moment: 'test', incident: null, runbook: 'docs/runbook.md' }),
  );
});

test('an address is in no line of the log, no metric, no row and no answer, whatever becomes of its requests', async () => {
  const planted = `pLaNtEd-${createHash('sha256').update('messages').digest('hex')}`;
  await using database = await createTestDatabase();
  await using plain = await startReceiver((response) => void response.socket?.end('no HTTP\r\n\r\n'));
  await using failing = await startReceiver(answer(500));
  const unheard = await startReceiver();
  await unheard[Symbol.asyncDispose]();
  const at = (base: string, host = '127.0.0.1') =>
    base.replace('127.0.0.1', host).replace('/webhooks', `/${planted}`);
  const urls = {
    plain: at(plain.url),
    failing: at(failing.url),
    unheard: at(unheard.url),
    nameless: `https://${planted.slice(0, 40)}.invalid/${planted}`,
    untrusted: at(plain.url.replace('http:', 'https:')),
  };
  await using started = await startMessages({
    database,
    alerts: {
      channels: Object.fromEntries(Object.entries(urls).map(([name, url]) => [name, json(url)])),
      heartbeat: { url: at(failing.url) },
    },
  });
  const incident = await addIncident(database);
  for (const channel of Object.keys(urls)) await addMessage(database, incident, { channel });

  await waitFor(async () => {
    const rows = await messageRows(database);
    expect(Object.fromEntries(rows.map((row) => [row.channel, row.last_error]))).toEqual({
      plain: expect.stringMatching(/^it does not speak HTTP \(HPE_\w+\)$/),
      failing: 'answered with status 500',
      unheard: 'nothing listens there (ECONNREFUSED)',
      nameless: expect.stringMatching(/^its name has no address \(E\w+\)$/),
      untrusted: expect.stringMatching(/^TLS failed \(\w+\)$/),
    });
  });
  await waitFor(async () =>
    expect(await started.metric('tallyhook_heartbeat_calls_total', 'failed')).toBe(1),
  );
  const said = [
    JSON.stringify(await started.messages.sendTest()),
    JSON.stringify(await messageRows(database)),
    JSON.stringify(started.lines),
    await started.metrics(),
  ].join('\n');
  expect(said).not.toContain(planted.slice(0, 40));
  expect(said).not.toContain(planted.slice(0, 40).toLowerCase());
  expect(said).not.toContain(SECRET);
  expect(said).not.toContain('127.0.0.1');
});
