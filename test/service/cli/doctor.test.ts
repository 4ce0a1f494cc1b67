// `tallyhook doctor` as a team uses it, against a real service.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Finding } from '../../../src/tools/doctor/finding.ts';
import { selfSignedCertificate } from '../../support/certificate.ts';
import { cliWith, parseLines, runCommand } from '../../support/cli.ts';
import { createFolder, type TestFolder } from '../../support/folder.ts';
import { startFront } from '../../support/front.ts';
import { runProcess } from '../../support/replica.ts';
import { SECRET } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

const SECOND = 'planted-signing-secret-0002';
const STRANGE = 'planted-signing-secret-0003';
const TEAM = 'planted-signing-secret-of-team-a';

let relay: TestService;
let folder: TestFolder;
beforeAll(async () => {
  folder = await createFolder();
  await folder.write('both', `${SECOND},${SECRET}\n`);
  await folder.write('one', SECRET);
  await folder.write('strange', STRANGE);
  await folder.write('team', TEAM);
  const sources = { 'team-a': { secrets: [TEAM] } };
  const file = await folder.write('sources.json', JSON.stringify(sources));
  relay = await startTestService({ env: { SIGNING_SECRETS: `${SECRET},${SECOND}`, SOURCES_FILE: file } });
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** Of the source `default`. */
const withSecret = (...files: string[]) => files.flatMap((file) => ['--secret-file', folder.path(file)]);

/** Piped. */
async function examine(
  args: readonly string[],
  env: Record<string, string> = {},
  run: typeof runCommand | typeof runProcess = runCommand,
) {
  const { code, stdout, stderr } = await run(['doctor', ...args], { env });
  if (/planted|a-test-secret/.test(stdout + stderr)) throw new Error('a secret is shown');
  return { code, stderr, findings: parseLines<Finding>(stdout) };
}

/** In a process of its own, since Node reads which authorities it trusts when it starts. */
const examineTrusting = (authority: string, args: readonly string[]) =>
  examine(args, { NODE_EXTRA_CA_CERTS: authority }, runProcess);

const resultsOf = (findings: readonly Finding[]) => findings.map(({ check, result }) => `${check} ${result}`);

async function countEvents(): Promise<number> {
  return (await relay.database.query('select from events')).length;
}

const USUAL = [
  'address ok',
  'tls ok',
  'signature ok',
  'forged ok',
  'unsigned ok',
  'bytes ok',
  'method ok',
  'encoding ok',
  'size ok',
  'time ok',
];

test('a sound endpoint passes all checks, with exit code 0, and no event is made', async () => {
  const { code, stderr, findings } = await examine([relay.webhooks, ...withSecret('one')]);

  expect(resultsOf(findings)).toEqual(USUAL);
  expect({ code, stderr }).toEqual({ code: 0, stderr: `checking ${relay.webhooks}\n10 ok\n` });
  expect(findings.find(({ check }) => check === 'size')?.details).toEqual({ limit_bytes: 262_144 });
  expect(await countEvents()).toBe(0);
  // As docs/senders.md says. Refusals are recorded after their answers.
  await waitFor(async () => {
    const rows = await relay.database.query(
      `select outcome, count(*)::int, bool_and(headers::jsonb ->> 'user-agent' like 'tallyhook-doctor/%') as named
       from deliveries group by outcome order by outcome`,
    );
    expect(rows).toEqual([
      { outcome: 'malformed', count: 8, named: true },
      { outcome: 'refused', count: 3, named: true },
      { outcome: 'unauthorized', count: 3, named: true },
    ]);
  });
});

test('without arguments it checks the relay on this machine, with the secret that send signs with', async () => {
  const env = { PORT: String(relay.service.port), SIGNING_SECRETS: SECRET };
  expect(await examine([], env)).toMatchObject({ code: 0, findings: { length: USUAL.length } });

  const team = { PORT: env.PORT, SOURCES_FILE: folder.path('sources.json') };
  expect(await examine(['--source', 'team-a'], team)).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('/webhooks/team-a\n'),
  });
});

test('of several secrets each that is refused is named, and the others are used for the rest', async () => {
  const { code, findings } = await examine([relay.webhooks, ...withSecret('strange', 'both')]);

  expect(code).toBe(1);
  expect(resultsOf(findings)).toEqual(
    USUAL.toSpliced(2, 1, 'signature failed', 'signature ok', 'signature ok'),
  );
  expect(findings[2]).toMatchObject({
    found: `refused with 401, with the secret in ${folder.path('strange')}`,
    mend: expect.stringContaining('another secret is accepted'),
  });
});

test('a wrong secret, and the path of another source, are a 401 with the causes that it can have', async () => {
  for (const args of [
    [relay.webhooks, ...withSecret('strange')],
    [relay.webhooks, ...withSecret('team')],
    [`${relay.webhooks}/team-b`, ...withSecret('team')],
  ]) {
    const { code, findings, stderr } = await examine(args);

    expect({ args, code }).toEqual({ args, code: 1 });
    expect(findings[2]).toMatchObject({ check: 'signature', result: 'failed' });
    for (const word of [
      'the secret is not',
      'another source',
      'a proxy changes',
      'deliveries list',
      'tallyhook verify',
    ]) {
      expect(findings[2]?.mend).toContain(word);
    }
    expect(stderr).toContain('4 ok, 1 failed; not checked: bytes, method, encoding, size, time\n');
  }
});

describe('--with-event', () => {
  test('makes one event, and finds its redelivery to be a duplicate', async () => {
    const before = await countEvents();
    const { code, findings } = await examine([
      `${relay.webhooks}/team-a`,
      ...withSecret('team'),
      '--with-event',
      '--yes',
    ]);

    expect({ code, results: resultsOf(findings) }).toEqual({
      code: 0,
      results: [...USUAL, 'event ok', 'redelivery ok'],
    });
    const [event] = findings.filter(({ check }) => check === 'event');
    const { job_id: job, event_id: id } = event?.details ?? {};
    expect(id).toBe(`team-a:${String(job)}:failed`);
    expect(job).toMatch(/^doctor-[\da-f]{12}$/);
    expect(event?.found).toContain(`Ignore the job ${String(job)}`);
    expect(await countEvents()).toBe(before + 1);
    const rows = await relay.database.query('select outcome from deliveries where job_id = $1 order by id', [
      job,
    ]);
    expect(rows).toEqual([{ outcome: 'accepted' }, { outcome: 'duplicate' }]);
  });

  test('without a terminal and without --yes is wrong use, and nothing is sent', async () => {
    const { code, stderr, findings } = await examine([relay.webhooks, ...withSecret('both'), '--with-event']);

    expect({ code, findings }).toEqual({ code: 2, findings: [] });
    expect(stderr).toContain('--with-event needs --yes');
  });

  test('asks first: with "n" there is no event, with "y" there is', async () => {
    const cli = cliWith({});
    const args = ['doctor', relay.webhooks, ...withSecret('both'), '--with-event'];
    const before = await countEvents();

    const declined = await cli.onTerminal(args, 'n\n');
    expect(declined).toMatchObject({
      code: 0,
      screen: expect.stringMatching(/This makes one event for the job doctor-/),
    });
    expect(declined.screen).toContain('not checked: event, redelivery');
    expect(await countEvents()).toBe(before);

    const agreed = await cli.onTerminal(args, 'y\n');
    expect(agreed).toMatchObject({
      code: 0,
      screen: expect.stringMatching(/^ok +redelivery +found to be a duplicate/m),
    });
    expect(await countEvents()).toBe(before + 1);
  });
});

test('on a terminal there is a line a check, with --json an object', async () => {
  const cli = cliWith({});
  const args = ['doctor', relay.webhooks, ...withSecret('strange')];

  const { code, screen } = await cli.onTerminal(args);
  expect(code).toBe(1);
  expect(screen).toMatch(/^ok +address +connects to 127\.0\.0\.1$/m);
  expect(screen).toMatch(/^failed +signature +refused with 401.*$/m);
  expect(screen).toMatch(/^ +to mend it: one of these:$/m);

  const json = await cli.onTerminal([...args, '--json']);
  expect(json.screen).toContain('\n{"check":"address","result":"ok"');
});

describe('TLS', () => {
  const endings = [
    { days: 1, results: ['address ok', 'tls warning'], code: 0 },
    { days: 30, results: ['address ok', 'tls ok'], code: 0 },
    { days: -1, results: ['address ok', 'tls failed', 'signature skipped'], code: 1 },
  ];

  test.for(endings)(
    'a trusted certificate with $days days left: $results',
    async ({ days, results, code }) => {
      const certificate = selfSignedCertificate({ days });
      const authority = await folder.write(`authority${days}.pem`, certificate.cert);
      await using front = await startFront(relay.intake, { certificate });
      const args = [front.url, ...withSecret('both')];

      const found = await examineTrusting(authority, args);

      expect(found.code).toBe(code);
      expect(resultsOf(found.findings).slice(0, results.length)).toEqual(results);
      expect(front.received.length > 0).toBe(code === 0);
    },
  );

  test('nothing is sent where the certificate is for other names, or is not trusted', async () => {
    const certificate = selfSignedCertificate({ hosts: ['localhost'] });
    const authority = await folder.write('authority.pem', certificate.cert);
    await using front = await startFront(relay.intake, { certificate });
    const args = [front.url, ...withSecret('both')];

    const strange = await examine(args);
    const misnamed = await examineTrusting(authority, args);

    expect([strange.code, misnamed.code]).toEqual([1, 1]);
    expect(strange.findings[1]).toMatchObject({
      result: 'failed',
      found: expect.stringContaining('signed by itself'),
    });
    expect(misnamed.findings[1]).toMatchObject({
      result: 'failed',
      found: 'the certificate is not for 127.0.0.1, but for DNS:localhost',
    });
    expect(front.received).toEqual([]);
  });
});

test.for([
  [['ftp://127.0.0.1/webhooks'], 'must be an http or https URL'],
  [['http://user:password@127.0.0.1/webhooks'], 'without user'],
  [['not a url'], 'must be an http or https URL'],
  [['http://127.0.0.1/', 'http://127.0.0.1/'], 'unexpected argument'],
  [['http://127.0.0.1/', '--secret-file', 'no-such-file'], 'there is no file no-such-file'],
  [
    ['http://127.0.0.1/'],
    '--secret-file is missing, and there is no secret to sign with: set SIGNING_SECRETS or SIGNING_SECRETS_FILE, or start',
  ],
  [['http://127.0.0.1/', '--secret-file', 'x', '--source', 'y'], 'leave out --secret-file'],
  [['--timeout', '0'], '--timeout takes a number from 0.1 to 60'],
  [['--timeout', '2m'], '--timeout takes a number from 0.1 to 60'],
  [['--yes'], '--with-event, which is missing'],
] as const)('%j is wrong use: exit code 2', async ([args, words]) => {
  const env = args.some((arg) => arg.startsWith('--')) ? { SIGNING_SECRETS: SECRET } : {};
  // The environment of a local run would have a secret.
  const { code, stderr, findings } = await examine(args, {
    SOURCES_FILE: folder.path('sources.json'),
    ...env,
  });

  expect({ code, findings }).toEqual({ code: 2, findings: [] });
  expect(stderr).toContain(words);
  expect(stderr).not.toContain('password');
});
