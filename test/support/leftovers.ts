// A process that lets many things come and go, a few at a time, and prints how many bytes of each the garbage collector has taken for
// long-lived: `node --expose-gc leftovers.ts <part>`, with DATABASE_URL for statements. See src/base/collections/linked-list.ts.

import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { getHeapSpaceStatistics } from 'node:v8';
import { createConnections } from '../../src/http/connections.ts';
import { createDeadlines } from '../../src/intake/deadlines.ts';
import { createJobQueues } from '../../src/intake/job-queues.ts';
import { connectDatabase } from '../../src/ledger/index.ts';
import { createBatch } from '../../src/relay/batch.ts';
import type { Entry } from '../../src/relay/entry.ts';
import { createResults } from '../../src/relay/results.ts';
import { createSentMessages } from '../../src/relay/sent-messages.ts';
import { createWindow } from '../../src/relay/window.ts';
import { createTestLog } from './test-log.ts';

const ITEMS = 50_000;
const AT_ONCE = 20;
/** What each holds, in bytes: enough to be told from what a part itself needs. */
export const HELD_BYTES = 1_600;
const now = () => performance.now();

const held = () => Array.from({ length: HELD_BYTES / 8 }, () => 1);
const position = (number: number) => String(1_000_000 + number);

/** What a delivery does with each part: it comes, and what is returned lets it go. */
const PARTS: Readonly<Record<string, () => (number: number) => () => void>> = {
  deadlines: () => {
    const deadlines = createDeadlines({ now });
    return () => {
      const what = held();
      const deadline = deadlines.add(now() + 60_000, () => void what.length);
      return () => deadlines.remove(deadline);
    };
  },
  'job queues': () => {
    const queues = createJobQueues({ now, onLate: () => {} });
    return (number) => {
      const what = held();
      queues.add({
        delivery: deliveryOf(number),
        sinceMs: 0,
        deadlineMs: Infinity,
        bytes: 1,
        resolve: () => void what.length,
        reject: () => {},
        previous: undefined,
        next: undefined,
      });
      return () => queues.release(queues.take({ deliveries: 1, bytes: 1 }));
    };
  },
  'sent messages': () => {
    const messages = createSentMessages(now);
    return (number) => {
      const what = held();
      const message = { messageId: position(number) } as Parameters<typeof messages.add>[0];
      const sent = messages.add(message, () => void what.length);
      return () => messages.confirm(sent);
    };
  },
  window: () => {
    const window = createWindow();
    return (number) => {
      const entry = entryOf(number);
      window.admit(entry);
      const lane = window.take();
      if (lane === undefined) throw new Error('it is not ready');
      return () => {
        window.advance(lane);
        window.forget(entry);
      };
    };
  },
  results: () => {
    const results = createResults();
    return (number) => {
      const [one, other] = [entryOf(number), entryOf(number)];
      const batch = createBatch(position(number), { size: 2 });
      const confirmed = (entry: Entry) =>
        results.add({
          entry: { ...entry, batch },
          number,
          next: 'delete',
          publication: { result: 'confirmed', durationMs: 1 },
          retryInMs: 0,
        });
      confirmed(one);
      return () => {
        confirmed(other);
        results.take();
      };
    };
  },
  connections: () => {
    const connections = createConnections({
      name: 'test',
      limits: { connections: 10, perAddress: 10 },
      now,
      log: createTestLog().log,
      observe: () => {},
    });
    const socket = Object.assign(new EventEmitter(), { remoteAddress: '192.0.2.1' }) as unknown as Socket;
    connections.admit(socket);
    return () => {
      const response = Object.assign(new EventEmitter(), { req: { socket }, what: held() });
      connections.begin(response as unknown as ServerResponse);
      return () => response.emit('close');
    };
  },
};

export const PART_NAMES = Object.keys(PARTS);

type Delivery = Parameters<ReturnType<typeof createJobQueues>['add']>[0]['delivery'];

const deliveryOf = (number: number): Delivery =>
  ({ outcome: 'event', source: 'default', event: { jobId: position(number) } }) as Delivery;

function entryOf(number: number): Entry {
  const jobId = position(number);
  return {
    position: position(number),
    source: 'default',
    jobId,
    attempts: 0,
    data: '',
    what: held(),
  } as unknown as Entry;
}

const longLived = () =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')?.space_used_size ?? 0;

/** Bytes that became long-lived since the last look. What is collected meanwhile is not subtracted. */
function watchLongLived(): { readonly look: () => void; readonly bytes: () => number } {
  let last = longLived();
  let bytes = 0;
  return {
    look: () => {
      const present = longLived();
      bytes += Math.max(0, present - last);
      last = present;
    },
    bytes: () => bytes,
  };
}

const WARM_UP = 1_000;

function leftoversOf(part: string): number {
  const come = PARTS[part]?.();
  if (come === undefined) throw new Error(`there is no part ${part}`);
  const present: (() => void)[] = [];
  const turn = (number: number) => {
    present.push(come(number));
    if (present.length > AT_ONCE) present.shift()?.();
  };
  let number = 0;
  while (number < WARM_UP) turn(number++);
  globalThis.gc?.(); // what is present is old from now on, as it is now and then in any process
  const watch = watchLongLived();
  for (; number < ITEMS; number += 1) {
    turn(number);
    if (number % 100 === 0) watch.look();
  }
  return watch.bytes() / ITEMS;
}

const STATEMENTS = 10_000;
export const STATEMENTS_PART = 'statements';

/** Of statements that the ledger's connections run, with values of HELD_BYTES. */
async function leftoversOfStatements(url: string): Promise<number> {
  const timeouts = { statementTimeoutMs: 5_000, lockTimeoutMs: 5_000, queryTimeoutMs: 6_000 };
  const { log } = createTestLog();
  const connection = connectDatabase({ url, name: 'leftovers', connections: 2, ...timeouts, log });
  const statement = { name: 'length', text: 'select length($1)' };
  const run = (number: number) => connection.execute(statement, [String(number).padEnd(HELD_BYTES, '-')]);
  for (let number = 0; number < WARM_UP; number += 1) await run(number);
  const watch = watchLongLived();
  for (let number = 0; number < STATEMENTS; number += 2) {
    await Promise.all([run(number), run(number + 1)]);
    watch.look();
  }
  await connection.close();
  return watch.bytes() / STATEMENTS;
}

const [, script, part] = process.argv;
if (script === import.meta.filename && part !== undefined) {
  const bytes =
    part === STATEMENTS_PART
      ? await leftoversOfStatements(process.env['DATABASE_URL'] ?? '')
      : leftoversOf(part);
  process.stdout.write(String(bytes));
}
