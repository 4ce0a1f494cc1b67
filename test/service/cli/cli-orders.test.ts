// Decisions about many things at once from the command line, and how much there is of what.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Cli, cliOf, parseLines } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { seedEntries, seedQuarantine } from '../../support/waiting.ts';
import { OUTBOX } from '../../support/outbox.ts';

let database: TestDatabase;
let service: TestService;
let cli: Cli;
beforeEach(async () => {
  database = await createTestDatabase();
  await holdOutbox(database);
  service = await startTestService({ database });
  cli = await cliOf(service, { role: 'operator' });
});
afterEach(async () => {
  await service[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const NOBODY = '00000000-0000-4000-8000-000000000000';

/** `7 returned`, of all entries by their numbers. */
const states = async () =>
  (
    await database.query<{ text: string }>(
      `select sequence || ' ' || state as text from ${OUTBOX} order by sequence`,
    )
  ).map(({ text }) => text);

test('outbox retry and discard take several ids, and say which of them could not be', async () => {
  await seedEntries(database, { state: 'returned', from: 1, count: 3 });

  const retried = await cli.run('outbox', 'retry', '1', 'default:job_2:completed', '99');
  expect(retried).toMatchObject({ code: 1, stderr: '99: there is no such entry in the outbox\n' });
  expect(parseLines(retried.stdout)).toMatchObject([
    { id: '1', result: 'retried' },
    { id: 'default:job_2:completed', result: 'retried' },
  ]);
  expect(await cli.run('outbox', 'discard', '3', '1')).toMatchObject({
    code: 1,
    stderr: '1: it is pending: a pending event cannot be discarded\n',
  });
  expect(await states()).toEqual(['1 pending', '2 pending']);
});

test('outbox retry and discard of all that match count first, and need a yes', async () => {
  await seedEntries(database, { state: 'parked', from: 1, count: 2, error: 'too large' });
  await seedEntries(database, { state: 'parked', from: 3, error: 'nacked by the broker' });
  const discard = ['outbox', 'discard', '--all', '--state', 'parked', '--reason', 'too large'];

  const [dry] = await cli.items(...discard, '--dry-run');
  expect(dry).toMatchObject({
    matched: 2,
    matched_exactly: true,
    up_to: '3',
    sample: [{ id: '1' }, { id: '2' }],
  });
  expect(await cli.run(...discard)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('there is no terminal to ask on') as unknown,
  });
  expect(await states()).toHaveLength(3);
  expect(await cli.items(...discard, '--yes')).toEqual([{ discarded: 2 }]);
  expect(await cli.run(...discard, '--yes')).toMatchObject({ code: 1, stdout: '' });
  expect(await cli.items('outbox', 'retry', '--all', '--state', 'parked', '--yes')).toEqual([{ retried: 1 }]);
  expect(await states()).toEqual(['3 pending']);
});

test('outbox park takes several ids, or all that match', async () => {
  await seedEntries(database, { state: 'pending', from: 1, count: 4, batchOf: 2 });

  const named = await cli.run('outbox', 'park', '1', '1', '99');
  expect(named).toMatchObject({ code: 1, stderr: '99: there is no such entry in the outbox\n' });
  expect(parseLines(named.stdout)).toMatchObject([{ id: '1', result: 'parked', state: 'pending' }]);
  expect(await cli.items('outbox', 'park', '--all', '--state', 'pending', '--yes')).toEqual([{ parked: 3 }]);
  expect(await states()).toEqual(['1 parked', '2 parked', '3 parked', '4 parked']);
});

test('quarantine discard of several ids is one request, which one that does not wait keeps back nothing of', async () => {
  const ids = await seedQuarantine(database, { count: 2 });

  const done = await cli.run('quarantine', 'discard', ...ids, NOBODY, '--note', 'a test');

  expect(done).toMatchObject({ code: 1, stderr: `${NOBODY}: there is no such delivery\n` });
  expect(parseLines(done.stdout)).toMatchObject(ids.map((id) => ({ delivery_id: id, result: 'discarded' })));
  expect(await database.query('select from idempotency_keys')).toHaveLength(1);
});

test('quarantine release takes several ids; --all counts with --dry-run', async () => {
  const ids = await seedQuarantine(database, { count: 2 });

  const named = await cli.run('quarantine', 'release', ...ids, NOBODY);
  expect(named.code).toBe(1);
  expect(parseLines(named.stdout)).toMatchObject([
    { delivery_id: ids[0], result: 'still_quarantined' },
    { delivery_id: ids[1], result: 'still_quarantined' },
    { delivery_id: NOBODY, result: 'not_found' },
  ]);
  expect(named.stderr).toBe('3 deliveries: 2 still quarantined, 1 not found\n');
  expect(await cli.items('quarantine', 'release', '--all', '--dry-run')).toMatchObject([
    { matched: 2, matched_exactly: true },
  ]);
  const none = await cli.run('quarantine', 'release', '--all', '--reason', 'unknown');
  expect(none).toEqual({ code: 0, stdout: '', stderr: 'nothing waits in quarantine\n' });
});

test('outbox groups and quarantine groups say how much there is of what', async () => {
  await seedEntries(database, { state: 'returned', from: 1, count: 3 });
  await seedEntries(database, { state: 'returned', from: 4, queue: 'billing' });
  await seedQuarantine(database, { count: 2 });

  expect(await cli.items('outbox', 'groups')).toMatchObject([
    { value: '312 NO_ROUTE', state: 'returned', copies: false, count: 3, count_is_exact: true },
    { value: '312 NO_ROUTE', state: 'returned', copies: true, count: 1 },
  ]);
  expect(await cli.items('outbox', 'groups', '--by', 'queue', '--queue', 'billing')).toMatchObject([
    { value: 'billing', count: 1 },
  ]);
  expect(await cli.items('quarantine', 'groups', '--by', 'source')).toMatchObject([
    { value: 'default', count: 2 },
  ]);
  expect(await cli.run('outbox', 'groups', '--state', 'parked')).toEqual({
    code: 0,
    stdout: '',
    stderr: 'nothing matches\n',
  });
  await seedQuarantine(database, { count: 10_001 });
  expect((await cli.onTerminal(['quarantine', 'groups'])).screen).toMatch(/unknown status +10,000\+ /);
});

test('on a terminal all are shown and asked for, and a no changes nothing', async () => {
  await seedEntries(database, { state: 'returned', from: 1, count: 2 });
  await seedQuarantine(database, { count: 2 });

  for (const [args, question, nothing] of [
    [['outbox', 'discard', '--all', '--state', 'returned'], 'Discard 2 events for good? [y/N]', 'discarded'],
    [['outbox', 'retry', '--all', '--state', 'returned'], 'Publish 2 events again? [y/N]', 'retried'],
    [['quarantine', 'release', '--all'], 'Release 2 deliveries? [y/N]', 'released'],
  ] as const) {
    const { code, screen } = await cli.onTerminal(args, 'n\n');
    expect(code).toBe(1);
    expect(screen).toContain('job_1');
    expect(screen).toContain(question);
    expect(screen).toContain(`nothing was ${nothing}`);
  }
  expect(await states()).toEqual(['1 returned', '2 returned']);
  expect(await database.query('select from operator_log')).toEqual([]);

  const yes = await cli.onTerminal(['outbox', 'discard', '--all', '--state', 'returned'], 'y\n');
  expect(yes).toMatchObject({ code: 0, screen: expect.stringContaining('2 events discarded') as unknown });
  expect(await states()).toEqual([]);
});
