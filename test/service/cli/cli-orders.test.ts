// Decisions about many things at once from the command line, and how much there is of what.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { expect, test } from 'vitest';
import { type Cli, cliWith, parseLines } from '../../support/cli.ts';
import { createTestDatabase } from '../../support/database.ts';
import { holdOutbox, makeUnderstood } from '../../support/ledger.ts';
import { newToken } from '../../support/operators.ts';
import { newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { seedEntries, seedQuarantine } from '../../support/waiting.ts';
import { OUTBOX } from '../../support/outbox.ts';

type Entries = Omit<Parameters<typeof seedEntries>[1], 'source' | 'from'> & {
  /** Of the test's entries: 1 is the first. */
  readonly from: number;
};

/** What a test's operator, who is limited to its source, may decide on: entries with numbers of their own. */
type Place = {
  readonly service: TestService;
  readonly source: string;
  readonly cli: Cli;
  /** The operator's token, by its id and its name. */
  readonly token: { readonly id: string; readonly name: string };
  /** The number of an entry of the test, as it is told. */
  readonly no: (n: number) => string;
  readonly seedEntries: (entries: Entries) => Promise<void>;
  readonly seedQuarantine: (of?: { readonly count?: number }) => Promise<string[]>;
};

type Running = { readonly service: TestService; readonly takeThousand: () => number };

const it = test.extend<{ running: Running; place: Place }>({
  /** Its relay publishes nothing, so that entries stay as they are. */
  running: [
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what is needed from it
    async ({}, use) => {
      await using database = await createTestDatabase();
      await holdOutbox(database);
      await using service = await startTestService({ database });
      let taken = 0;
      await use({ service, takeThousand: () => (taken += 1_000) });
    },
    { scope: 'file' },
  ],
  place: async ({ running: { service, takeThousand } }, use) => {
    const [source, base] = [newJobId(), takeThousand()];
    const { database, operators } = service;
    const { token, value } = await newToken(database, { role: 'operator', sources: [source] });
    await use({
      service,
      source,
      token,
      cli: cliWith({ TALLYHOOK_URL: operators, TALLYHOOK_TOKEN: value }),
      no: (n) => String(base + n),
      seedEntries: ({ from, ...of }) => seedEntries(database, { ...of, source, from: base + from }),
      seedQuarantine: (of) => seedQuarantine(database, { ...of, source }),
    });
  },
});

const NOBODY = '00000000-0000-4000-8000-000000000000';

/** `7 returned`, of all entries of the test by their numbers. */
const statesOf = async ({ service, source }: Place) =>
  (
    await service.database.query<{ text: string }>(
      `select sequence || ' ' || state as text from ${OUTBOX} where source = $1 order by sequence`,
      [source],
    )
  ).map(({ text }) => text);

it('outbox retry and discard take several ids, and say which of them could not be', async ({ place }) => {
  const { cli, no } = place;
  await place.seedEntries({ state: 'returned', from: 1, count: 3 });

  const retried = await cli.run('outbox', 'retry', no(1), `${place.source}:job_${no(2)}:completed`, no(99));
  expect(retried).toMatchObject({ code: 1, stderr: `${no(99)}: there is no such entry in the outbox\n` });
  expect(parseLines(retried.stdout)).toMatchObject([
    { id: no(1), result: 'retried' },
    { id: `${place.source}:job_${no(2)}:completed`, result: 'retried' },
  ]);
  expect(await cli.run('outbox', 'discard', no(3), no(1))).toMatchObject({
    code: 1,
    stderr: `${no(1)}: it is pending: a pending event cannot be discarded\n`,
  });
  expect(await statesOf(place)).toEqual([`${no(1)} pending`, `${no(2)} pending`]);
});

it('outbox retry and discard of all that match count first, and need a yes', async ({ place }) => {
  const { cli, no } = place;
  await place.seedEntries({ state: 'parked', from: 1, count: 2, error: 'too large' });
  await place.seedEntries({ state: 'parked', from: 3, error: 'nacked by the broker' });
  const discard = ['outbox', 'discard', '--all', '--state', 'parked', '--reason', 'too large'];

  const [dry] = await cli.items(...discard, '--dry-run');
  expect(dry).toMatchObject({
    matched: 2,
    matched_exactly: true,
    up_to: no(3),
    sample: [{ id: no(1) }, { id: no(2) }],
  });
  expect(await cli.run(...discard)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('there is no terminal to ask on') as unknown,
  });
  expect(await statesOf(place)).toHaveLength(3);
  expect(await cli.items(...discard, '--yes')).toEqual([{ discarded: 2 }]);
  expect(await cli.run(...discard, '--yes')).toMatchObject({ code: 1, stdout: '' });
  expect(await cli.items('outbox', 'retry', '--all', '--state', 'parked', '--yes')).toEqual([{ retried: 1 }]);
  expect(await statesOf(place)).toEqual([`${no(3)} pending`]);
});

it('outbox park takes several ids, or all that match', async ({ place }) => {
  const { cli, no } = place;
  await place.seedEntries({ state: 'pending', from: 1, count: 4, batchOf: 2 });

  const named = await cli.run('outbox', 'park', no(1), no(1), no(99));
  expect(named).toMatchObject({ code: 1, stderr: `${no(99)}: there is no such entry in the outbox\n` });
  expect(parseLines(named.stdout)).toMatchObject([{ id: no(1), result: 'parked', state: 'pending' }]);
  expect(await cli.items('outbox', 'park', '--all', '--state', 'pending', '--yes')).toEqual([{ parked: 3 }]);
  expect(await statesOf(place)).toEqual([1, 2, 3, 4].map((n) => `${no(n)} parked`));
});

it('quarantine discard of several ids is one request, which one that does not wait keeps back nothing of', async ({
  place,
}) => {
  const { cli } = place;
  const ids = await place.seedQuarantine({ count: 2 });

  const done = await cli.run('quarantine', 'discard', ...ids, NOBODY, '--note', 'a test');

  expect(done).toMatchObject({ code: 1, stderr: `${NOBODY}: there is no such delivery\n` });
  expect(parseLines(done.stdout)).toMatchObject(ids.map((id) => ({ delivery_id: id, result: 'discarded' })));
  expect(
    await place.service.database.query('select from idempotency_keys where token_id = $1', [place.token.id]),
  ).toHaveLength(1);
});

it('quarantine release takes several ids; --all counts with --dry-run', async ({ place }) => {
  const { cli } = place;
  const ids = await place.seedQuarantine({ count: 2 });

  const named = await cli.run('quarantine', 'release', ...ids, NOBODY);
  expect(named.code).toBe(1);
  expect(parseLines(named.stdout)).toMatchObject([
    { delivery_id: ids[0], result: 'still_quarantined' },
    { delivery_id: ids[1], result: 'still_quarantined' },
    { delivery_id: NOBODY, result: 'not_found' },
  ]);
  expect(named.stderr).toBe('3 deliveries: 2 still quarantined, 1 not found\n');
  expect(await cli.items('quarantine', 'release', '--all', '--dry-run')).toMatchObject([
    { matched: 2, matched_exactly: true, trial: { tried: 2, releasable: 0 } },
  ]);
  const none = await cli.run('quarantine', 'release', '--all', '--reason', 'unknown');
  expect(none).toEqual({ code: 0, stdout: '', stderr: 'nothing waits in quarantine\n' });
});

it('outbox groups and quarantine groups say how much there is of what', async ({ place }) => {
  const { cli } = place;
  await place.seedEntries({ state: 'returned', from: 1, count: 3 });
  await place.seedEntries({ state: 'returned', from: 4, queue: 'billing' });
  await place.seedQuarantine({ count: 2 });

  expect(await cli.items('outbox', 'groups')).toMatchObject([
    { value: '312 NO_ROUTE', state: 'returned', copies: false, count: 3, count_is_exact: true },
    { value: '312 NO_ROUTE', state: 'returned', copies: true, count: 1 },
  ]);
  expect(await cli.items('outbox', 'groups', '--by', 'queue', '--queue', 'billing')).toMatchObject([
    { value: 'billing', count: 1 },
  ]);
  expect(await cli.items('quarantine', 'groups', '--by', 'source')).toMatchObject([
    { value: place.source, count: 2 },
  ]);
  expect(await cli.run('outbox', 'groups', '--state', 'parked')).toEqual({
    code: 0,
    stdout: '',
    stderr: 'nothing matches\n',
  });
  await place.seedQuarantine({ count: 10_001 });
  expect((await cli.onTerminal(['quarantine', 'groups'])).screen).toMatch(/unknown status +10,000\+ /);
});

it('on a terminal a release says how many can be released, and asks for nothing that would do nothing', async ({
  place,
}) => {
  const { cli } = place;
  await place.seedQuarantine({ count: 2 });

  const none = await cli.onTerminal(['quarantine', 'release', '--all'], 'y\n');
  expect(none.code).toBe(1);
  expect(none.screen).toMatch(/0 can be released with the present schemas, 2 cannot:\s+2: .*unknown status/);
  expect(none.screen).not.toContain('?');

  await makeUnderstood(place.service.database, place.source);
  await place.seedQuarantine({ count: 1 });
  const some = await cli.onTerminal(['quarantine', 'release', '--all'], 'n\n');
  expect(some.screen).toContain('2 can be released with the present schemas, 1 cannot:');
  expect(some.screen).toContain('Release 2 of 3 deliveries? [y/N]');
});

it('on a terminal all are shown and asked for, and a no changes nothing', async ({ place }) => {
  const { cli, no } = place;
  await place.seedEntries({ state: 'returned', from: 1, count: 2 });
  await place.seedQuarantine({ count: 2 });
  await makeUnderstood(place.service.database, place.source);

  const [entry, delivery] = [`job_${no(1)}`, 'job_1'];
  for (const [args, shown, question, nothing] of [
    [
      ['outbox', 'discard', '--all', '--state', 'returned'],
      entry,
      'Discard 2 events for good? [y/N]',
      'discarded',
    ],
    [['outbox', 'retry', '--all', '--state', 'returned'], entry, 'Publish 2 events again? [y/N]', 'retried'],
    [['quarantine', 'release', '--all'], delivery, 'Release 2 deliveries? [y/N]', 'released'],
  ] as const) {
    const { code, screen } = await cli.onTerminal(args, 'n\n');
    expect(code).toBe(1);
    expect(screen).toContain(shown);
    expect(screen).toContain(question);
    expect(screen).toContain(`nothing was ${nothing}`);
  }
  expect(await statesOf(place)).toEqual([`${no(1)} returned`, `${no(2)} returned`]);
  expect(
    await place.service.database.query('select from operator_log where actor = $1', [place.token.name]),
  ).toEqual([]);

  const yes = await cli.onTerminal(['outbox', 'discard', '--all', '--state', 'returned'], 'y\n');
  expect(yes).toMatchObject({ code: 0, screen: expect.stringContaining('2 events discarded') as unknown });
  expect(await statesOf(place)).toEqual([]);
});
