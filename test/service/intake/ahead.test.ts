import type { RequestListener } from 'node:http';
import { expect, test } from 'vitest';
import { aheadOf } from '../../../src/intake/ahead.ts';
import type { Deliver } from '../../../src/intake/delivery.ts';
import { startOrigin } from '../../support/origin.ts';
import { createTestLog } from '../../support/test-log.ts';

const express: RequestListener = (_request, response) => void response.end('express');

async function startAhead(deliver: Deliver) {
  const { log, lines } = createTestLog();
  const origin = await startOrigin(aheadOf(express, { deliver, log }));
  return {
    lines,
    ask: (method: string, path: string, headers: Record<string, string> = {}) =>
      fetch(`${origin.url}${path}`, { method, headers }),
    [Symbol.asyncDispose]: () => origin[Symbol.asyncDispose](),
  };
}

test('only a POST to the exact path of a source, straight from its sender, is taken ahead of Express', async () => {
  await using ahead = await startAhead(async (_request, response, routed) => {
    response.end(JSON.stringify(routed));
  });
  const said = async (...asked: Parameters<typeof ahead.ask>) => (await ahead.ask(...asked)).text();
  const sender = '127.0.0.1';

  expect(JSON.parse(await said('POST', '/webhooks'))).toEqual({
    source: 'default',
    path: '/webhooks',
    sender,
  });
  expect(JSON.parse(await said('POST', '/webhooks/team-a'))).toEqual({
    source: 'team-a',
    path: '/webhooks/team-a',
    sender,
  });
  for (const path of [
    '/webhooks/',
    '/webhooks/team-a/',
    '/WEBHOOKS',
    '/webhooks?x=1',
    '/webhooks/team%2da',
    '/webhooks/Team',
    `/webhooks/${'a'.repeat(64)}`,
    '/webhooks/a/b',
    '/livez',
  ])
    expect([path, await said('POST', path)]).toEqual([path, 'express']);
  for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS'])
    expect([method, await said(method, '/webhooks')]).toEqual([method, 'express']);
  expect(await said('POST', '/webhooks', { 'X-Forwarded-For': '192.0.2.1' })).toBe('express');
});

test('a bug behind it is logged and answered with 500, in our form and without what went wrong', async () => {
  await using ahead = await startAhead(() => Promise.reject(new Error('a planted bug')));

  const answer = await ahead.ask('POST', '/webhooks');

  expect(answer.status).toBe(500);
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  expect(await answer.json()).toEqual({ error: 'internal', message: 'something went wrong on our side' });
  expect(ahead.lines).toMatchObject([
    { msg: 'unexpected error', path: '/webhooks', err: { message: 'a planted bug' } },
  ]);
});
