// The subscribers in examples/ go through the same troubles at the same time, each with a queue and a database of its own: their
// broker is killed while events and copies arrive, they are stopped at work, alone and with another one that waits, they get what
// they cannot handle, and their database goes away.

import { type Channel, type ChannelModel, connect } from 'amqplib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import type { Publisher } from '../../src/relay/publisher.ts';
import {
  EVENTS_PER_JOB,
  jobsOf,
  lifeOf,
  messageOf,
  publish,
  publishLives,
} from '../support/example-events.ts';
import { type Effect, type Example, type Language, prepareExample, PROGRAMS } from '../support/examples.ts';
import type { RunningCommand } from '../support/replica.ts';
import { createTestPublisher } from '../support/relay.ts';
import { until } from '../support/until.ts';

const EXCHANGE = 'conversion.events';
/** The jobs whose events arrive while the broker is killed, while an example is stopped, and while another one takes over. */
const [killed, stopped, takenOver] = [jobsOf(200), jobsOf(25, 200), jobsOf(25, 225)];
const jobs = [...killed, ...stopped, ...takenOver];
const ACCOUNT = 'subscriber';
/** The broker is killed after so many events. */
const KILLS = [600, 1_400];
/** Of the examples, for an event that cannot be handled. */
const ATTEMPTS = 4;
const PATIENCE = { limitMs: 60_000 };

/** An example in the scenario, and what it did. */
type Run = {
  readonly language: Language;
  readonly example: Example;
  /** The first one consumes, the others wait. */
  processes: RunningCommand[];
  readonly exits: unknown[];
  afterStop: { effects: number; left: number } | undefined;
  deadLetters: string[];
  trouble: unknown;
};

const languages = Object.keys(PROGRAMS) as Language[];
let broker: RabbitmqServer;
let publisher: Publisher;
let connection: ChannelModel;
let channel: Channel;
let runs: readonly Run[] = [];

beforeAll(async () => {
  const programs = languages.flatMap((language) => {
    const program = PROGRAMS[language];
    return program === undefined ? [] : [{ language, program }];
  });
  const [started, ...examples] = await Promise.all([
    startRabbitmq(),
    ...programs.map(async ({ language, program }) => ({
      language,
      example: await prepareExample(language, program),
    })),
  ]);
  broker = started;
  publisher = createTestPublisher({ url: broker.url, exchange: EXCHANGE });
  await until('the exchange is declared', () => publisher.isReady() || undefined, PATIENCE);
  runs = examples.map((example) => ({
    ...example,
    processes: [],
    exits: [],
    afterStop: undefined,
    deadLetters: [],
    trouble: undefined,
  }));
  await makeAccount();
  await startEach();
  // RabbitMQ 3.10 writes the name of a new quorum queue to its disk after three seconds. Killed before that, it loses the queue.
  await broker.ctl('eval', 'lists:foreach(fun dets:sync/1, dets:all()).');
  await killBroker();
  await openChannel();
  await stopAtWork(stopped);
  await each(async (run) => {
    const [effects, left] = [await effectsOf(run), await messagesIn(run.example.queue)];
    run.afterStop = { effects: effects.length, left };
  });
  await startEach();
  await startEach();
  await untilHandled([...killed, ...stopped]);
  await stopAtWork(takenOver);
  await untilHandled(jobs);
  await sendPoison();
  await cutDatabases();
  await stopAtWork([]);
}, 300_000);

afterAll(async () => {
  await connection?.close();
  await publisher?.close();
  for (const { example } of runs) await example[Symbol.asyncDispose]();
  await broker?.close();
});

/** One step of the scenario, for all at once. An example that fails takes no further part in it. */
async function each(step: (run: Run) => Promise<void>): Promise<void> {
  await Promise.all(
    runs.map(async (run) => {
      try {
        if (run.trouble === undefined) await step(run);
      } catch (error) {
        run.trouble = error;
      }
    }),
  );
}

/** With the rights that docs/subscribers-by-hand.md names, and no others. */
async function makeAccount(): Promise<void> {
  const own = '^history-[a-z]+([.]dead)?$';
  const read = '^(history-[a-z]+([.]dead)?|conversion[.]events)$';
  await broker.ctl(
    'eval',
    `rabbit_auth_backend_internal:add_user(<<"${ACCOUNT}">>, <<"${ACCOUNT}">>, <<"a test">>),
     rabbit_auth_backend_internal:set_permissions(
       <<"${ACCOUNT}">>, <<"/">>, <<"${own}">>, <<"${own}">>, <<"${read}">>, <<"a test">>).`,
  );
}

function accountUrl(): string {
  const url = new URL(broker.url);
  [url.username, url.password] = [ACCOUNT, ACCOUNT];
  return url.href;
}

const startEach = () => each(async (run) => void run.processes.push(await run.example.start(accountUrl())));

async function killBroker(): Promise<void> {
  let count = 0;
  const published = publishLives(publisher, killed, { isCopied: true, onPublished: () => (count += 1) });
  for (const limit of KILLS) {
    await until(`${limit} events are published`, () => count >= limit || undefined, PATIENCE);
    await broker.kill('SIGKILL');
    await broker.start();
  }
  await published;
  await untilHandled(killed);
}

async function openChannel(): Promise<void> {
  connection = await connect(broker.url);
  channel = await connection.createChannel();
}

/** While it works at the first of these jobs' events, and the others wait for it. */
async function stopAtWork(arriving: readonly string[]): Promise<void> {
  const releases = new Map<Run, () => Promise<void>>();
  await each(async (run) => void releases.set(run, await run.example.store.hold()));
  await publishLives(publisher, arriving);
  await each(async (run) => {
    const process = run.processes.shift();
    process?.child.kill('SIGTERM');
    await releases.get(run)?.();
    run.exits.push(await process?.exited);
  });
}

const effectsOf = ({ example }: Run) => example.store.effects();
const messagesIn = async (queue: string) => (await channel.checkQueue(queue)).messageCount;

/** Or more often than once. */
const untilHandled = (arrived: readonly string[]) =>
  each(async (run) => {
    const expected = arrived.length * EVENTS_PER_JOB;
    await until(
      `${expected} events took effect`,
      async () => ((await effectsOf(run)).length >= expected ? true : undefined),
      PATIENCE,
    );
  });

const [poison, after, last] = ['job_poison', 'job_after', 'job_last'];
const untilEffect = (run: Run, wanted: string) =>
  until(
    `${wanted} took effect`,
    async () => (await effectsOf(run)).some(({ job }) => job === wanted) || undefined,
    PATIENCE,
  );
const firstEventOf = (job: string) => messageOf(lifeOf(job)[0] as Effect);

/** An event that cannot be handled, another version of an event, and what is no event. Then one that can be handled. */
async function sendPoison(): Promise<void> {
  await each(({ example }) => example.store.refuse(poison));
  const other = firstEventOf('job_of_another_version');
  const body = Buffer.from(other.body.toString().replace('progress:1"', 'progress:2"'));
  const none = { ...firstEventOf('job_without_json'), body: Buffer.from('no JSON') };
  for (const message of [firstEventOf(poison), { ...other, body }, none, firstEventOf(after)])
    await publish(publisher, message);
  await each(async (run) => {
    await untilEffect(run, after);
    const read = async () => {
      const message = await channel.get(`${run.example.queue}.dead`, { noAck: true });
      if (message) run.deadLetters.push(String(message.properties.messageId));
      return run.deadLetters.length >= 2 ? true : undefined;
    };
    await until('two events are in the dead-letter queue', read, PATIENCE);
  });
}

/** While an event arrives, and for longer than one is tried that cannot be handled. A file cannot be cut off. */
async function cutDatabases(): Promise<void> {
  const restores = new Map<Run, (() => Promise<void>) | undefined>();
  await each(async (run) => void restores.set(run, await run.example.store.cut?.()));
  const event = firstEventOf(last);
  await publish(publisher, event);
  await each(async (run) => {
    const failures = () => run.processes[0]?.stderr().split(event.messageId).length ?? 0;
    const restore = restores.get(run);
    if (restore !== undefined)
      await until('it was tried often', () => failures() > ATTEMPTS || undefined, PATIENCE);
    await restore?.();
    await untilEffect(run, last);
  });
}

function runOf(language: Language): Run {
  const run = runs.find((other) => other.language === language);
  if (run === undefined || run.trouble !== undefined) throw run?.trouble;
  return run;
}

for (const language of languages) {
  const isMissing = PROGRAMS[language] === undefined;
  const reason = isMissing ? ' (skipped: what it needs is not on this machine)' : '';

  describe.skipIf(isMissing)(`the subscriber in ${language}${reason}`, () => {
    test('handles each event once, and those of a job in order, over kills of the broker and copies', async () => {
      const effects = await effectsOf(runOf(language));

      const byJob = Object.groupBy(effects, ({ job }) => job);
      for (const job of jobs) expect(byJob[job]).toEqual(lifeOf(job));
      expect(effects.slice(jobs.length * EVENTS_PER_JOB).map(({ job }) => job)).toEqual([after, last]);
    });

    test('ends the event at work when it is stopped, and loses and repeats none', () => {
      const { afterStop, exits } = runOf(language);

      const before = killed.length * EVENTS_PER_JOB;
      const all = before + stopped.length * EVENTS_PER_JOB;
      expect(afterStop?.effects).toBeGreaterThan(before);
      expect(afterStop?.left).toBe(all - (afterStop?.effects ?? 0));
      expect(exits).toEqual(Array.from({ length: 3 }, () => ({ code: 0, signal: null })));
    });

    test('waits for a database that is away, and gives up no event', async () => {
      const { example } = runOf(language);

      expect((await effectsOf(runOf(language))).map(({ job }) => job)).toContain(last);
      expect(await messagesIn(`${example.queue}.dead`)).toBe(0);
    });

    test('puts what it cannot handle into the dead-letter queue, and goes on', async () => {
      const { deadLetters, example } = runOf(language);

      expect(deadLetters).toEqual([
        'default:job_poison:processing:0',
        'default:job_without_json:processing:0',
      ]);
      expect(await messagesIn(example.queue)).toBe(0);
      expect((await effectsOf(runOf(language))).map(({ job }) => job)).toContain(after);
    });
  });
}
