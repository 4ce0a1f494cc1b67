import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type BatchWriterLimits, createBatchWriter } from '../../../src/intake/batch-writer.ts';
import type { DeliveryRecord, RecordedDelivery } from '../../../src/ledger/recording/record.ts';
import { eventRecord, refusedRecord } from '../../support/records.ts';
import { completed, failed, progress } from '../../support/sender.ts';
import { waitFor } from '../../support/waits.ts';

const LIMITS: BatchWriterLimits = {
  queueDeliveries: 1_000,
  queueBytes: 64 * 1024 * 1024,
  batchDeliveries: 100,
  batchBytes: 4 * 1024 * 1024,
  batchesInFlight: 1,
};
const NEVER = Number.MAX_SAFE_INTEGER;
const ACCEPTED: RecordedDelivery = { outcome: 'accepted', late: false };

/** What stands in for the ledger: every write waits until the test lets it go or fail. */
function createLedger() {
  type Write = {
    readonly batch: readonly DeliveryRecord[];
    readonly done: boolean;
    readonly finish: (error?: Error) => void;
  };
  const writes: Write[] = [];
  return {
    writes,
    ids: () => writes.map(({ batch }) => batch.map(({ id }) => id)),
    /** Waits for the write that comes as the `nth` (from 1). */
    write: (nth: number) =>
      waitFor(
        () => {
          const write = writes[nth - 1];
          if (write === undefined) throw new Error(`${writes.length} writes so far`);
          return write;
        },
        { interval: 1 },
      ),
    /** Lets every write go once no other begins, the youngest of those in flight first, until all of `answers` are given. */
    finishAll: async (answers: readonly Promise<unknown>[], look = (_open: readonly Write[]) => {}) => {
      let isOver = false;
      const all = Promise.all(answers).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        const begun = writes.length;
        await nextTurn();
        const open = writes.filter(({ done }) => !done);
        look(open);
        if (writes.length === begun) open.at(-1)?.finish();
      }
      await all;
    },
    record: (batch: readonly DeliveryRecord[]) =>
      new Promise<RecordedDelivery[]>((resolve, reject) => {
        const write = {
          batch,
          done: false,
          finish: (error?: Error) => {
            write.done = true;
            if (error) reject(error);
            else resolve(batch.map(() => ACCEPTED));
          },
        };
        writes.push(write);
      }),
  };
}

function createWriter(
  record: (batch: readonly DeliveryRecord[]) => Promise<RecordedDelivery[]>,
  limits: Partial<BatchWriterLimits> = {},
) {
  const clock = { ms: 0 };
  const batches: { deliveries: number; failed: boolean }[] = [];
  const relay = { isFull: false, ease: () => {} };
  const writer = createBatchWriter({
    record,
    limits: { ...LIMITS, ...limits },
    backpressure: {
      isFull: () => relay.isFull,
      onEase: (listener) => {
        relay.ease = listener;
      },
    },
    now: () => clock.ms,
    observe: ({ deliveries, failed: hasFailed }) => batches.push({ deliveries, failed: hasFailed }),
  });
  return { writer, clock, batches, relay };
}

const pgError = (code: string) => Object.assign(new Error(code), { code });
/** What a promise is rejected with, looked at from the start. */
const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => new Error('it was not rejected'),
    (error: unknown) => error,
  );
const ids = (records: readonly DeliveryRecord[]) => records.map(({ id }) => id);

/** A write has taken 10 ms. */
async function afterFirstWrite(limits: Partial<BatchWriterLimits> = {}) {
  const ledger = createLedger();
  const made = createWriter(ledger.record, limits);
  const first = made.writer.submit(eventRecord(completed('first')), NEVER);
  const write = await ledger.write(1);
  made.clock.ms += 10;
  write.finish();
  await first;
  return { ...made, ledger };
}

describe('a relay that has much to publish', () => {
  test('delays a write until it has less', async () => {
    const { writer, ledger, relay } = await afterFirstWrite();
    relay.isFull = true;
    const answers = ['a', 'b'].map((job) => writer.submit(eventRecord(completed(job)), NEVER));
    await nextTurn();
    await nextTurn();
    expect(ledger.writes).toHaveLength(1);

    relay.isFull = false;
    relay.ease();
    (await ledger.write(2)).finish();
    await expect(Promise.all(answers)).resolves.toHaveLength(2);
  });

  test('delays no delivery for longer than four writes take', async () => {
    const { writer, ledger, relay, clock } = await afterFirstWrite();
    relay.isFull = true;
    const early = writer.submit(eventRecord(completed('a')), NEVER);
    clock.ms += 39;
    const late = writer.submit(eventRecord(completed('b')), NEVER);
    await nextTurn();
    await nextTurn();
    expect(ledger.writes).toHaveLength(1);

    clock.ms += 1;
    const write = await ledger.write(2); // nobody submits, and the relay stays as it is
    expect(write.batch).toHaveLength(2);
    write.finish();
    await expect(Promise.all([early, late])).resolves.toHaveLength(2);
  });

  test('delays no delivery for longer than an eighth of its time, however long a write takes', async () => {
    const { writer, ledger, relay, clock } = await afterFirstWrite();
    const slow = writer.submit(eventRecord(completed('slow')), NEVER);
    const write = await ledger.write(2);
    clock.ms += 5_000;
    write.finish();
    await slow;
    relay.isFull = true;
    const first = writer.submit(eventRecord(completed('a')), clock.ms + 8_000);
    clock.ms += 1_000;
    const second = writer.submit(eventRecord(completed('b')), NEVER);

    (await ledger.write(3)).finish();
    await expect(Promise.all([first, second])).resolves.toHaveLength(2);
  });

  test('delays no further write of a job that has waited so long, although a younger job is first in turn', async () => {
    const { writer, ledger, relay, clock } = await afterFirstWrite();
    relay.isFull = true;
    const busy = [10, 20, 30].map((percent) => writer.submit(eventRecord(progress('busy', percent)), NEVER));
    clock.ms += 40;
    const write = await ledger.write(2);
    const young = writer.submit(eventRecord(completed('young')), NEVER);
    clock.ms += 10;
    write.finish();

    const next = await ledger.write(3);
    expect(next.batch).toHaveLength(2);
    next.finish();
    (await ledger.write(4)).finish();
    await expect(Promise.all([...busy, young])).resolves.toHaveLength(4);
  });

  test('delays a write no longer than four of the last ones take, when those before took longer', async () => {
    const { writer, ledger, relay, clock } = await afterFirstWrite({ batchesInFlight: 2 });
    const slow = writer.submit(eventRecord(completed('slow')), NEVER);
    const long = await ledger.write(2);
    clock.ms += 60_000;
    const quick = writer.submit(eventRecord(completed('quick')), NEVER);
    const short = await ledger.write(3);
    long.finish();
    await slow;
    relay.isFull = true;
    const waiting = writer.submit(eventRecord(completed('waiting')), NEVER);
    clock.ms += 5;
    short.finish();
    await quick;
    await nextTurn();

    clock.ms += 15;
    (await ledger.write(4)).finish();
    await expect(waiting).resolves.toMatchObject({ outcome: 'accepted' });
  });

  test('does not delay what waits behind such a delivery, so the queue does not grow', async () => {
    const { writer, ledger, relay, clock } = await afterFirstWrite({ batchDeliveries: 2 });
    relay.isFull = true;
    const answers = ['a', 'b', 'c', 'd'].map((job) => writer.submit(eventRecord(completed(job)), NEVER));
    clock.ms += 40;
    answers.push(writer.submit(eventRecord(completed('e')), NEVER));

    for (const nth of [2, 3]) {
      const write = await ledger.write(nth);
      clock.ms += 10;
      write.finish();
    }
    await expect(Promise.all(answers.slice(0, 4))).resolves.toHaveLength(4);
    await nextTurn();
    expect(ledger.writes).toHaveLength(3);
    relay.isFull = false;
    relay.ease();
    (await ledger.write(4)).finish();
    await expect(Promise.all(answers)).resolves.toHaveLength(5);
  });
});

describe('grouping', () => {
  test('what arrives while a write is in flight shares the next one, in order', async () => {
    const ledger = createLedger();
    const { writer, batches } = createWriter(ledger.record);
    const records = ['a', 'b', 'c', 'd'].map((job) => eventRecord(completed(job)));

    const first = records.slice(0, 1).map((record) => writer.submit(record, NEVER));
    const write = await ledger.write(1);
    const others = records.slice(1).map((record) => writer.submit(record, NEVER));
    write.finish();
    (await ledger.write(2)).finish();

    await expect(Promise.all([...first, ...others])).resolves.toHaveLength(4);
    expect(ledger.ids()).toEqual([ids(records.slice(0, 1)), ids(records.slice(1))]);
    expect(batches).toEqual([
      { deliveries: 1, failed: false },
      { deliveries: 3, failed: false },
    ]);
  });

  test('the next write begins before those of the last one are answered', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record);
    const order: string[] = [];
    const first = writer
      .submit(eventRecord(completed('a')), NEVER)
      .then(() => order.push(`${ledger.writes.length}`));
    const write = await ledger.write(1);
    const second = writer.submit(eventRecord(completed('b')), NEVER);
    write.finish();
    await first;
    expect(order).toEqual(['2']);
    (await ledger.write(2)).finish();
    await second;
  });

  test('a delivery is answered after its own write and not before', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, { batchesInFlight: 2 });
    const answered: string[] = [];
    const first = writer.submit(eventRecord(completed('a')), NEVER).then(() => answered.push('a'));
    await ledger.write(1);
    const second = writer.submit(eventRecord(completed('b')), NEVER).then(() => answered.push('b'));

    (await ledger.write(2)).finish();
    await second;
    expect(answered).toEqual(['b']);
    (await ledger.write(1)).finish();
    await first;
    expect(answered).toEqual(['b', 'a']);
  });

  test('copies of one event go together, and the next event of the job waits for the next batch', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record);
    const blocker = writer.submit(eventRecord(completed('blocker')), NEVER);
    await ledger.write(1);
    const copies = [45, 45, 45].map((percent) => eventRecord(progress('a', percent)));
    const other = eventRecord(completed('b'));
    const later = [eventRecord(progress('a', 50)), eventRecord(completed('a')), eventRecord(completed('a'))];
    const answers = [...copies, other, ...later].map((record) => writer.submit(record, NEVER));

    for (const nth of [1, 2, 3, 4]) (await ledger.write(nth)).finish();
    await Promise.all([blocker, ...answers]);

    expect(ledger.ids().slice(1)).toEqual([
      ids([...copies, other]),
      ids(later.slice(0, 1)),
      ids(later.slice(1)),
    ]);
  });

  test('a copy that comes after another event of its job does not overtake it', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record);
    const blocker = writer.submit(eventRecord(completed('blocker')), NEVER);
    await ledger.write(1);
    const records = [
      eventRecord(progress('a', 45)),
      eventRecord(progress('a', 50)),
      eventRecord(progress('a', 45)),
    ];
    const answers = records.map((record) => writer.submit(record, NEVER));

    for (const nth of [1, 2, 3, 4]) (await ledger.write(nth)).finish();
    await Promise.all([blocker, ...answers]);

    expect(ledger.ids().slice(1)).toEqual(records.map(({ id }) => [id]));
  });

  test('the same job id of two sources is two jobs', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record);
    const blocker = writer.submit(eventRecord(completed('blocker')), NEVER);
    await ledger.write(1);
    const records = [
      eventRecord(completed('a')),
      eventRecord(failed('a'), { source: 'team-a' }),
      eventRecord(progress('a', 1), { source: 'team-b' }),
    ];
    const answers = records.map((record) => writer.submit(record, NEVER));

    for (const nth of [1, 2]) (await ledger.write(nth)).finish();
    await Promise.all([blocker, ...answers]);

    expect(ledger.ids()[1]).toEqual(ids(records));
  });

  test('deliveries that touch no job wait for none', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record);
    const blocker = writer.submit(eventRecord(completed('blocker')), NEVER);
    await ledger.write(1);
    const records = [refusedRecord(), refusedRecord(), refusedRecord()];
    const answers = records.map((record) => writer.submit(record, NEVER));

    for (const nth of [1, 2]) (await ledger.write(nth)).finish();
    await Promise.all([blocker, ...answers]);

    expect(ledger.ids()[1]).toEqual(ids(records));
  });

  test('several batches in flight never hold the same job, and keep its order', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, { batchesInFlight: 4, batchDeliveries: 3 });
    const jobs = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const records = Array.from({ length: 100 }, (_, index) =>
      eventRecord(progress(jobs[(index * 7) % jobs.length] ?? 'a', index)),
    );
    const answers = records.map((record) => writer.submit(record, NEVER));
    let most = 0;

    await ledger.finishAll(answers, (open) => {
      const held = open.flatMap(({ batch }) => batch.map(({ jobId }) => jobId));
      expect(new Set(held).size).toBe(held.length);
      most = Math.max(most, open.length);
    });

    expect(most).toBeGreaterThan(1);
    const written = ledger.writes.flatMap(({ batch }) => batch);
    expect(written).toHaveLength(records.length);
    for (const job of jobs) {
      expect(ids(written.filter(({ jobId }) => jobId === job))).toEqual(
        ids(records.filter(({ jobId }) => jobId === job)),
      );
    }
  });
});

describe('when a write begins', () => {
  test('what arrives in one turn goes in one write', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, { batchesInFlight: 4 });
    const records = ['a', 'b', 'c'].map((job) => eventRecord(completed(job)));

    const answers = records.map((record) => writer.submit(record, NEVER));
    (await ledger.write(1)).finish();

    await Promise.all(answers);
    expect(ledger.ids()).toEqual([ids(records)]);
  });

  test('beside a write in flight another begins only when as many jobs wait as that one holds', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, { batchesInFlight: 4 });
    const records = ['a', 'b', 'c', 'd', 'e', 'f'].map((job) => eventRecord(completed(job)));

    const answers = records.slice(0, 3).map((record) => writer.submit(record, NEVER));
    await ledger.write(1);
    for (const record of records.slice(3, 5)) answers.push(writer.submit(record, NEVER));
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    expect(ledger.writes).toHaveLength(1);
    answers.push(writer.submit(records[5] as DeliveryRecord, NEVER));
    await ledger.write(2);
    await ledger.finishAll(answers);

    expect(ledger.ids()).toEqual([ids(records.slice(0, 3)), ids(records.slice(3))]);
  });

  test('the smallest write in flight says how many have to wait', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, { batchesInFlight: 3 });
    const submit = (...jobs: string[]) =>
      jobs.map((job) => writer.submit(eventRecord(completed(job)), NEVER));

    const answers = submit('a');
    await ledger.write(1);
    answers.push(...submit('b', 'c', 'd'));
    await ledger.write(2);
    answers.push(...submit('e'));
    await ledger.write(3);
    await ledger.finishAll(answers);

    expect(ledger.writes.map(({ batch }) => batch.length)).toEqual([1, 3, 1]);
  });

  test('what waits goes when nothing is in flight any more, however little it is', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, { batchesInFlight: 4 });
    const many = ['a', 'b', 'c'].map((job) => writer.submit(eventRecord(completed(job)), NEVER));
    const write = await ledger.write(1);
    const one = writer.submit(eventRecord(completed('d')), NEVER);

    write.finish();
    (await ledger.write(2)).finish();

    await expect(Promise.all([...many, one])).resolves.toHaveLength(4);
  });

  test.for([
    ['deliveries', { batchDeliveries: 2 }],
    ['bytes', { batchBytes: 4_000 }],
  ] as const)('full of %s, write follows write', async ([, limits]) => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, limits);

    const answers = ['a', 'b', 'c', 'd', 'e', 'f'].map((job) =>
      writer.submit(eventRecord(completed(job)), NEVER),
    );
    await ledger.finishAll(answers);

    expect(ledger.writes).toHaveLength(3);
  });
});

describe('bounds', () => {
  test('a batch holds at most so many deliveries, copies included', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, { batchDeliveries: 4 });
    const blocker = writer.submit(eventRecord(completed('blocker')), NEVER);
    await ledger.write(1);
    const records = [
      ...Array.from({ length: 6 }, () => eventRecord(completed('a'))),
      eventRecord(completed('b')),
      eventRecord(completed('c')),
    ];
    const answers = records.map((record) => writer.submit(record, NEVER));

    for (const nth of [1, 2, 3]) (await ledger.write(nth)).finish();
    await Promise.all([blocker, ...answers]);

    expect(ledger.writes.map(({ batch }) => batch.length)).toEqual([1, 4, 4]);
  });

  test.for([
    ['of many jobs', (index: number) => `job_${index}`],
    ['that are copies of one event', () => 'job_1'],
  ] as const)('a batch of deliveries %s goes over its bytes by one body at most', async ([, jobOf]) => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, { batchBytes: 100_000 });
    const blocker = writer.submit(eventRecord(completed('blocker')), NEVER);
    await ledger.write(1);
    const answers = Array.from({ length: 12 }, (_, index) =>
      writer.submit(eventRecord(completed(jobOf(index), { pad: 'x'.repeat(40_000) })), NEVER),
    );

    await ledger.finishAll([blocker, ...answers]);

    for (const { batch } of ledger.writes) expect(batch.length).toBeLessThanOrEqual(3);
    expect(ledger.writes.length).toBeGreaterThanOrEqual(5);
  });

  test('one body larger than a batch goes alone', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, { batchBytes: 1_000 });
    const answer = writer.submit(eventRecord(completed('a', { pad: 'x'.repeat(40_000) })), NEVER);

    (await ledger.write(1)).finish();

    await expect(answer).resolves.toMatchObject({ outcome: 'accepted' });
  });

  test('beyond so many deliveries the queue is full, at once and without a write', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, { queueDeliveries: 3 });
    const first = writer.submit(eventRecord(completed('a')), NEVER);
    const write = await ledger.write(1);
    const others = ['b', 'c'].map((job) => writer.submit(eventRecord(completed(job)), NEVER));

    expect(writer.hasRoom()).toBe(false);
    await expect(writer.submit(eventRecord(completed('d')), NEVER)).rejects.toMatchObject({
      name: 'UnavailableError',
      code: 'full',
    });

    // What is being written still holds its place: it is in memory, too.
    write.finish();
    await first;
    expect(writer.hasRoom()).toBe(true);
    (await ledger.write(2)).finish();
    await Promise.all(others);
    expect(writer.waiting()).toEqual({ deliveries: 0, bytes: 0 });
    expect(ledger.ids().flat()).toHaveLength(3);
  });

  test('beyond its limit of bytes the queue is full, but a small delivery may still fit', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record, { queueBytes: 100_000 });
    const [large, another] = [1, 2].map(() => eventRecord(completed('a', { pad: 'x'.repeat(60_000) })));
    const first = writer.submit(large as DeliveryRecord, NEVER);
    const write = await ledger.write(1);

    await expect(writer.submit(another as DeliveryRecord, NEVER)).rejects.toMatchObject({ code: 'full' });
    const small = writer.submit(eventRecord(completed('b')), NEVER);
    write.finish();
    (await ledger.write(2)).finish();

    await expect(Promise.all([first, small])).resolves.toHaveLength(2);
  });
});

describe('deadlines', () => {
  test('a delivery that still waits past its deadline is late and never written', async () => {
    const ledger = createLedger();
    const { writer, clock } = createWriter(ledger.record);
    const first = writer.submit(eventRecord(completed('a')), 100);
    const write = await ledger.write(1);
    const late = errorOf(writer.submit(eventRecord(completed('b')), 100));
    const inTime = writer.submit(eventRecord(completed('c')), 200);

    clock.ms = 100;
    write.finish();
    (await ledger.write(2)).finish();

    expect(await late).toMatchObject({ name: 'UnavailableError', code: 'late' });
    // The first one was being written already: its outcome is known, so it is told.
    await expect(Promise.all([first, inTime])).resolves.toHaveLength(2);
    expect(ledger.writes.flatMap(({ batch }) => batch.map(({ jobId }) => jobId))).toEqual(['a', 'c']);
  });

  test('a lane of nothing but late deliveries goes away, and its job goes on', async () => {
    const ledger = createLedger();
    const { writer, clock } = createWriter(ledger.record);
    const first = writer.submit(eventRecord(completed('a')), 100);
    const write = await ledger.write(1);
    const late = [completed('b'), completed('b'), failed('b')].map((content) =>
      errorOf(writer.submit(eventRecord(content), 50)),
    );

    clock.ms = 60;
    write.finish();
    await first;
    expect(await Promise.all(late)).toMatchObject([{ code: 'late' }, { code: 'late' }, { code: 'late' }]);
    expect(writer.waiting()).toEqual({ deliveries: 0, bytes: 0 });

    const again = writer.submit(eventRecord(completed('b')), NEVER);
    (await ledger.write(2)).finish();
    await expect(again).resolves.toMatchObject({ outcome: 'accepted' });
  });
});

describe('failures', () => {
  test.for(['40P01', '40001'])('%s is retried until it passes, and nobody hears of it', async (code) => {
    let failures = 3;
    const { writer, batches } = createWriter((batch) => {
      if (failures-- > 0) return Promise.reject(pgError(code));
      return Promise.resolve(batch.map(() => ACCEPTED));
    });

    await expect(writer.submit(eventRecord(completed('a')), NEVER)).resolves.toMatchObject({
      outcome: 'accepted',
    });
    expect(batches).toEqual([{ deliveries: 1, failed: false }]);
  });

  test('a deadlock that never ends is given up after some tries', async () => {
    let tries = 0;
    const { writer } = createWriter(() => {
      tries += 1;
      return Promise.reject(pgError('40P01'));
    });

    await expect(writer.submit(eventRecord(completed('a')), NEVER)).rejects.toMatchObject({ code: 'ledger' });
    expect(tries).toBe(6);
  });

  test('a deadlock is not retried for deliveries whose deadline is over', async () => {
    const ledger = createLedger();
    const { writer, clock } = createWriter(ledger.record);
    const answer = errorOf(writer.submit(eventRecord(completed('a')), 100));

    const write = await ledger.write(1);
    clock.ms = 100;
    write.finish(pgError('40P01'));

    expect(await answer).toMatchObject({ code: 'ledger' });
    expect(ledger.writes).toHaveLength(1);
  });

  test('a batch that is refused for its content is halved until the culprit is alone, and that is kept aside', async () => {
    const gate = Promise.withResolvers<void>();
    const sizes: number[] = [];
    let taken = 0;
    const { writer } = createWriter(async (batch) => {
      taken += 1;
      await gate.promise;
      sizes.push(batch.length);
      if (batch.some(({ jobId, outcome }) => jobId === 'culprit' && outcome === 'event'))
        throw pgError('22P05');
      return batch.map(({ outcome }) =>
        outcome === 'event' ? ACCEPTED : { outcome: 'quarantined', late: false },
      );
    });
    const blocker = writer.submit(eventRecord(completed('blocker')), NEVER);
    await waitFor(() => expect(taken).toBe(1));
    const jobs = ['a', 'b', 'c', 'd', 'e', 'culprit', 'g', 'h'];
    const answers = Promise.all(jobs.map((job) => writer.submit(eventRecord(completed(job)), NEVER)));
    gate.resolve();
    await blocker;

    const outcomes = (await answers).map(({ outcome }, index) => [jobs[index], outcome]);

    expect(outcomes).toEqual(jobs.map((job) => [job, job === 'culprit' ? 'quarantined' : 'accepted']));
    expect(sizes).toEqual([1, 8, 4, 4, 2, 1, 1, 1, 2]);
  });

  test('a rule that refuses all deliveries costs few writes, and all are asked to come again', async () => {
    let writes = 0;
    const { writer } = createWriter(
      async () => {
        writes += 1;
        throw pgError('P0001');
      },
      { batchDeliveries: 500 },
    );
    const answers = Array.from({ length: 500 }, (_, nth) =>
      errorOf(writer.submit(eventRecord(completed(`job_${nth}`)), NEVER)),
    );

    for (const error of await Promise.all(answers)) expect(error).toMatchObject({ code: 'ledger' });
    expect(writes).toBeLessThan(100);
  });

  test('a failure that is the times’ is not split: everybody is asked to come again, and told why', async () => {
    const cause = pgError('57P01');
    const ledger = createLedger();
    const { writer, batches } = createWriter(ledger.record);
    const blocker = writer.submit(eventRecord(completed('blocker')), NEVER);
    await ledger.write(1);
    const answers = ['a', 'b', 'c'].map((job) => errorOf(writer.submit(eventRecord(completed(job)), NEVER)));

    (await ledger.write(1)).finish();
    (await ledger.write(2)).finish(cause);

    await blocker;
    for (const error of await Promise.all(answers)) expect(error).toMatchObject({ code: 'ledger', cause });
    expect(ledger.writes).toHaveLength(2);
    expect(batches.at(-1)).toEqual({ deliveries: 3, failed: true });
  });

  test('after a failed write the next one goes on as if nothing had been', async () => {
    const ledger = createLedger();
    const { writer } = createWriter(ledger.record);
    const failing = errorOf(writer.submit(eventRecord(completed('a')), NEVER));
    const next = writer.submit(eventRecord(failed('a')), NEVER);

    (await ledger.write(1)).finish(new Error('connection lost'));
    (await ledger.write(2)).finish();

    expect(await failing).toMatchObject({ code: 'ledger' });
    await expect(next).resolves.toMatchObject({ outcome: 'accepted' });
  });
});

describe('drained', () => {
  test('it resolves at once when nothing waits', async () => {
    await expect(createWriter(createLedger().record).writer.drained()).resolves.toBeUndefined();
  });

  test('it resolves when the last delivery was written, failed or came too late, and for all who asked', async () => {
    const ledger = createLedger();
    const { writer, clock } = createWriter(ledger.record);
    const first = writer.submit(eventRecord(completed('a')), NEVER);
    const write = await ledger.write(1);
    const settled = Promise.allSettled([
      first,
      writer.submit(eventRecord(completed('b')), 10),
      writer.submit(eventRecord(completed('c')), NEVER),
    ]);
    let drained = 0;
    const asked = [writer.drained(), writer.drained()].map((promise) => promise.then(() => drained++));

    clock.ms = 20;
    write.finish();
    const last = await ledger.write(2);
    expect(drained).toBe(0);
    last.finish(new Error('connection lost'));

    await Promise.all(asked);
    expect((await settled).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  });
});
