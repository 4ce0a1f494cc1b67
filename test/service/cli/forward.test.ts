// `tallyhook forward` between a real service and a handler on a real socket.

import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type Cli, cliOf, cliWith, parseLines, type RunningCommand } from '../../support/cli.ts';
import { createFolder, type TestFolder } from '../../support/folder.ts';
import { newToken } from '../../support/operators.ts';
import { startProxy } from '../../support/proxy.ts';
import { answer, hang, type Receiver, startReceiver } from '../../support/receiver.ts';
import { startProcess } from '../../support/replica.ts';
import { completed, deliver, failed, newJobId, progress, SECRET, sign } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

const PATIENCE = { timeout: 15_000, interval: 50 };
const NEW_SECRET = 'the-secret-of-the-handler-only';

type Printed = {
  readonly result: string;
  readonly reason: string | null;
  readonly answer: { status: number; body: string } | null;
  readonly waiting: number;
  readonly delivery: { id: string; job_id: string | null; outcome: string; source: string };
};

let relay: TestService;
let folder: TestFolder;
let secretFile: string;
let auditor: Cli;

beforeAll(async () => {
  folder = await createFolder();
  secretFile = await folder.write('secret', `${NEW_SECRET}\n`);
  const sources = JSON.stringify({ 'team-a': { secrets: ['a-secret-of-team-a-0001'] } });
  relay = await startTestService({ env: { SOURCES_FILE: await folder.write('sources.json', sources) } });
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});
beforeEach(async () => {
  auditor = await cliOf(relay, { role: 'auditor' });
});

type Started = Pick<RunningCommand, 'stderr'> & AsyncDisposable;

/** Resolves when it listens. */
async function forward(url: string, ...options: string[]): Promise<RunningCommand> {
  return listening(auditor.start('forward', url, '--secret-file', secretFile, ...options));
}

async function listening<Running extends Started>(command: Running): Promise<Running> {
  onTestFinished(() => command[Symbol.asyncDispose]());
  await waitFor(() => expect(command.stderr()).toContain('listening\n'), PATIENCE);
  return command;
}

const printedBy = (command: Pick<RunningCommand, 'stdout'>) => parseLines<Printed>(command.stdout());
const jobsAt = ({ received }: Receiver) => received.map(({ said }) => said['job_id']);

test('the handler gets the same bytes, signed with the new secret, and its answer is shown', async () => {
  const job = newJobId();
  await using handler = await startReceiver((response) => void response.writeHead(201).end('thanks\u0007'));
  const args = ['forward', handler.url, '--secret-file', secretFile];
  const forwarding = await listening(startProcess(args, { env: auditor.env }));
  const body = ` {"job_id":"${job}",\r\n\t"status": "processing","progress_percentage":7e0, "note":"Grüße \\u0041 😀 "}\n`;
  const type = 'application/json; charset=UTF-8';
  await deliver(relay.webhooks, body, { headers: { 'content-type': type } });

  const [received] = await handler.untilReceived(1);
  await waitFor(() => expect(printedBy(forwarding)).toHaveLength(1), PATIENCE);
  const [printed] = printedBy(forwarding);

  expect(received?.body.toString('utf8')).toBe(body);
  expect(received?.headers).toMatchObject({
    'content-type': type,
    'x-service-signature': sign(body, NEW_SECRET),
    'x-request-id': printed?.delivery.id,
    'content-length': String(Buffer.byteLength(body)),
  });
  expect(received?.headers).not.toHaveProperty('authorization');
  expect(printed).toMatchObject({
    result: 'ok',
    reason: null,
    answer: { status: 201, body: 'thanks\u0007' },
    delivery: { job_id: job, outcome: 'accepted' },
  });
  expect(forwarding.stdout()).not.toContain('\u0007');

  forwarding.child.kill('SIGINT');
  expect(await forwarding.exited).toEqual({ code: 0, signal: null });
  expect(forwarding.stderr()).toBe(
    `forwarding to ${handler.url}, signed with the secret of --secret-file\nlistening\n` +
      '1 delivery forwarded, 0 of them failed; 0 not forwarded\n',
  );
  expect(forwarding.stdout() + forwarding.stderr()).not.toContain(NEW_SECRET);
});

test('whatever is authentic and kept is forwarded; a duplicate and a refused one are shown, and say why they are not', async () => {
  await using handler = await startReceiver();
  const forwarding = await forward(handler.url);
  const job = newJobId();
  await deliver(relay.webhooks, completed(job));
  await deliver(relay.webhooks, completed(job));
  await deliver(relay.webhooks, completed(job, { cost_cents: 1 }));
  await deliver(relay.webhooks, { job_id: job, status: 'exploded' });
  await deliver(relay.webhooks, Buffer.from('[]'), { headers: { 'content-type': undefined } });
  await deliver(relay.webhooks, completed(job), { secret: 'somebody-else-has-this-secret' });

  await waitFor(() => expect(printedBy(forwarding)).toHaveLength(6), PATIENCE);
  const outcomes = printedBy(forwarding).map(({ delivery, result, reason }) => [
    delivery.outcome,
    result,
    reason,
  ]);
  expect(new Set(outcomes)).toEqual(
    new Set([
      ['accepted', 'ok', null],
      ['duplicate', 'not_forwarded', 'its body is not kept'],
      ['conflict', 'ok', null],
      ['quarantined', 'ok', null],
      ['malformed', 'ok', null],
      [
        'unauthorized',
        'not_forwarded',
        // Under load, that likely mistakes were not tried stands behind it.
        expect.stringMatching(/^its body is not kept; the signature does not match/),
      ],
    ]),
  );
  expect(handler.received).toHaveLength(4);
  expect(handler.received.find(({ body }) => body.toString() === '[]')?.headers).not.toHaveProperty(
    'content-type',
  );
});

test('--outcome, --kind, --job and --source choose what is forwarded', async () => {
  await using handler = await startReceiver();
  const [job, other] = [newJobId(), newJobId()];
  const runs = await Promise.all([
    forward(handler.url, '--outcome', 'conflict,quarantined'),
    forward(handler.url, '--outcome', 'conflict'),
    forward(handler.url, '--kind', 'failed'),
    forward(handler.url, '--job', other),
    forward(handler.url, '--source', 'team-a'),
  ]);
  await deliver(relay.webhooks, failed(job));
  await deliver(relay.webhooks, failed(job, { error_code: 'OTHER' }));
  await deliver(relay.webhooks, { job_id: job, status: 'exploded' });
  await deliver(relay.webhooks, completed(other));
  await deliver(`${relay.webhooks}/team-a`, completed(job), { secret: 'a-secret-of-team-a-0001' });

  const expected = [
    ['conflict', 'quarantined'],
    ['conflict'],
    ['accepted', 'conflict'],
    ['accepted'],
    ['accepted'],
  ];
  await waitFor(
    () => expect(runs.map((run) => printedBy(run).map(({ delivery }) => delivery.outcome))).toEqual(expected),
    PATIENCE,
  );
});

test('deliveries go one after the other, in their order, and it is shown how many wait', async () => {
  await using handler = await startReceiver((response) => {
    setTimeout(() => response.end(), 40);
  });
  const forwarding = await forward(handler.url);
  const job = newJobId();
  const percents = Array.from({ length: 30 }, (_, index) => index * 3);
  for (const percent of percents) await deliver(relay.webhooks, progress(job, percent));

  await waitFor(() => expect(printedBy(forwarding)).toHaveLength(percents.length), PATIENCE);
  expect(handler.received.map(({ said }) => said['progress_percentage'])).toEqual(percents);
  expect(handler.mostAtOnce()).toBe(1);
  expect(Math.max(...printedBy(forwarding).map(({ waiting }) => waiting))).toBeGreaterThan(5);
  expect(printedBy(forwarding).at(-1)?.waiting).toBe(0);
});

test('a handler that is down, answers an error or redirects has failed; nothing is tried again and it goes on', async () => {
  await using elsewhere = await startReceiver();
  const nobody = await startReceiver();
  await nobody[Symbol.asyncDispose]();
  const down = await forward(nobody.url);
  await using handler = await startReceiver((response, _received, index) => {
    if (index === 0) response.writeHead(500).end('broken');
    else if (index === 1) response.writeHead(307, { location: elsewhere.url }).end();
    else if (index === 2) response.destroy();
    else response.end();
  });
  const forwarding = await forward(handler.url);
  for (const _ of [1, 2, 3, 4]) await deliver(relay.webhooks, completed(newJobId()));

  await waitFor(() => expect(printedBy(forwarding)).toHaveLength(4), PATIENCE);
  expect(printedBy(forwarding)).toMatchObject([
    { result: 'failed', answer: { status: 500, body: 'broken' } },
    { result: 'failed', answer: { status: 307 } },
    { result: 'no_answer', answer: null, reason: 'the connection was closed without an answer' },
    { result: 'ok' },
  ]);
  expect(elsewhere.received).toHaveLength(0);
  expect(handler.received).toHaveLength(4);
  await waitFor(() => expect(printedBy(down)).toHaveLength(4), PATIENCE);
  const reasons = printedBy(down).map(({ result, reason }) => [result, reason]);
  expect(new Set(reasons.flat())).toEqual(
    new Set(['no_answer', `nothing listens at 127.0.0.1:${nobody.port}`]),
  );

  forwarding.signal('SIGTERM');
  expect(await forwarding.exited).toBe(0);
  expect(forwarding.stderr()).toContain('4 deliveries forwarded, 3 of them failed; 0 not forwarded\n');
});

test('a handler that does not answer has 10 s; then the next delivery goes', async () => {
  await using handler = await startReceiver((response, received, index) =>
    index === 0 ? hang(response, received, index) : answer(204)(response, received, index),
  );
  const forwarding = await forward(handler.url);
  for (const _ of [1, 2]) await deliver(relay.webhooks, completed(newJobId()));

  await waitFor(() => expect(printedBy(forwarding)).toHaveLength(2), { ...PATIENCE, timeout: 20_000 });
  expect(printedBy(forwarding)).toMatchObject([
    { result: 'no_answer', reason: 'no whole answer within 10 s', waiting: 1 },
    { result: 'ok', answer: { status: 204 } },
  ]);
});

test('Ctrl-C ends it at once, also while the handler is thinking', async () => {
  await using handler = await startReceiver(hang);
  const forwarding = await forward(handler.url);
  await deliver(relay.webhooks, completed(newJobId()));
  await handler.untilReceived(1);
  forwarding.signal('SIGINT');
  expect(await forwarding.exited).toBe(0);
  expect(forwarding.stdout()).toBe('');
});

test('Ctrl-C says how many deliveries it leaves: the one that the handler has, and those that wait', async () => {
  await using handler = await startReceiver(hang);
  await using other = await startReceiver();
  const [forwarding, witness] = [await forward(handler.url), await forward(other.url)];
  for (const _ of [1, 2, 3]) await deliver(relay.webhooks, completed(newJobId()));
  await handler.untilReceived(1);
  await waitFor(() => expect(printedBy(witness)).toHaveLength(3), PATIENCE);
  forwarding.signal('SIGINT');
  expect(await forwarding.exited).toBe(0);
  expect(forwarding.stderr()).toMatch(
    /0 deliveries forwarded, 0 of them failed; 0 not forwarded; stopped with 1 in progress and [12] waiting\n$/,
  );
});

test('a forward to the relay itself says so, and ends after one round', async () => {
  const { value } = await newToken(relay.database, { role: 'auditor' });
  const env = { TALLYHOOK_URL: relay.operators, TALLYHOOK_TOKEN: value, PORT: new URL(relay.webhooks).port };
  const own = await folder.write('own-secret', SECRET);
  const forwarding = await listening(
    cliWith(env).start('forward', relay.webhooks, '--secret-file', own, '--outcome', 'quarantined'),
  );
  expect(forwarding.stderr()).toContain('this URL is the relay itself');
  const job = newJobId();
  await deliver(relay.webhooks, { job_id: job, status: 'exploded' });

  await waitFor(() => expect(printedBy(forwarding)).toHaveLength(2), PATIENCE);
  expect(printedBy(forwarding)).toMatchObject([
    { result: 'ok', delivery: { job_id: job } },
    { result: 'not_forwarded', reason: 'it came from this forward', delivery: { job_id: job } },
  ]);
  // What another one sends with an X-Request-Id of its own is no loop.
  await deliver(
    relay.webhooks,
    { job_id: newJobId(), status: 'exploded' },
    { headers: { 'x-request-id': 'of-the-sender' } },
  );
  await waitFor(() => expect(printedBy(forwarding)).toHaveLength(4), PATIENCE);
  expect(printedBy(forwarding)[2]).toMatchObject({ result: 'ok' });
});

describe('who may', () => {
  test('a role that may not read bodies is told which one may, before anything arrives', async () => {
    const viewer = await cliOf(relay, { role: 'viewer' });
    const { code, stdout, stderr } = await viewer.run(
      'forward',
      'http://127.0.0.1:1',
      '--secret-file',
      secretFile,
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('the token needs the role auditor, operator or admin\n');
  });

  test('a token that is limited to a source gets the deliveries of that source alone', async () => {
    await using handler = await startReceiver();
    const limited = await cliOf(relay, { role: 'auditor', sources: ['team-a'] });
    const forwarding = await listening(limited.start('forward', handler.url, '--secret-file', secretFile));
    const [ours, theirs] = [newJobId(), newJobId()];
    await deliver(relay.webhooks, completed(theirs));
    await deliver(`${relay.webhooks}/team-a`, completed(ours), { secret: 'a-secret-of-team-a-0001' });
    await handler.untilReceived(1);
    expect(jobsAt(handler)).toEqual([ours]);
    expect(forwarding.stderr()).not.toMatch(/\b403\b/);

    const other = await limited.run(
      'forward',
      handler.url,
      '--secret-file',
      secretFile,
      '--source',
      'default',
    );
    expect(other).toMatchObject({ code: 1, stdout: '' });
    expect(other.stderr).toContain('forbidden');
  });

  test('each body that is read is in the operator log', async () => {
    const job = newJobId();
    await using handler = await startReceiver();
    await forward(handler.url, '--job', job);
    await deliver(relay.webhooks, completed(job));
    const [received] = await handler.untilReceived(1);
    const subject = String(received?.headers['x-request-id']);
    expect(await auditor.items('log', '--subject', subject)).toMatchObject([{ action: 'body.read' }]);
  });
});

describe('nothing is lost, and nothing comes twice', () => {
  test('while the service cannot be reached', async () => {
    await using handler = await startReceiver();
    await using proxy = await startProxy(relay.operators, { defaultPort: 80 });
    const { value } = await newToken(relay.database, { role: 'auditor' });
    const cli = cliWith({ TALLYHOOK_URL: `http://127.0.0.1:${proxy.port}`, TALLYHOOK_TOKEN: value });
    const forwarding = await listening(cli.start('forward', handler.url, '--secret-file', secretFile));
    const jobs = Array.from({ length: 9 }, newJobId);
    const send = async (from: number, to: number) => {
      for (const job of jobs.slice(from, to)) await deliver(relay.webhooks, completed(job));
    };

    await send(0, 3);
    await handler.untilReceived(3);
    proxy.refuse();
    proxy.cut();
    await send(3, 6);
    await waitFor(() => expect(forwarding.stderr()).toContain('was lost: connecting again\n'), PATIENCE);
    proxy.heal();
    await handler.untilReceived(6);
    // At once again: what has come by the stream before is in the list as well.
    await waitFor(() => expect(forwarding.stderr()).toContain('connected again'), PATIENCE);
    proxy.cut();
    await send(6, 9);

    await waitFor(() => expect(printedBy(forwarding)).toHaveLength(9), PATIENCE);
    expect(jobsAt(handler)).toEqual(jobs);
  });

  test('when more arrives in a second than the live stream tells', async () => {
    const forwarding = await forward('http://127.0.0.1:1/');
    await relay.database.query(
      `insert into deliveries (id, received_at, source, outcome, http_status, path, headers, reason)
       select gen_random_uuid(), clock_timestamp(), 'default', 'refused', 413, '/webhooks', '{}', n::text
       from generate_series(1, 2500) as n`,
    );
    await waitFor(() => expect(printedBy(forwarding)).toHaveLength(2500), PATIENCE);
    expect(new Set(printedBy(forwarding).map(({ delivery }) => delivery.id)).size).toBe(2500);
  });
});

test.for([
  [[], 'the URL of your handler is missing'],
  [['localhost:3000/webhooks'], 'forward takes an http or https URL'],
  [['ftp://localhost/'], 'forward takes an http or https URL'],
  [['http://user:a-password@localhost/'], 'forward takes an http or https URL'],
  [
    ['http://localhost/', '--outcome', 'duplicate'],
    '--outcome takes accepted, conflict, quarantined, malformed',
  ],
  [['http://localhost/', '--secret-file', '/nowhere'], '--secret-file: there is no file /nowhere'],
  [['http://localhost/', '--secret-file', '/'], '--secret-file: / is a folder'],
  [['http://localhost/', '--secret-file', '/dev/null'], '--secret-file is empty'],
  [['http://localhost/'], 'no secret to sign with'],
  [['http://localhost/', 'http://localhost/'], 'unexpected argument "http://localhost/"'],
] as const)('%j is wrong usage: exit code 2, and a line that says what', async ([args, words]) => {
  const { code, stdout, stderr } = await auditor.run('forward', ...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(words);
  expect(stderr).not.toContain('a-password');
});

test('without --secret-file it signs with the secret that send uses', async () => {
  await using handler = await startReceiver();
  const { value } = await newToken(relay.database, { role: 'auditor' });
  const secret = 'the-first-secret-of-several';
  const cli = cliWith({
    TALLYHOOK_URL: relay.operators,
    TALLYHOOK_TOKEN: value,
    SIGNING_SECRETS: `${secret},another-secret-of-enough-bytes`,
  });
  const forwarding = await listening(cli.start('forward', handler.url));
  await deliver(relay.webhooks, completed(newJobId()));
  const [received] = await handler.untilReceived(1);
  expect(received?.headers['x-service-signature']).toBe(sign(received?.body ?? '', secret));
  expect(forwarding.stderr()).toContain(
    'signed with the secret of each delivery\'s source that "send" uses\n',
  );
  expect(forwarding.stderr()).not.toContain(secret);
});

const writeSources = (name: string, sources: object) => folder.write(name, JSON.stringify(sources));

test('without --secret-file each delivery is signed with a secret of its own source, and it is said where none is known', async () => {
  await using handler = await startReceiver();
  const { value } = await newToken(relay.database, { role: 'auditor' });
  const secrets = { default: 'the-secret-of-default-01', 'team-a': 'a-local-secret-of-team-a' };
  const known = await writeSources('known.json', {
    default: { secrets: [secrets.default] },
    'team-a': { secrets: [secrets['team-a'], 'an-older-one-of-team-a-01'] },
  });
  const unknown = await writeSources('unknown.json', { default: { secrets: [secrets.default] } });
  const env = { TALLYHOOK_URL: relay.operators, TALLYHOOK_TOKEN: value };
  const job = newJobId();

  for (const [SOURCES_FILE, secret, signedAs] of [
    [known, secrets['team-a'], null],
    [unknown, secrets.default, 'default'],
  ] as const) {
    const before = handler.received.length;
    const forwarding = await listening(cliWith({ ...env, SOURCES_FILE }).start('forward', handler.url));
    await deliver(`${relay.webhooks}/team-a`, progress(job, before), { secret: 'a-secret-of-team-a-0001' });
    await deliver(relay.webhooks, completed(newJobId()));
    await waitFor(() => expect(printedBy(forwarding)).toHaveLength(2), PATIENCE);
    const [ofTeam, ofDefault] = handler.received.slice(before);
    expect(ofTeam?.headers['x-service-signature']).toBe(sign(ofTeam?.body ?? '', secret));
    expect(ofDefault?.headers['x-service-signature']).toBe(sign(ofDefault?.body ?? '', secrets.default));
    expect(printedBy(forwarding)).toMatchObject([{ signed_as: signedAs }, { signed_as: null }]);
    forwarding.signal('SIGINT');
    await forwarding.exited;
  }
});
