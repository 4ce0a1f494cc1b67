// From what an operator has in hand to what shows it, what a conflict contradicts, and which replicas run.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { version } from '../../../src/base/version.ts';
import { type Cli, cliOf } from '../../support/cli.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

let relay: TestService;
let cli: Cli;
const job = newJobId();
let conflict: string;

beforeAll(async () => {
  relay = await startTestService();
  cli = await cliOf(relay, { role: 'auditor' });
  await deliver(relay.webhooks, completed(job));
  await deliver(relay.webhooks, completed(job, { cost_cents: 7, note: '\u202e<b>' }));
  await deliver(relay.webhooks, completed("it's"));
  const [row] = await relay.database.query<{ id: string }>(
    `select id from deliveries where outcome = 'conflict'`,
  );
  conflict = row?.id ?? '';
});
afterAll(() => relay[Symbol.asyncDispose]());

test('find leads to the command that shows what was found', async () => {
  const leads = async (text: string) =>
    (await cli.items<{ what: string; command: string }>('find', text)).map(({ command }) => command);
  expect(await leads(job)).toEqual([`tallyhook jobs show default ${job}`]);
  expect(await leads(`default:${job}:completed`)).toEqual([`tallyhook events show default:${job}:completed`]);
  expect(await leads(conflict)).toEqual([`tallyhook deliveries show ${conflict}`]);
  expect(await leads('default')).toEqual(['tallyhook deliveries list --source default']);
  expect(await leads("it'")).toEqual([`tallyhook jobs show default 'it'\\''s'`]);
  expect(await cli.items('jobs', 'show', 'default', "it's")).not.toEqual([]);
});

test('find takes the middle of a job’s id, whatever its case', async () => {
  const found = await cli.run('find', job.slice(1, -1).toUpperCase());
  expect(found.stdout).toContain(`"command":"tallyhook jobs show default ${job}"`);
  expect(found.stderr).toBe('searched every job’s id (2 jobs)\n');
});

test('find without a result says so and fails', async () => {
  expect(await cli.run('find', 'nothing')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/nothing has this id[^]*searched every job’s id \(2 jobs\)\n/),
  });
  expect(await cli.run('find')).toMatchObject({ code: 2 });
});

test('deliveries diff gives the API’s answer when piped', async () => {
  const [found] = await cli.items<{ differences: object[] }>('deliveries', 'diff', conflict);
  expect(found?.differences).toEqual([
    { path: '/cost_cents', event: '125', delivery: '7', cut: [] },
    { path: '/note', event: null, delivery: '"\u202e<b>"', cut: [] },
  ]);
});

test('replicas lists the one that runs', async () => {
  expect(await cli.items('replicas', 'list')).toMatchObject([{ version, is_late: false }]);
  expect(await cli.items('replicas')).toHaveLength(1);
});

test('on a terminal each is a table', async () => {
  const { screen: found } = await cli.onTerminal(['find', job]);
  expect(found).toMatch(new RegExp(`job +completed +.* tallyhook jobs show default ${job}\\n`));
  const { screen: replicas } = await cli.onTerminal(['replicas']);
  expect(replicas).toContain(version);
  const { screen: differences } = await cli.onTerminal(['deliveries', 'diff', conflict]);
  expect(differences).toMatch(/\/cost_cents +125 +7\n\/note +\(not there\) +"�<b>"\n/);
  expect(differences).toContain(`default:${job}:completed and a conflict with it`);
});
