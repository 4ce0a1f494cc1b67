// The stream of the live page: server-sent events with the session's cookie, and none without it.

import { expect, test } from 'vitest';
import { askConsole, COOKIE_NAME, visitConsole } from '../../support/console.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';

const STREAM = '/console/live/stream';

test('the stream tells a session what happens, of the sources that its token may see', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay, { role: 'viewer' });
  const limited = await visitConsole(relay, { role: 'viewer', sources: ['other'] });
  const listen = (session: string) =>
    fetch(`${relay.operators}${STREAM}`, {
      headers: { cookie: `${COOKIE_NAME}=${session}`, 'sec-fetch-site': 'same-origin' },
    });
  const [own, others] = await Promise.all([listen(visit.session), listen(limited.session)]);
  expect(own.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(own.headers.get('cache-control')).toBe('no-store');
  const jobId = newJobId();
  await deliver(relay.webhooks, completed(jobId));
  let told = '';
  const reader = own.body?.pipeThrough(new TextDecoderStream()).getReader();
  while (!told.includes(jobId)) told += (await reader?.read())?.value ?? '';
  expect(told).toMatch(/^event: delivery$/m);
  await reader?.cancel();
  // It has had the same time, and hears of nothing until the service stops and ends it.
  const heard = others.text();
  await relay.service.stop();
  expect(await heard).not.toContain(jobId);
});

test('without a session, and for a page of another site, there is no stream', async () => {
  await using relay = await startTestService();
  expect((await askConsole(relay, STREAM)).location).toMatch(/^\/console\/sign-in/);
  const { session } = await visitConsole(relay);
  const headers = {
    cookie: `${COOKIE_NAME}=${session}`,
    'sec-fetch-site': 'cross-site',
    'sec-fetch-mode': 'cors',
  };
  expect((await askConsole(relay, STREAM, { headers })).status).toBe(403);
});

test('signing out ends the stream of that session within seconds', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay, { role: 'viewer' });
  const stream = await fetch(`${relay.operators}${STREAM}`, {
    headers: { cookie: `${COOKIE_NAME}=${visit.session}`, 'sec-fetch-site': 'same-origin' },
  });
  await visit.post('/console/sign-out');
  await stream.text(); // it ends
  expect((await askConsole(relay, STREAM)).location).toMatch(/^\/console\/sign-in/);
});
