// An upgrade as docs/deploy.md has it: the version before beside the present one, on one Postgres and one RabbitMQ, under load. The present
// one has a migration more, so the older replicas really run on a newer schema.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listen, newExchange, UNHEARD } from '../support/bus.ts';
import { parseLines } from '../support/cli.ts';
import { commandsUnder } from '../support/deploy-page.ts';
import { altered, eventIds, outOfOrder, untilOutboxEmpty } from '../support/facts.ts';
import { createFolder, type TestFolder } from '../support/folder.ts';
import { type Answer, startLoad } from '../support/load.ts';
import { migrations } from '../support/migrations.ts';
import { newToken } from '../support/operators.ts';
import { patience } from '../support/patience.ts';
import { type Replica, runProcess, startReplica } from '../support/replica.ts';
import { createRoles } from '../support/roles.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { serviceEnv } from '../support/service-env.ts';
import { paste } from '../support/shell.ts';
import { pause } from '../support/until.ts';
import { makeVersion, takeVersion, type Version } from '../support/versions.ts';
import { waitFor } from '../support/waits.ts';

const PREVIOUS = process.env['TEST_PREVIOUS'];

/** What the version before knows, and what ours has made since. */
const KNOWN = '0001-first-release';
const OURS = Object.keys(migrations)
  .toSorted()
  .filter((name) => name > KNOWN);
const [NEXT, BREAKING] = ['9998-next', '9999-breaking'];

/** An index ahead, a column, and a table: what older programs do not mind. */
const COMPATIBLE = `import { sql } from 'kysely';
const INDEX = sql\`if not exists jobs_of_next on jobs (job_id)\`;
export const ahead = (session) => sql\`create index concurrently \${INDEX}\`.execute(session);
export async function up(db) {
  await sql\`set local lock_timeout = '3s'\`.execute(db);
  await sql\`create index \${INDEX}\`.execute(db);
  await sql\`alter table deliveries add column of_next text\`.execute(db);
  await sql\`create table of_next (id int primary key)\`.execute(db);
  await sql\`insert into schema_requirements values ('${NEXT}', '${KNOWN}')\`.execute(db);
}
`;

const INCOMPATIBLE = `import { sql } from 'kysely';
export const up = (db) => sql\`insert into schema_requirements values ('${BREAKING}', '${BREAKING}')\`.execute(db);
`;

let folder: TestFolder;
let older: Version;
let newer: Version;
let newest: Version;

beforeAll(async () => {
  if (!PREVIOUS) return;
  folder = await createFolder();
  older = await takeVersion(PREVIOUS, folder.path('older'));
  newer = await makeVersion('99.0.0', { [NEXT]: COMPATIBLE }, folder.path('newer'));
  const both = { [NEXT]: COMPATIBLE, [BREAKING]: INCOMPATIBLE };
  newest = await makeVersion('100.0.0', both, folder.path('newest'));
}, patience(30_000));

afterAll(() => folder?.[Symbol.asyncDispose]());

async function end(replica: Replica): Promise<void> {
  replica.kill('SIGTERM');
  expect(await replica.exited).toEqual({ code: 0, signal: null });
}

/** And 408, where the sender got no processor time: what it sends has to arrive within 5 s. It sends again. */
const isExpected = ({ status, ms }: Answer): boolean =>
  [200, 202, 503].includes(status ?? 0) || (status === 408 && ms > 5_000);

/** Until a balancer, which asks each 50 ms, has seen that a replica ends. */
const DELAY_MS = patience(1_000);

/** Two replicas, and what a balancer in front of them does: it asks each whether it is ready, and sends deliveries to those that are. */
async function startPair(first: Version, databaseUrl: string, exchange: string) {
  const ready = new Set<Replica>();
  const watch = async (replica: Replica) => {
    while (!replica.hasExited()) {
      const status = await replica.readiness().then(
        (answer) => answer.status,
        () => 0,
      );
      if (status === 200) ready.add(replica);
      else ready.delete(replica);
      await pause(50);
    }
    ready.delete(replica);
  };
  const start = async ({ main }: Version) => {
    const env = {
      SHUTDOWN_DELAY_MS: String(DELAY_MS),
      SHUTDOWN_GRACE_MS: String(DELAY_MS + patience(10_000)),
    };
    const replica = await startReplica({ databaseUrl, exchange, main, env });
    void watch(replica);
    return replica;
  };
  const replicas: [Replica, Replica] = await Promise.all([start(first), start(first)]);
  let ending: Replica | undefined;
  return {
    replicas,
    /** On a machine that is busy none may be ready for a moment: then any that is to stay, for its 503. */
    urls: () => {
      const open = ready.size > 0 ? [...ready] : replicas.filter((replica) => replica !== ending);
      return open.map(({ webhooks }) => webhooks);
    },
    /** Ends one in order and starts this version in its place. */
    replace: async (at: 0 | 1, version: Version): Promise<Replica> => {
      ending = replicas[at];
      await end(ending);
      replicas[at] = await start(version);
      return replicas[at];
    },
    stop: () => Promise.all(replicas.map(end)),
    [Symbol.asyncDispose]: async () => {
      for (const replica of replicas) await replica[Symbol.asyncDispose]();
    },
  };
}

describe.skipIf(!PREVIOUS)('an upgrade', () => {
  test('replicas of two versions are replaced, restarted and rolled back under load, and nothing is lost', async () => {
    await using roles = await createRoles();
    const { database, running, migrating } = roles;
    const env = { DATABASE_URL: running.url, MIGRATION_DATABASE_URL: migrating.url };
    const exchange = newExchange();
    await using bus = await listen(exchange);
    expect(await runProcess(['migrate'], { env, main: older.main })).toMatchObject({ code: 0 });
    const { value: token } = await newToken(database);
    await using pair = await startPair(older, running.url, exchange);
    await using load = startLoad(pair.urls, { senders: 4, pauseMs: 100, redeliver: true });

    /** Whatever versions run now take deliveries and publish them. */
    const untilMoreArrived = async () => {
      await load.reached(load.acknowledged().size + 30);
      const acknowledged = [...load.acknowledged()];
      await waitFor(() => expect(bus.ids()).toEqual(expect.arrayContaining(acknowledged)));
    };
    /** Runs the commands of the page with the new version. @returns what each printed */
    const follow = async (heading: string): Promise<string[]> => {
      const [{ operators }, { intake: REPLICA }] = pair.replicas;
      const printed: string[] = [];
      for (const command of commandsUnder(heading)) {
        const options = { operators, token, folder: folder.path('.'), main: newer.main };
        printed.push(await paste(command, { ...options, env: { ...env, REPLICA } }));
      }
      return printed;
    };
    const untilListed = (...versions: Version[]) =>
      waitFor(async () => {
        const listed = await database.query('select version from replicas order by started_at');
        expect(listed).toEqual(versions.map(({ version }) => ({ version })));
      });
    await untilMoreArrived();

    const [plan = '', checked = ''] = await follow('Look first');
    expect(JSON.parse(plan)).toMatchObject({
      pending: [
        ...OURS.map((migration) => ({ migration, lock_timeout: '3s' })),
        {
          migration: NEXT,
          lock_timeout: '3s',
          // Only the first of several has its part ahead.
          locks: [
            { table: 'deliveries', mode: 'access exclusive', work: 'short' },
            { table: 'jobs', mode: 'share', work: 'builds an index' },
          ],
        },
      ],
      oldest_program: KNOWN,
      replicas_may_stay: true,
    });
    expect(JSON.parse(checked)).toMatchObject({ replicas_may_stay: true });
    expect(await follow('Migrate while the old replicas run')).toEqual([
      `migrated: ${[...OURS, NEXT].join(', ')}\n`,
    ]);
    await untilMoreArrived();

    const restarted = await pair.replace(0, older);
    expect(restarted.log).toContainEqual(
      expect.objectContaining({ level: 'warn', migrations: [...OURS, NEXT] }),
    );
    await untilMoreArrived();

    await pair.replace(1, newer);
    expect((await follow('Replace the replicas')).join('')).toContain('"ready":true');
    await untilListed(older, newer);
    await untilMoreArrived();
    await pair.replace(0, newer);
    await untilMoreArrived();
    await untilListed(newer, newer);
    const [listed = '', waiting = ''] = await follow('Check the upgrade');
    expect(parseLines(listed)).toMatchObject([{ version: newer.version }, { version: newer.version }]);
    // The load goes on: some events are on their way, and none waits for an operator.
    expect(parseLines(waiting).filter(({ state }) => state !== 'pending')).toEqual([]);

    expect(await runProcess(['migrate'], { env, main: older.main })).toMatchObject({
      code: 0,
      stdout: `the schema has ${[...OURS, NEXT].join(', ')}, and this older program may run on it: nothing was changed\n`,
    });
    await pair.replace(0, older);
    await untilMoreArrived();
    await pair.replace(1, older);
    await untilMoreArrived();
    await untilListed(older, older);

    await load.stop();
    await untilOutboxEmpty(database);
    await pair.stop();
    expect(load.answers.filter((answer) => !isExpected(answer))).toEqual([]);
    expect(load.answers.filter(({ status }) => status === 200).length).toBeGreaterThan(100);
    const ids = await eventIds(database);
    const tallied = new Set(ids);
    expect(ids).toHaveLength(tallied.size);
    expect([...load.acknowledged()].filter((id) => !tallied.has(id))).toEqual([]);
    await waitFor(() => expect(new Set(bus.ids())).toEqual(tallied));
    expect(outOfOrder(bus.messages)).toEqual([]);
    expect(altered(bus.messages)).toEqual([]);
  });

  test('that needs a stop says so, refuses older replicas, and finds all that they had taken', async () => {
    await using roles = await createRoles();
    const { database, running, migrating } = roles;
    const env = { DATABASE_URL: running.url, MIGRATION_DATABASE_URL: migrating.url };
    const run = (args: string[], { main }: Version) => runProcess(args, { env, main });
    expect(await run(['migrate'], older)).toMatchObject({ code: 0 });
    const job = newJobId();
    const start = ({ main }: Version) => startReplica({ databaseUrl: running.url, main });
    await using before = await start(older);
    expect(await deliver(before.webhooks, completed(job))).toMatchObject({ status: 202 });

    const { code, stdout } = await run(['migrate', '--plan'], newest);
    expect({ code, plan: JSON.parse(stdout) as unknown }).toMatchObject({
      code: 0,
      plan: { oldest_program: BREAKING, replicas_may_stay: false },
    });
    const [, check = ''] = commandsUnder('Look first');
    const where = { operators: '', token: '', folder: folder.path('.'), main: newest.main, env };
    await expect(paste(check, where)).rejects.toMatchObject({ code: 1 });

    await end(before);
    expect(await run(['migrate'], newest)).toMatchObject({
      code: 0,
      stdout: `migrated: ${[...OURS, NEXT, BREAKING].join(', ')}\n`,
    });
    for (const command of ['serve', 'migrate']) {
      const refused = await runProcess([command], {
        env: { ...serviceEnv({ databaseUrl: running.url, exchange: UNHEARD }), ...env },
        main: older.main,
      });
      expect(refused).toMatchObject({ code: 78 });
      expect(refused.stdout + refused.stderr).toContain(BREAKING);
    }
    await using after = await start(newest);
    expect(await deliver(after.webhooks, completed(job))).toMatchObject({ body: { outcome: 'duplicate' } });
    expect(await eventIds(database)).toHaveLength(1);
  });
});
