// Terminal controls and direction marks in what a sender wrote, wherever the command line shows it.

import { readFile } from 'node:fs/promises';
import { beforeAll, afterAll, expect, test } from 'vitest';
import { amqpUrl, listen, newExchange } from '../../support/bus.ts';
import { type Cli, cliOf, cliWith, parseLines, startCommand } from '../../support/cli.ts';
import { createFolder } from '../../support/folder.ts';
import { operators } from '../../support/operators.ts';
import { startReceiver } from '../../support/receiver.ts';
import { deliver, failed, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

type Item = Record<string, unknown>;

/** Clears a screen, turns the direction, deletes, breaks a line. */
const TRICKS = '\u009b2J\u009b31m\u202e\u007f\u0085\u2028';
/** A status may have no controls, and this is none: a line separator. */
const STATUS = 's\u2028t';
const INVISIBLE = /[^\P{C}\n]|[\p{Zl}\p{Zp}]/u;

const exchange = newExchange();
const job = newJobId();
let bus: Awaited<ReturnType<typeof listen>>;
let relay: TestService;
let cli: Cli;
let quarantined: string;
beforeAll(async () => {
  bus = await listen(exchange);
  relay = await startTestService({ exchange });
  await deliver(relay.webhooks, failed(job, { error_code: `E\u2028`, error_message: TRICKS }));
  await deliver(
    relay.webhooks,
    { job_id: job, status: STATUS, [`f${TRICKS}`]: 1 },
    {
      // C1 controls may stand in a header (RFC 9110, obs-text).
      headers: { 'user-agent': 'a\u009b2J' },
    },
  );
  await bus.received(1);
  cli = await cliOf(relay, { role: 'operator' });
  const [found] = await cli.items('quarantine', 'list');
  quarantined = String(found?.['id']);
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  await bus[Symbol.asyncDispose]();
});

const commands = () => [
  ['deliveries', 'list'],
  ['deliveries', 'show', quarantined],
  ['quarantine', 'list'],
  ['quarantine', 'release', quarantined],
  ['events', 'list'],
  ['events', 'show', `default:${job}:failed`],
  ['publications', 'list'],
  ['jobs', 'show', job],
  ['sources'],
  ['export', 'deliveries'],
  ['export', 'quarantine'],
  ['export', 'quarantine', '--bodies'],
];

test('when piped, they are escaped in JSON with the same value', async () => {
  for (const command of commands()) {
    const { stdout, stderr } = await cli.run(...command);
    expect({ command, unseen: INVISIBLE.exec(stdout + stderr) }).toEqual({ command, unseen: null });
    expect(parseLines(stdout).length).toBeGreaterThan(0);
  }
  const api = await operators(relay, { role: 'viewer' });
  const told = await api.get<{ items: Item[] }>('/deliveries');
  expect(told.text).toMatch(INVISIBLE);
  expect(await cli.items('deliveries', 'list')).toEqual(told.body.items);
  expect(await cli.items('export', 'deliveries')).toEqual(told.body.items);
});

test('on a terminal, they are marks', async () => {
  const shown = [
    ...commands(),
    ['export', 'deliveries', '--format', 'csv'],
    ['deliveries', 'show', quarantined, '--body'],
  ];
  for (const command of shown) {
    const { screen } = await cli.onTerminal(command);
    expect({ command, unseen: INVISIBLE.exec(screen) }).toEqual({ command, unseen: null });
  }
  const { screen } = await cli.onTerminal(['deliveries', 'show', quarantined]);
  expect(screen).toContain('s�t');
  expect(screen).toContain('a�2J');
});

test('a body, and a list as CSV, are byte for byte for the program that asks for them', async () => {
  await using folder = await createFolder();
  const file = folder.path('quarantine.csv');

  const body = await cli.run('deliveries', 'show', quarantined, '--body');
  const csv = await cli.run('export', 'quarantine', '--format', 'csv');
  await cli.run('export', 'quarantine', '--format', 'csv', '--out', file);

  expect(JSON.parse(body.stdout)).toEqual({ job_id: job, status: STATUS, [`f${TRICKS}`]: 1 });
  expect(body.stdout).toContain(TRICKS);
  const [exported] = await cli.items('export', 'quarantine', '--bodies');
  expect(exported).toMatchObject({ body: body.stdout, body_base64: null });
  expect(csv.stdout).toContain(STATUS);
  expect(await readFile(file, 'utf8')).toBe(csv.stdout);
});

test('tail and live escape them, too', async () => {
  const queue = `${exchange}.tail`;
  await bus.channel.assertQueue(queue, { durable: true });
  await bus.channel.bindQueue(queue, exchange, 'job.#');
  await using tail = startCommand(['tail', '--queue', queue], {
    env: { AMQP_URL: amqpUrl(), AMQP_EXCHANGE: exchange },
  });
  await using live = cli.start('live');
  const all = () => tail.stdout() + live.stdout();
  try {
    await waitFor(
      async () => {
        await deliver(relay.webhooks, failed(newJobId(), { error_code: `E\u2028`, error_message: TRICKS }));
        await deliver(relay.webhooks, { job_id: newJobId(), status: STATUS });
        expect([tail, live].map(({ stdout }) => stdout().includes('\\u2028'))).toEqual([true, true]);
      },
      { timeout: 10_000, interval: 200 },
    );
  } finally {
    await bus.channel.deleteQueue(queue);
  }
  expect(all()).not.toMatch(INVISIBLE);
  const [event] = parseLines<{ data: Item }>(tail.stdout());
  expect(event?.data['error_message']).toBe(TRICKS);
});

test('what a stranger answers in our service’s place is marked', async () => {
  await using stranger = await startReceiver((response) => {
    response.writeHead(400, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ error: `e${TRICKS}`, message: `\u001b[2J${TRICKS}` }));
  });
  const lost = cliWith({ TALLYHOOK_URL: `http://127.0.0.1:${stranger.port}`, TALLYHOOK_TOKEN: 'thk_test_x' });

  const { stdout, stderr } = await lost.run('jobs', 'list');
  const sent = await cli.run('send', '--url', `http://127.0.0.1:${stranger.port}/`);

  expect(stdout).toBe('');
  expect(stderr).toContain('�2J');
  expect(stderr + sent.stdout + sent.stderr).not.toMatch(INVISIBLE);
});
