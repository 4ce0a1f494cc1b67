// Two installations, each with a database of its own, which share the sources between them: what comes after one leader.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BusMessage, listen, newExchange } from '../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { untilOutboxEmpty } from '../support/facts.ts';
import { createFolder, type TestFolder } from '../support/folder.ts';
import { completed, deliver, newJobId, progress } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';

const [EAST, WEST] = ['east', 'west'] as const;
const SECRETS = { [EAST]: 'a-planted-secret-of-the-east-1', [WEST]: 'a-planted-secret-of-the-west-1' };
type Source = keyof typeof SECRETS;

let folder: TestFolder;

beforeAll(async () => {
  folder = await createFolder();
});

afterAll(() => folder[Symbol.asyncDispose]());

async function startInstallation(options: {
  exchange: string;
  sources: readonly Source[];
  database?: TestDatabase;
}): Promise<TestService> {
  const { exchange, sources, database } = options;
  const entries = sources.map((name) => [name, { secrets: [SECRETS[name]] }] as const);
  const file = await folder.write(`${sources.join('-')}.json`, JSON.stringify(Object.fromEntries(entries)));
  return startTestService({ exchange, env: { SOURCES_FILE: file }, ...(database && { database }) });
}

const send = ({ webhooks }: TestService, source: Source, notification: Parameters<typeof deliver>[1]) =>
  deliver(`${webhooks}/${source}`, notification, { secret: SECRETS[source] });

const sequencesOf = (messages: readonly BusMessage[], job: string) =>
  messages.filter(({ event }) => event.data['job_id'] === job).map(({ event }) => String(event['sequence']));

/** As docs/scale.md has it for the database that a source moves to. */
async function raiseNumbers({ query }: TestDatabase): Promise<void> {
  await query('delete from database_identity');
  await query('select from verify_identity()');
}

test('two installations with an exchange between them: a subscriber has the events of both, and each refuses the sources of the other', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using east = await startInstallation({ exchange, sources: [EAST] });
  await using west = await startInstallation({ exchange, sources: [WEST] });
  const job = newJobId(); // one id at both: the source tells them apart

  expect((await send(east, EAST, completed(job))).status).toBe(202);
  expect((await send(west, WEST, completed(job))).status).toBe(202);
  expect((await send(east, WEST, completed(job))).status).toBe(401);
  await bus.received(2);
  expect(bus.ids().toSorted()).toEqual([`east:${job}:completed`, `west:${job}:completed`]);
  expect(bus.messages.map(({ routingKey }) => routingKey).toSorted()).toEqual([
    'job.completed.east',
    'job.completed.west',
  ]);
});

test('two installations with an exchange each: a queue that is bound to both has the events of both', async () => {
  const exchanges = [newExchange(), newExchange()] as const;
  await using bus = await listen(exchanges[0]);
  await using other = await listen(exchanges[1]);
  await bus.channel.bindQueue(bus.queue, exchanges[1], 'job.#');
  await using east = await startInstallation({ exchange: exchanges[0], sources: [EAST] });
  await using west = await startInstallation({ exchange: exchanges[1], sources: [WEST] });
  const job = newJobId();

  await send(east, EAST, completed(job));
  await send(west, WEST, completed(job));
  await bus.received(2);
  expect(bus.ids().toSorted()).toEqual([`east:${job}:completed`, `west:${job}:completed`]);
  expect((await other.received(1)).map(({ id }) => id)).toEqual([`west:${job}:completed`]);
});

test('a source that moves keeps the order of its jobs and the ids of its events, and what is sent again is published again', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using database = await createTestDatabase();
  await using east = await startInstallation({ exchange, sources: [EAST] });
  await using west = await startInstallation({ exchange, sources: [WEST, EAST], database });
  // As of an older installation: its numbers are lower than those of the one that the source leaves.
  await database.query('alter sequence events_sequence_seq restart');
  const job = newJobId();
  const half = progress(job, 50);
  await send(east, EAST, half);
  await untilOutboxEmpty(east.database);
  await bus.received(1);

  await raiseNumbers(west.database);
  await send(west, EAST, completed(job));
  await bus.received(2);
  const [before = '', after = ''] = sequencesOf(bus.messages, job);
  expect(after > before).toBe(true);

  // The new ledger does not know what the former one acknowledged.
  const again = await send(west, EAST, half);
  expect(again.body).toMatchObject({ outcome: 'accepted' });
  await bus.received(3);
  expect(bus.ids()[2]).toBe(bus.ids()[0]);
  expect(bus.messages[2]?.event['late']).toBe(true);
});
