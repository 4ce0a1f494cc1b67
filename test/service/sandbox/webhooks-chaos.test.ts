import { expect, test } from 'vitest';
import { createNotificationStore } from '../../../src/sandbox/store/notifications.ts';
import { IN_MEMORY, openDatabase } from '../../../src/sandbox/store/database.ts';
import { createTrouble, FLOOD_MAX_COPIES, NO_CHAOS } from '../../../src/sandbox/webhooks/chaos.ts';
import { newNotification, startDeliverer } from '../../support/notifications.ts';
import { answer, type Received, type Respond, startReceiver } from '../../support/receiver.ts';
import { SECRET, sign } from '../../support/sender.ts';

/** Like Tallyhook: 401 for a body that is not signed with the secret. */
const verifying: Respond = (response, { body, headers }) =>
  void response.writeHead(headers['x-service-signature'] === sign(body, SECRET) ? 202 : 401).end();

const sent = ({ body, headers }: Received) =>
  `${body.toString('base64')} ${String(headers['x-service-signature'])}`;

/** A random number generator with a seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

test('duplicates: a second request with the same bytes and signature, and one attempt on record', async () => {
  await using receiver = await startReceiver(verifying);
  await using sandbox = startDeliverer({ chaos: { ...NO_CHAOS, duplicates: 1 } });
  const notification = sandbox.tell(newNotification({ url: receiver.url }));
  await receiver.untilReceived(2);

  const { attempts } = await sandbox.until(notification, 'delivered');

  expect(new Set(receiver.received.map(sent)).size).toBe(1);
  expect(attempts).toHaveLength(1);
  await sandbox.deliverer.stop(1_000);
  expect(receiver.received).toHaveLength(2);
});

test('reordering: a notification lets the next one of its job go first, and follows', async () => {
  await using receiver = await startReceiver();
  const store = createNotificationStore(openDatabase(IN_MEMORY));
  await using sandbox = startDeliverer({ store, chaos: { ...NO_CHAOS, reorder: 1 } });
  const tell = (kind: string) =>
    sandbox.tell(
      newNotification({ url: receiver.url, jobId: 'job_same', body: Buffer.from(`{"kind":"${kind}"}`) }),
    );
  const first = tell('progress');
  const second = tell('completed');
  await receiver.untilReceived(2);

  expect(receiver.received.map(({ said }) => said['kind'])).toEqual(['completed', 'progress']);
  expect((await sandbox.until(first, 'delivered')).attempts).toHaveLength(1);
  expect((await sandbox.until(second, 'delivered')).attempts).toHaveLength(1);
});

test('reordering: a notification that nothing follows arrives, if later', async () => {
  await using receiver = await startReceiver();
  await using sandbox = startDeliverer({ chaos: { ...NO_CHAOS, reorder: 1 } });

  const { attempts } = await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'delivered');

  expect(attempts).toHaveLength(1);
});

test('delays: an attempt is put off by a random part of the time, and the next job is not', async () => {
  await using receiver = await startReceiver();
  const draws = [0.5, 0];
  await using sandbox = startDeliverer({
    chaos: { ...NO_CHAOS, delayMs: 600 },
    random: () => draws.shift() ?? 0,
  });
  const beganMs = performance.now();
  const delayed = sandbox.tell(newNotification({ url: receiver.url }));
  const prompt = sandbox.tell(newNotification({ url: receiver.url }));
  await sandbox.until(delayed, 'delivered');

  const arrivals = receiver.received.map(({ said, atMs }) => [said['job_id'], atMs - beganMs] as const);
  expect(arrivals.map(([job]) => job)).toEqual([prompt.jobId, delayed.jobId]);
  expect(arrivals[1]?.[1]).toBeGreaterThanOrEqual(295);
});

test('tampering: one bit of the body is changed after signing, and the retry is as it should be', async () => {
  await using receiver = await startReceiver(verifying);
  const draws = [0, 0.4, 0]; // tamper; with which byte; the retry's jitter; then never again
  await using sandbox = startDeliverer({
    chaos: { ...NO_CHAOS, tamper: 0.5 },
    random: () => draws.shift() ?? 0.9,
  });
  const notification = sandbox.tell(newNotification({ url: receiver.url }));

  const { attempts } = await sandbox.until(notification, 'delivered');

  expect(attempts.map(({ httpStatus }) => httpStatus)).toEqual([401, 202]);
  const [forged, genuine] = receiver.received.map(({ body }) => body);
  const differing = notification.body.filter((byte, index) => byte !== forged?.[index]);
  expect(differing).toHaveLength(1);
  expect(forged).toHaveLength(notification.body.length);
  expect(genuine?.equals(notification.body)).toBe(true);
});

test('wrong secrets: the right body under a signature that another secret made', async () => {
  await using receiver = await startReceiver(verifying);
  await using sandbox = startDeliverer({ chaos: { ...NO_CHAOS, wrongSecret: 1 } });
  const notification = sandbox.tell(newNotification({ url: receiver.url }));

  const { attempts } = await sandbox.until(notification, 'given_up');

  expect(attempts.map(({ httpStatus }) => httpStatus)).toEqual([401, 401, 401, 401, 401]);
  for (const { body, headers } of receiver.received) {
    expect(body.equals(notification.body)).toBe(true);
    expect(headers['x-service-signature']).toMatch(/^sha256=[0-9a-f]{64}$/);
  }
});

test('floods: so many copies follow, no more at once than there are places, and a stop ends them', async () => {
  await using receiver = await startReceiver(verifying);
  await using sandbox = startDeliverer({ chaos: { ...NO_CHAOS, flood: 40 }, concurrency: 4 });
  const notification = sandbox.tell(newNotification({ url: receiver.url }));
  await receiver.untilReceived(41);

  expect(new Set(receiver.received.map(sent)).size).toBe(1);
  expect(receiver.mostAtOnce()).toBeLessThanOrEqual(4);
  expect(sandbox.store.find(notification.id)?.attempts).toHaveLength(1);

  await using slow = await startReceiver((response) => {
    setTimeout(() => response.writeHead(200).end(), 100);
  });
  sandbox.tell(newNotification({ url: slow.url }));
  await slow.untilReceived(2);
  await sandbox.deliverer.stop(5_000);
  expect(slow.received.length).toBeLessThan(41);
});

test('a flood has a limit', () => {
  const trouble = createTrouble({ chaos: { ...NO_CHAOS, flood: 1e9 }, random: Math.random });

  expect(trouble.copies()).toBe(FLOOD_MAX_COPIES);
});

test('the same seed brings the same trouble again, another one does not', async () => {
  const chaos = { ...NO_CHAOS, duplicates: 0.5, tamper: 0.3, wrongSecret: 0.3, flood: 1 };
  const run = async (seed: number) => {
    await using receiver = await startReceiver(answer(200));
    await using sandbox = startDeliverer({ chaos, random: seeded(seed), concurrency: 1 });
    for (let number = 0; number < 12; number++) {
      const notification = newNotification({ url: receiver.url, body: Buffer.from(`{"number":${number}}`) });
      await sandbox.until(sandbox.tell(notification), 'delivered');
    }
    // There is one slot: when this one is delivered, all earlier copies have been sent.
    await sandbox.until(sandbox.tell(newNotification({ url: `${receiver.url}/last` })), 'delivered');
    return receiver.received.filter(({ path }) => !path.endsWith('/last')).map(sent);
  };

  const first = await run(7);

  expect(await run(7)).toEqual(first);
  expect(await run(8)).not.toEqual(first);
});

test('without chaos nothing is drawn, and what is sent is what was signed', () => {
  const body = Buffer.from('{}');
  const trouble = createTrouble({
    chaos: NO_CHAOS,
    random: () => {
      throw new Error('nobody should ask');
    },
  });

  expect(trouble.isReordered()).toBe(false);
  expect(trouble.delayMs()).toBe(0);
  expect(trouble.copies()).toBe(0);
  expect(trouble.sign(SECRET, body)).toEqual({ body, signature: sign(body, SECRET) });
});
