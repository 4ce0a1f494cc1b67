// What becomes of a bug in what serves a delivery.

import { expect, test } from 'vitest';
import { createExactApp, finishApp } from '../../../src/http/index.ts';
import type { Bodies } from '../../../src/intake/bodies.ts';
import { type DeliveryOptions, deliveryHandler } from '../../../src/intake/delivery.ts';
import { startOrigin } from '../../support/origin.ts';
import { createTestLog } from '../../support/test-log.ts';

const UNAUTHORIZED = { httpStatus: 401, body: { error: 'unauthorized' }, isVerified: false };

/** An app whose deliveries are served by these parts, as far as they get. */
async function startApp(parts: { read?: Bodies['read']; answered?: () => void }) {
  const { log, lines } = createTestLog();
  const handler = deliveryHandler({
    receiver: { rejectUnsigned: () => UNAUTHORIZED },
    bodies: { read: parts.read ?? (() => Promise.resolve({ kind: 'counted', length: 0 })) },
    observer: { answered: parts.answered },
    now: () => 0,
  } as unknown as DeliveryOptions);
  const origin = await startOrigin(finishApp(createExactApp().post('/webhooks', handler), log));
  return {
    lines,
    post: () => fetch(`${origin.url}/webhooks`, { method: 'POST' }),
    [Symbol.asyncDispose]: () => origin[Symbol.asyncDispose](),
  };
}

const logged = [{ msg: 'unexpected error', path: '/webhooks', err: { message: 'a planted bug' } }];

test('a bug before the answer is logged and answered with 500, in our form and without what went wrong', async () => {
  await using app = await startApp({ read: () => Promise.reject(new Error('a planted bug')) });

  const answer = await app.post();

  expect(answer.status).toBe(500);
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  expect(await answer.json()).toEqual({ error: 'internal', message: 'something went wrong on our side' });
  expect(app.lines).toMatchObject(logged);
});

test('a bug after the answer is logged as well, and the answer stands', async () => {
  await using app = await startApp({
    answered: () => {
      throw new Error('a planted bug');
    },
  });

  expect((await app.post()).status).toBe(401);
  await expect.poll(() => app.lines).toMatchObject(logged);
});
