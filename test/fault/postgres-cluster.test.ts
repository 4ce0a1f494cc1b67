// Two replicas on a Postgres cluster that Patroni runs, while its primary changes: by a switch-over, by SIGKILL, and with standbys
// that are behind. What was measured is printed, and docs/reliability.md has it.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Bus, listen, newExchange } from '../support/bus.ts';
import { runCommandsUnder } from '../support/deploy-commands.ts';
import { eventIds, outOfOrder, untilOutboxEmpty } from '../support/facts.ts';
import { lifeOf, type Load, longestPauseMs, post, startLoad } from '../support/load.ts';
import {
  type ClusterDatabase,
  HAS_PATRONI,
  type PatroniCluster,
  type PatroniMember,
  startPatroni,
} from '../support/patroni.ts';
import { type Replica, startReplica } from '../support/replica.ts';
import { isAcknowledged, type Notification } from '../support/sender.ts';
import { queryOnce } from '../support/transaction.ts';
import { waitFor } from '../support/waits.ts';
import { IS_SHORT_RUN } from '../only-in-all.ts';

let cluster: PatroniCluster;

/** How the replicas reach whichever member is the primary. */
type Way = { readonly name: string; readonly url: (database: ClusterDatabase) => string };

const WAYS: readonly Way[] = [
  { name: 'HAProxy', url: ({ name }) => cluster.urlOf({ hosts: cluster.haproxy, database: name }) },
  {
    name: 'the names of all members',
    url: ({ name }) =>
      `${cluster.urlOf({ hosts: cluster.hosts, database: name })}?target_session_attrs=read-write`,
  },
];

/** More than the standbys of any test are behind. */
const LAG_BYTES = 64 * 2 ** 20;
const SENDERS = 8;
/** Some hundred deliveries a second. */
const PAUSE_MS = 20;

type Stage = AsyncDisposable & {
  readonly database: ClusterDatabase;
  readonly replicas: readonly Replica[];
  readonly load: Load;
  readonly bus: Bus;
  /** Until the senders have got so many more 2xx. */
  readonly goOn: (count?: number) => Promise<void>;
  /** Stops the senders, and waits until all is published. */
  readonly end: () => Promise<void>;
  /** Ids that were acknowledged and are not in the ledger. */
  readonly lost: () => Promise<readonly string[]>;
};

/** Two replicas on a database of their own, with senders at work. */
async function startStage({ url }: Way): Promise<Stage> {
  const stack = new AsyncDisposableStack();
  try {
    const database = await cluster.createDatabase();
    const exchange = newExchange();
    const bus = stack.use(await listen(exchange));
    const start = () =>
      startReplica({ databaseUrl: url(database), exchange, env: { MIGRATE_ON_START: 'true' } });
    const replicas = [stack.use(await start()), stack.use(await start())];
    const load = stack.use(
      startLoad(() => replicas.map(({ webhooks }) => webhooks), { senders: SENDERS, pauseMs: PAUSE_MS }),
    );
    await load.reached(200);
    return {
      database,
      replicas,
      load,
      bus,
      goOn: (count = 200) => load.reached(load.acknowledged().size + count),
      end: async () => {
        await load.stop();
        await untilOutboxEmpty(database, 30_000);
      },
      lost: async () => {
        const kept = new Set(await eventIds(database));
        return [...load.acknowledged()].filter((id) => !kept.has(id));
      },
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

/** What is promised whatever happens to the primary. `lost`: ids that the ledger lost, perhaps before they were published. */
async function expectPromisesKept(
  { load, bus, replicas }: Stage,
  lost: readonly string[] = [],
): Promise<void> {
  const refused = load.answers.filter((answer) => !isAcknowledged(answer));
  expect(refused.filter(({ status, retryAfter }) => status !== 503 || !Number(retryAfter))).toEqual([]);
  await waitFor(() => {
    const received = new Set([...bus.ids(), ...lost]);
    expect([...load.acknowledged()].filter((id) => !received.has(id))).toEqual([]);
  });
  expect(outOfOrder(bus.messages)).toEqual([]);
  expect(numbersGivenTwice(bus)).toEqual([]);
  for (const replica of replicas) {
    expect(replica.hasExited()).toBe(false);
    expect(replica.log.filter(({ level }) => level === 'fatal')).toEqual([]);
  }
}

/** Sequences under which more than one event is on the bus. */
function numbersGivenTwice({ messages }: Bus): string[] {
  const ids = new Map<string, string>();
  return messages.flatMap(({ id, event }) => {
    const sequence = String(event['sequence']);
    const first = ids.get(sequence) ?? id;
    ids.set(sequence, first);
    return first === id ? [] : [sequence];
  });
}

const lossesTold = ({ replicas }: Stage) =>
  replicas.flatMap(({ log }) =>
    log.filter(({ msg }) => String(msg).startsWith('the database went back in time')),
  );

function print(what: string, { load }: Stage, more = ''): void {
  const count = (wanted: number) => load.answers.filter(({ status }) => status === wanted).length;
  const pause = (longestPauseMs(load.answers) / 1_000).toFixed(1);
  process.stdout.write(`${what}: ${count(202)} × 202, ${count(503)} × 503; no 2xx for ${pause} s${more}\n`);
}

const queryOn = ({ host }: PatroniMember, { name }: ClusterDatabase, text: string) =>
  queryOnce(cluster.urlOf({ hosts: host, database: name }), text);

/** What its sender sent. */
function notificationOf(id: string): Notification {
  const [, job = ''] = id.split(':');
  const found = lifeOf(job).find(({ status, progress_percentage: percent }) =>
    id.endsWith(status === 'completed' ? `:${status}` : `:${status}:${String(percent)}`),
  );
  if (found === undefined) throw new Error(`nobody sent ${id}`);
  return found;
}

describe.skipIf(!HAS_PATRONI)('on a Postgres cluster', () => {
  beforeAll(async () => {
    cluster = await startPatroni({ synchronous: true, maximumLagBytes: LAG_BYTES });
  });

  afterAll(() => cluster?.close());

  test('HAProxy takes its file as docs/deploy.md has it', async () => {
    await expect(runCommandsUnder('HAProxy in front of Patroni', {})).resolves.toContain('valid');
  });

  describe.for(WAYS)('reached by $name', (way) => {
    // Whatever the test before has left.
    beforeEach(async () => {
      for (const member of cluster.members) member.start();
      await cluster.replicate({ synchronous: true });
      await cluster.untilWhole();
    });

    test('guarantee 2: through a switch-over senders see 2xx and 503 alone, and nothing that was acknowledged is lost', async () => {
      await using stage = await startStage(way);

      await cluster.switchOver();

      await stage.goOn();
      await stage.end();
      expect(await stage.lost()).toEqual([]);
      expect(lossesTold(stage)).toEqual([]);
      await expectPromisesKept(stage);
      print('a switch-over', stage);
    });

    test.skipIf(IS_SHORT_RUN)('the same when the primary and its agent are killed', async () => {
      await using stage = await startStage(way);
      const old = await cluster.primary();

      await old.kill();

      await stage.goOn();
      await stage.end();
      expect(await stage.lost()).toEqual([]);
      expect(lossesTold(stage)).toEqual([]);
      await expectPromisesKept(stage);
      print('the primary killed', stage);
    });

    test.skipIf(IS_SHORT_RUN)(
      'the same when the agent of the primary is killed, and its Postgres stays a second primary',
      async () => {
        await using stage = await startStage(way);
        const old = await cluster.primary();

        await old.killAgent();
        await cluster.endLeadership();
        await cluster.primary(); // another one, since a member's agent says which it is

        await stage.goOn();
        const isStandby = await queryOn(old, stage.database, 'select pg_is_in_recovery() as "isStandby"');
        expect(isStandby).toEqual([{ isStandby: false }]);
        await stage.end();
        expect(await stage.lost()).toEqual([]);
        expect(lossesTold(stage)).toEqual([]);
        await expectPromisesKept(stage);
        print('the agent of the primary killed', stage);
      },
    );

    test.skipIf(IS_SHORT_RUN)(
      'the same when the synchronous standby is killed; and with none left, strict replication acknowledges nothing',
      async () => {
        await cluster.replicate({ synchronous: true, strict: true });
        await cluster.untilWhole();
        await using stage = await startStage(way);
        const { load } = stage;
        const refused = () => load.answers.filter(({ status }) => status === 503).length;
        const standby = await cluster.synchronousStandby();

        await standby.kill();

        await stage.goOn();
        print('the synchronous standby killed', stage);
        const other = await cluster.synchronousStandby();
        await other.kill();
        const before = refused();
        await waitFor(() => expect(refused()).toBeGreaterThan(before + SENDERS), { timeout: 20_000 });
        const [acknowledged, first] = [load.acknowledged().size, refused()];
        await waitFor(() => expect(refused()).toBeGreaterThan(first + 3 * SENDERS), { timeout: 20_000 });
        expect(load.acknowledged().size).toBe(acknowledged);
        standby.start();
        other.start();
        await stage.goOn();
        await stage.end();
        expect(await stage.lost()).toEqual([]);
        await expectPromisesKept(stage);
      },
    );

    test.skipIf(IS_SHORT_RUN)(
      'what asynchronous replication loses is told, its numbers are not given again, and the old primary comes back without it',
      async () => {
        await cluster.replicate({ synchronous: false });
        await cluster.untilWhole();
        await using stage = await startStage(way);
        const { load, database } = stage;
        const old = await cluster.primary();
        await cluster.holdBack(true);
        await stage.goOn(100);

        await old.kill();
        await cluster.endLeadership();

        const acknowledged = load.acknowledged().size;
        await stage.goOn();
        await stage.end();
        const lost = await stage.lost();
        expect(lost.length).toBeGreaterThan(90);
        await waitFor(async () => {
          const told = await database.query("select from operator_log where action = 'database.loss'");
          expect(told.length).toBeGreaterThan(0);
          expect(lossesTold(stage)).toHaveLength(told.length);
        });
        await expectPromisesKept(stage, lost);
        print('the primary killed, with standbys behind', stage, `; ${lost.length} lost of ${acknowledged}`);

        const logged = old.log().length;
        old.start();
        await cluster.untilFollowed();
        expect(old.log().slice(logged)).toContain('running pg_rewind');
        const count = 'select count(*)::int as count from events';
        expect(await queryOn(old, database, count)).toEqual(await database.query(count));
        const ours = "select from pg_stat_activity where application_name like 'tallyhook%'";
        expect(await queryOn(old, database, ours)).toEqual([]);

        // As docs/backup.md has it: their senders send them again.
        for (const id of lost) {
          const answer = await post(stage.replicas[0]?.webhooks ?? '', notificationOf(id));
          expect(answer).toMatchObject({ status: 202, eventId: id });
        }
        expect(await stage.lost()).toEqual([]);
        await expectPromisesKept(stage);
      },
    );
  });
});
