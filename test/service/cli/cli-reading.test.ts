// What happened, as the command line tells it: NDJSON when piped, tables on a terminal.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { readFile, stat } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { listen, newExchange } from '../../support/bus.ts';
import { type Cli, cliOf, cliWith, parseLines } from '../../support/cli.ts';
import { untilNonePending } from '../../support/facts.ts';
import { createFolder } from '../../support/folder.ts';
import { startReceiver } from '../../support/receiver.ts';
import { startProcess } from '../../support/replica.ts';
import { completed, deliver, failed, newJobId, type Notification, progress } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

type Item = Record<string, unknown>;

const only = (items: readonly Item[], ...names: string[]) =>
  items.map((item) => Object.fromEntries(names.map((name) => [name, item[name]])));

const SECRETS = { 'team-a': 'a-secret-of-the-team-a-0001', 'team-b': 'a-secret-of-the-team-b-0001' };

const deliverTo = (relay: TestService, source: keyof typeof SECRETS, content: Notification) =>
  deliver(`${relay.webhooks}/${source}`, content, { secret: SECRETS[source] });

type Story = { readonly relay: TestService; readonly job: string; readonly lost: string; readonly cli: Cli };

const it = test.extend<{ story: Story; busy: TestService }>({
  /** A job with a duplicate, a conflict and a completion, and one that failed, which no queue wants. Tests add nothing to it. */
  story: [
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what is needed from it
    async ({}, use) => {
      const exchange = newExchange();
      await using _ = await listen(exchange, { bindings: ['job.completed.#', 'job.progress.#'] });
      await using relay = await startTestService({ exchange });
      const [job, lost] = [newJobId(), newJobId()];
      for (const body of [
        progress(job, 45),
        progress(job, 45),
        progress(job, 45, { estimated_completion: '2026-01-15T11:00:00Z' }),
        completed(job),
        failed(lost),
      ]) {
        await deliver(relay.webhooks, body);
      }
      await untilNonePending(relay.database);
      await use({ relay, job, lost, cli: await cliOf(relay, { role: 'auditor' }) });
    },
    { scope: 'file' },
  ],
  /** For tests with jobs of their own. With two sources beside `default`. */
  busy: [
    // oxlint-disable-next-line no-empty-pattern -- as above
    async ({}, use) => {
      await using folder = await createFolder();
      const teams = Object.entries(SECRETS).map(([name, secret]) => [name, { secrets: [secret] }]);
      const file = await folder.write('sources.json', JSON.stringify(Object.fromEntries(teams)));
      const exchange = newExchange();
      await using _ = await listen(exchange);
      await using relay = await startTestService({ exchange, env: { SOURCES_FILE: file } });
      await use(relay);
    },
    { scope: 'file' },
  ],
});

it('jobs show tells a whole story in order: deliveries, events and publications', async ({ story }) => {
  const { cli, job } = story;

  const [first, ...items] = await cli.items('jobs', 'show', job);

  expect(first).toMatchObject({ what: 'job', job: { job_id: job, source: 'default', state: 'completed' } });
  const told = items.map((item) => {
    const { what, delivery, event, publication } = item as Record<string, Item | undefined> & {
      what: string;
    };
    return `${what} ${String(delivery?.['outcome'] ?? event?.['id'] ?? publication?.['result'])}`;
  });
  expect(told.filter((line) => line.startsWith('delivery'))).toEqual([
    'delivery accepted',
    'delivery duplicate',
    'delivery conflict',
    'delivery accepted',
  ]);
  expect(told.filter((line) => line.startsWith('event'))).toEqual([
    `event default:${job}:processing:45`,
    `event default:${job}:completed`,
  ]);
  expect(told.filter((line) => line.startsWith('publication'))).toEqual([
    'publication confirmed',
    'publication confirmed',
  ]);
  const times = items.map(({ at }) => String(at));
  expect(times).toEqual(times.toSorted());
  expect(await cli.items('jobs', 'show', 'default', job)).toHaveLength(items.length + 1);
});

it('a job of which there is nothing but quarantine has a story', async ({ busy: relay }) => {
  const cli = await cliOf(relay, { role: 'viewer' });
  const job = newJobId();
  await deliver(relay.webhooks, { job_id: job, status: 'exploded' });

  const [first, ...items] = await cli.items('jobs', 'show', job);

  expect(first).toEqual({
    what: 'job',
    job: null,
    held_back: { entries: [], quarantined: [expect.objectContaining({ reason: 'unknown status' })] },
  });
  expect(items).toMatchObject([{ what: 'delivery', delivery: { outcome: 'quarantined', job_id: job } }]);
  const { code, screen } = await cli.onTerminal(['jobs', 'show', job]);
  expect(code).toBe(0);
  expect(screen).toContain(`${job} of default: it has no events yet`);
  expect(screen).toMatch(/delivery +quarantined/);
});

it('no line is wider than the terminal, whatever the id of a job', async ({ busy: relay }) => {
  const cli = await cliOf(relay, { role: 'viewer' });
  const job = `job_${'0123456789'.repeat(12)}`;
  await deliver(relay.webhooks, { job_id: job, status: 'exploded' });

  const { screen } = await cli.onTerminal(['jobs', 'show', job]);

  expect(screen.replaceAll('\n', '')).toContain(`${job} of default: it has no events yet`);
  const list = await cli.onTerminal(['quarantine', 'list']);
  expect(list.screen).toContain('…');
  expect(list.screen).toContain('\nids with "…" are shortened');
  const lines = `${screen}\n${list.screen}`.split('\n');
  expect(
    lines.filter((line) => line.length > 120 || (line.startsWith('ids with') && line.length > 80)),
  ).toEqual([]);
});

it('a job’s replays are in its story, with who asked for them and how long they took', async ({
  busy: relay,
}) => {
  const job = newJobId();
  await deliver(relay.webhooks, completed(job));
  await untilNonePending(relay.database);
  const cli = await cliOf(relay, { role: 'operator' });
  const [replay] = await cli.items('replay', `default:${job}:completed`, '--note', 'a test', '--yes');

  const items = await cli.items('jobs', 'show', job);

  expect(items.filter(({ what }) => what === 'replay')).toMatchObject([
    { replay: { id: replay?.['id'], state: 'finished', note: 'a test', queue: null } },
  ]);
  const { screen } = await cli.onTerminal(['jobs', 'show', job]);
  expect(screen).toMatch(/ replay +finished +[0-9a-f-]{36}, by/);
});

it('the story of a failed job says why, to those who may read bodies', async ({ story }) => {
  const viewer = await cliOf(story.relay, { role: 'viewer' });

  const [auditors, viewers] = [
    await story.cli.onTerminal(['jobs', 'show', story.lost]),
    await viewer.onTerminal(['jobs', 'show', story.lost]),
  ];

  expect(auditors.screen.replaceAll(/\s+/g, ' ')).toContain('INVALID_INPUT: the input file cannot be read');
  expect(viewers.screen).toContain('INVALID_INPUT');
  expect(viewers.screen).not.toContain('cannot be read');
  expect(only(await story.cli.items('log', '--action', 'body.read'), 'source', 'role')).toEqual([
    { source: 'default', role: 'auditor' },
  ]);
});

it('a job that nobody has heard of is exit code 1, and said', async ({ busy: relay }) => {
  const cli = await cliOf(relay, { role: 'viewer' });
  const { code, stdout, stderr } = await cli.run('jobs', 'show', 'job_nobody');
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^not_found: /);
});

describe('a job that is in another source only', () => {
  it('is exit code 1, and said: in which source it is, and how to show it', async ({ busy: relay }) => {
    const cli = await cliOf(relay, { role: 'viewer' });
    const [job, both, odd] = [newJobId(), newJobId(), newJobId()];
    await deliverTo(relay, 'team-a', completed(job));
    await deliverTo(relay, 'team-a', completed(both));
    await deliverTo(relay, 'team-b', completed(both));
    await deliverTo(relay, 'team-b', { job_id: odd, status: 'exploded' });

    expect(await cli.run('jobs', 'show', job)).toEqual({
      code: 1,
      stdout: '',
      stderr: `No job ${job} in source default. It is in: team-a.\nTry "tallyhook jobs show team-a ${job}".\n`,
    });
    expect((await cli.run('jobs', 'show', 'default', both)).stderr).toBe(
      `No job ${both} in source default. It is in: team-a, team-b.\nTry "tallyhook jobs show SOURCE ${both}".\n`,
    );
    expect((await cli.run('jobs', 'show', odd)).stderr).toContain('It is in: team-b.');
  });

  it('is not told of to a token that may not read that source', async ({ busy: relay }) => {
    const cli = await cliOf(relay, { role: 'viewer', sources: ['team-b', 'default'] });
    const limited = await cliOf(relay, { role: 'viewer', sources: ['team-b'] });
    const [hidden, own] = [newJobId(), newJobId()];
    await deliverTo(relay, 'team-a', completed(hidden));
    await deliverTo(relay, 'team-b', completed(own));

    const { code, stderr } = await cli.run('jobs', 'show', hidden);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^not_found: there is no such job\n$/);
    // The source that is left out is one that this token may not read.
    expect(await limited.run('jobs', 'show', own)).toEqual({
      code: 1,
      stdout: '',
      stderr: `Your token does not allow source default. Job ${own} is in: team-b.\nTry "tallyhook jobs show team-b ${own}".\n`,
    });
    expect((await limited.run('jobs', 'show', hidden)).stderr).toMatch(/^forbidden: /);
  });
});

it('lists are found by their filters, newest first', async ({ story }) => {
  const { cli, job, lost } = story;

  expect(only(await cli.items('jobs', 'list', '--state', 'failed'), 'job_id', 'state')).toEqual([
    { job_id: lost, state: 'failed' },
  ]);
  expect(only(await cli.items('deliveries', 'list', '--job', job), 'outcome')).toEqual(
    ['accepted', 'conflict', 'duplicate', 'accepted'].map((outcome) => ({ outcome })),
  );
  expect(await cli.items('deliveries', 'list', '--outcome', 'duplicate', '--from', '1h')).toHaveLength(1);
  expect(await cli.items('deliveries', 'list', '--to', '1h')).toEqual([]);
  expect(only(await cli.items('events', 'list', '--error-code', 'INVALID_INPUT'), 'id')).toEqual([
    { id: `default:${lost}:failed` },
  ]);
  expect(only(await cli.items('publications', 'list', '--result', 'returned'), 'event_id')).toEqual([
    { event_id: `default:${lost}:failed` },
  ]);
});

it('a list goes on past a page', async ({ busy: relay }) => {
  const cli = await cliOf(relay, { role: 'auditor' });
  await Promise.all(Array.from({ length: 230 }, (_, n) => deliver(relay.webhooks, progress(`many_${n}`, 5))));
  expect(await cli.items('events', 'list', '--job-prefix', 'many_')).toHaveLength(50);
  const all = await cli.items('events', 'list', '--job-prefix', 'many_', '--all');
  expect(new Set(all.map(({ id }) => id)).size).toBe(230);
  expect(await cli.items('events', 'list', '--job-prefix', 'many_', '--limit', '210')).toHaveLength(210);
});

it('a list without a match prints nothing, and says so aside', async ({ busy: relay }) => {
  const cli = await cliOf(relay, { role: 'viewer', sources: ['nobody'] });
  expect(await cli.run('deliveries', 'list')).toEqual({
    code: 0,
    stdout: '',
    stderr: 'no deliveries match\n',
  });
});

it("deliveries show has a delivery's headers, and its body byte for byte for those who may", async ({
  busy: relay,
}) => {
  const [auditor, viewer] = [await cliOf(relay, { role: 'auditor' }), await cliOf(relay, { role: 'viewer' })];
  const job = newJobId();
  const body = `{ "job_id":"${job}",  "status":"processing","progress_percentage": 7 }\n`;
  await deliver(relay.webhooks, body, { headers: { 'user-agent': 'a sender' } });
  const [delivery] = await viewer.items('deliveries', 'list', '--job', job);
  const id = String(delivery?.['id']);

  const [detail] = await viewer.items('deliveries', 'show', id);
  expect(detail).toMatchObject({
    id,
    outcome: 'accepted',
    headers: { 'user-agent': expect.anything() as unknown },
  });
  expect(await auditor.run('deliveries', 'show', id, '--body')).toEqual({
    code: 0,
    stdout: body,
    stderr: '',
  });
  const refused = await viewer.run('deliveries', 'show', id, '--body');
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(/^forbidden/);
  expect(only(await auditor.items('log', '--action', 'body.read'), 'action', 'subject')).toEqual([
    { action: 'body.read', subject: id },
  ]);
});

it('events show has its publications, and where it goes', async ({ story }) => {
  const id = `default:${story.lost}:failed`;
  const [event] = await story.cli.items<{ publications: Item[] }>('events', 'show', id);
  expect(event).toMatchObject({
    id,
    publication: 'returned',
    published_to: { routing_key: 'job.failed.default' },
    publications: [{ result: 'returned' }],
  });
});

it('stats counts by outcome, and sources knows who sent with which secret', async ({ story }) => {
  const { cli } = story;
  await waitFor(
    async () => {
      const steps = await cli.items<{ deliveries: Record<string, number> }>('stats', '--step', '1h');
      expect(steps.reduce((sum, { deliveries }) => sum + (deliveries['accepted'] ?? 0), 0)).toBe(3);
    },
    { timeout: 25_000, interval: 1_000 },
  );
  const [source] = await cli.items<{ secrets: Item[] }>('sources');
  expect(source).toMatchObject({ source: 'default', configured: true });
  expect(source?.secrets).toHaveLength(1);
  expect(source?.secrets[0]).toMatchObject({
    configured: true,
    last_matched_at: expect.any(String) as unknown,
  });
});

it('stats --total is the last hour as one line', async ({ story }) => {
  await waitFor(
    async () => {
      const [total] = await story.cli.items<{ deliveries: Item; publications: Item }>('stats', '--total');
      expect(total?.deliveries).toMatchObject({ accepted: 3, duplicate: 1, conflict: 1 });
      expect(total?.publications).toMatchObject({ confirmed: 2, returned: 1 });
    },
    { timeout: 25_000, interval: 1_000 },
  );
  const { screen } = await story.cli.onTerminal(['stats', '--step', '1h']);
  expect(screen).toMatch(/^deliveries\nat \(UTC\) +source +accepted/);
  expect(screen).toMatch(/total from \S+ \S+ to \S+ \S+\n/);
  expect(screen).toMatch(/\npublications +lag .* 2 confirmed, 1 returned/);
});

it('stats --waiting is the most that waited in each step, a line each', async ({ story }) => {
  const hour = new Date(Date.now() - 3 * 3_600_000).toISOString().slice(0, 13);
  await story.relay.database.query(
    `insert into waits values ('${hour}:01Z', 9, 1, 2, 3, 90), ('${hour}:02Z', 4, 0, 0, 3, 0)`,
  );
  const args = ['stats', '--waiting', '--from', `${hour}:00:00Z`, '--to', `${hour}:03:00Z`];
  expect(await story.cli.items(...args)).toEqual([
    { at: `${hour}:01:00.000Z`, pending: 9, returned: 1, parked: 2, quarantined: 3, oldest_pending_s: 90 },
    { at: `${hour}:02:00.000Z`, pending: 4, returned: 0, parked: 0, quarantined: 3, oldest_pending_s: 0 },
  ]);
  const { screen } = await story.cli.onTerminal(args);
  expect(screen).toMatch(/^at \(UTC\) +pending +oldest +returned +parked +quarantined\n/);
  expect(screen).toMatch(/:01 +9 +1 min 30 s +1 +2 +3\n/);
});

it('live prints what happens from now on, and ends on SIGINT with 0', async ({ busy: relay }) => {
  const cli = await cliOf(relay, { role: 'viewer' });
  await using live = startProcess(['live', '--events', 'deliveries', '--outcome', 'duplicate'], {
    env: cli.env,
  });
  const job = newJobId();
  // It does not say when it listens: the same is sent until the first is seen.
  await waitFor(
    async () => {
      await deliver(relay.webhooks, completed(job));
      expect(live.stdout()).not.toBe('');
    },
    { timeout: 10_000, interval: 200 },
  );
  live.child.kill('SIGINT');
  expect(await live.exited).toEqual({ code: 0, signal: null });
  expect(live.stderr()).toBe('');
  expect(
    new Set(
      parseLines(live.stdout()).map(({ event, outcome, job_id: id }) => [event, outcome, id].join(' ')),
    ),
  ).toEqual(new Set([`delivery duplicate ${job}`]));
});

describe('export', () => {
  it('writes a whole list as NDJSON or CSV, to standard output or a file', async ({ story }) => {
    await using folder = await createFolder();
    const { cli, job } = story;
    const out = folder.path('deliveries.csv');

    const printed = await cli.items('export', 'deliveries', '--job', job);
    const written = await cli.run('export', 'deliveries', '--job', job, '--format', 'csv', '--out', out);

    expect(printed.map(({ outcome }) => String(outcome)).toSorted()).toEqual([
      'accepted',
      'accepted',
      'conflict',
      'duplicate',
    ]);
    expect(written).toEqual({ code: 0, stdout: '', stderr: '' });
    const lines = (await readFile(out, 'utf8')).trim().split('\n');
    expect(lines).toHaveLength(5);
    expect(lines[0]).toContain('received_at');
    expect((await stat(out)).mode & 0o777).toBe(0o600);
    await expect(stat(`${out}.part`)).rejects.toThrow('ENOENT');
    expect(await cli.items('log', '--action', 'export')).toHaveLength(2);
  });

  it('that is refused leaves no file, and one that is cut no whole one: exit code 1', async ({
    busy: relay,
  }) => {
    await using folder = await createFolder();
    await using cut = await startReceiver((response) => {
      response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
      response.write('{"id":1}\n', () => response.destroy());
    });
    const viewer = await cliOf(relay, { role: 'viewer' });
    const unlucky: Cli = cliWith({
      TALLYHOOK_URL: `http://127.0.0.1:${cut.port}`,
      TALLYHOOK_TOKEN: 'thk_test_x',
    });
    const [refused, half] = [folder.path('refused'), folder.path('half')];

    expect(await viewer.run('export', 'jobs', '--out', refused)).toMatchObject({ code: 1 });
    const { code, stderr } = await unlucky.run('export', 'jobs', '--out', half);

    expect(code).toBe(1);
    expect(stderr).toContain('cut: the answer was cut before its end');
    await expect(stat(`${refused}.part`)).rejects.toThrow('ENOENT');
    await expect(stat(half)).rejects.toThrow('ENOENT');
    expect(await readFile(`${half}.part`, 'utf8')).toBe('{"id":1}\n');
  });
});

it('on a terminal there are tables, no wider than it is', async ({ story }) => {
  const { cli, job } = story;

  const list = await cli.onTerminal(['jobs', 'list']);
  const shown = await cli.onTerminal(['jobs', 'show', job]);
  const one = await cli.onTerminal(['events', 'show', `default:${job}:completed`]);

  expect([list.code, shown.code, one.code]).toEqual([0, 0, 0]);
  expect(list.screen).toMatch(/^first seen \(UTC\) +source +job +state/);
  expect(list.screen).toContain(job);
  expect(shown.screen).toContain(`${job} of default: completed, `);
  expect(shown.screen).toMatch(/\+\d+ ms +publication +confirmed/);
  expect(one.screen).toMatch(/on the bus +done/);
  expect(one.screen).toMatch(/routing key +job\.completed\.default/);
  const lines = `${list.screen}${shown.screen}${one.screen}`.split('\n');
  expect(lines.filter((line) => line.length > 120)).toEqual([]);
});
