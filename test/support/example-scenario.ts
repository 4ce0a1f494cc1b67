// What the test of the examples does to them, all at once and on a broker of their own: kills of the broker, stops at work, another
// one that takes over, events that cannot be handled, and a database that goes away. The test judges what became of them.

import { connect } from 'amqplib';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import {
  EVENTS_PER_JOB,
  jobsOf,
  lifeOf,
  messageOf,
  oddMessages,
  publish,
  publishLives,
} from './example-events.ts';
import { type Effect, type Example, type Language, prepareExample } from './examples.ts';
import { createTestPublisher } from './relay.ts';
import type { RunningProcess } from './replica.ts';
import { until } from './until.ts';

/** The jobs whose events arrive while the broker is killed, while an example is stopped, and while another one takes over. */
export const KILLED = jobsOf(200);
export const STOPPED = jobsOf(25, 200);
export const TAKEN_OVER = jobsOf(25, 225);
/** Jobs with one event each. That of `POISON` can have no effect. The last one arrives while there is no database. */
export const [AFTER_KILLS, POISON, AFTER_POISON, LAST] = [
  'job_after_kills',
  'job_poison',
  'job_after_poison',
  'job_last',
] as const;

/** An example in the scenario, and what became of it. */
export type Run = {
  readonly language: Language;
  readonly example: Example;
  /** Those that run. The first one consumes, the others wait. */
  readonly processes: RunningProcess[];
  readonly exits: unknown[];
  /** After it was stopped alone: its effects, and the events in its queue. */
  afterStop: { readonly effects: number; readonly left: number } | undefined;
  readonly deadLetters: string[];
  /** Why it took no further part. */
  trouble: unknown;
};

export type Scenario = AsyncDisposable & {
  readonly runs: readonly Run[];
  readonly messagesIn: (queue: string) => Promise<number>;
};

const ACCOUNT = 'subscriber';
/** The broker is killed after so many events. */
const KILLS = [600, 1_400];
/** Of the examples, at an event that cannot be handled. */
const ATTEMPTS = 4;
const PATIENCE = { limitMs: 60_000 };

/** @param programs of the languages that are on this machine */
export async function playScenario(programs: ReadonlyMap<Language, string>): Promise<Scenario> {
  await using stack = new AsyncDisposableStack();
  const preparing = Promise.all(
    Array.from(programs, async ([language, program]): Promise<Run> => {
      const example = stack.use(await prepareExample(language, program));
      const [afterStop, trouble] = [undefined, undefined];
      return { language, example, processes: [], exits: [], afterStop, deadLetters: [], trouble };
    }),
  );
  preparing.catch(() => {}); // it is awaited after the broker's start
  const broker = stack.use(await startRabbitmq());
  const runs = await preparing;
  const publisher = createTestPublisher({ url: broker.url, exchange: 'conversion.events' });
  stack.defer(publisher.close);
  await until('the exchange is declared', () => publisher.isReady() || undefined, PATIENCE);
  const amqpUrl = await makeAccount(broker);

  /** One step, for all at once. An example that fails takes no further part. */
  async function each(step: (run: Run) => Promise<unknown>): Promise<void> {
    const take = async (run: Run) => {
      try {
        if (run.trouble === undefined) await step(run);
      } catch (error) {
        run.trouble = error;
      }
    };
    await Promise.all(runs.map(take));
  }

  const startEach = () =>
    each(async ({ example, processes }) => void processes.push(await example.start(amqpUrl)));

  async function killBroker(): Promise<void> {
    let count = 0;
    const published = publishLives(publisher, KILLED, { isCopied: true, onPublished: () => (count += 1) });
    for (const limit of KILLS) {
      await until(`${limit} events are published`, () => count >= limit || undefined, PATIENCE);
      await broker.kill('SIGKILL');
      await broker.start();
    }
    await published;
    // Its effect comes after all copies.
    await publish(publisher, firstEventOf(AFTER_KILLS));
    await each((run) => untilEffect(run, AFTER_KILLS));
  }

  /** While it works at the first of these jobs' events, and the others wait for it. */
  async function stopAtWork(jobs: readonly string[] = []): Promise<void> {
    const releases = new Map<Run, () => Promise<void>>();
    await each(async (run) => void releases.set(run, await run.example.store.hold()));
    await publishLives(publisher, jobs);
    await each(async (run) => {
      const first = run.processes.shift();
      first?.child.kill('SIGTERM');
      await releases.get(run)?.();
      run.exits.push(await first?.exited);
    });
  }

  /** An event that cannot be handled, another version and type, and what is no event, twice. Then those that can be handled. */
  async function sendPoison(): Promise<void> {
    await each(({ example }) => example.store.refuse(POISON));
    const other = firstEventOf('job_of_another_version');
    const body = Buffer.from(other.body.toString().replace('progress:1"', 'progress:2"'));
    const none = { ...firstEventOf('job_without_json'), body: Buffer.from('no JSON') };
    const otherType = Buffer.from(other.body.toString().replaceAll('job.progress', 'job.paused'));
    const ignored = [body, otherType].map((changed) => ({ ...other, body: changed }));
    for (const message of [
      firstEventOf(POISON),
      ...ignored,
      none,
      { ...firstEventOf('job_without_id'), body: Buffer.from('{"dataschema":"x:1"}') },
      ...oddMessages(),
      firstEventOf(AFTER_POISON),
    ])
      await publish(publisher, message);
    await each(async (run) => {
      await untilEffect(run, AFTER_POISON);
      const read = async () => {
        const message = await channel.get(`${run.example.queue}.dead`, { noAck: true });
        if (message) run.deadLetters.push(String(message.properties.messageId));
        return run.deadLetters.length >= 3 || undefined;
      };
      await until('three messages are in the dead-letter queue', read, PATIENCE);
    });
  }

  /** While an event arrives, and for longer than one is tried that cannot be handled. */
  async function cutDatabases(): Promise<void> {
    const restores = new Map<Run, (() => Promise<void>) | undefined>();
    await each(async (run) => void restores.set(run, await run.example.store.cut?.()));
    const event = firstEventOf(LAST);
    await publish(publisher, event);
    await each(async (run) => {
      const restore = restores.get(run);
      const failures = () => run.processes[0]?.stderr().split(event.messageId).length ?? 0;
      if (restore) await until('it was tried often', () => failures() > ATTEMPTS || undefined, PATIENCE);
      await restore?.();
      await untilEffect(run, LAST);
    });
  }

  await startEach();
  // RabbitMQ 3.10 writes the name of a new quorum queue to its disk after three seconds. Killed before that, it loses the queue.
  await broker.ctl('eval', 'lists:foreach(fun dets:sync/1, dets:all()).');
  await killBroker();
  const connection = await connect(broker.url);
  stack.defer(() => connection.close());
  const channel = await connection.createChannel();
  const messagesIn = async (queue: string) => (await channel.checkQueue(queue)).messageCount;
  await stopAtWork(STOPPED);
  await each(async (run) => {
    const effects = (await run.example.store.effects()).length;
    const published = (KILLED.length + STOPPED.length) * EVENTS_PER_JOB + 1;
    const read = async () => {
      const left = await messagesIn(run.example.queue);
      run.afterStop = { effects, left };
      return effects + left >= published || undefined;
    };
    // The broker gives back what a consumer held some time after its connection has ended.
    await until('the queue holds all the others', read, PATIENCE);
  });
  await startEach();
  await startEach();
  await each((run) => untilHandled(run, [...KILLED, ...STOPPED]));
  await stopAtWork(TAKEN_OVER);
  await each((run) => untilHandled(run, [...KILLED, ...STOPPED, ...TAKEN_OVER]));
  await sendPoison();
  await cutDatabases();
  await stopAtWork();
  const all = stack.move();
  return { runs, messagesIn, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** With the rights that docs/subscribers-by-hand.md names, and no others. @returns the URL with it */
async function makeAccount(broker: RabbitmqServer): Promise<string> {
  const own = '^history-[a-z]+([.]dead)?$';
  const read = '^(history-[a-z]+([.]dead)?|conversion[.]events)$';
  await broker.ctl(
    'eval',
    `rabbit_auth_backend_internal:add_user(<<"${ACCOUNT}">>, <<"${ACCOUNT}">>, <<"a test">>),
     rabbit_auth_backend_internal:set_permissions(
       <<"${ACCOUNT}">>, <<"/">>, <<"${own}">>, <<"${own}">>, <<"${read}">>, <<"a test">>).`,
  );
  const url = new URL(broker.url);
  [url.username, url.password] = [ACCOUNT, ACCOUNT];
  return url.href;
}

const firstEventOf = (job: string) => messageOf(lifeOf(job)[0] as Effect);

/** Once, or more often. */
function untilHandled({ example }: Run, jobs: readonly string[]): Promise<boolean> {
  const expected = jobs.length * EVENTS_PER_JOB;
  const wanted = new Set(jobs);
  const isDone = async () =>
    (await example.store.effects()).filter(({ job }) => wanted.has(job)).length >= expected || undefined;
  return until(`${expected} events took effect`, isDone, PATIENCE);
}

function untilEffect({ example }: Run, wanted: string): Promise<boolean> {
  const isDone = async () => (await example.store.effects()).some(({ job }) => job === wanted) || undefined;
  return until(`${wanted} took effect`, isDone, PATIENCE);
}
