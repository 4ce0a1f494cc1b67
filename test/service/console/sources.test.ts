// Sources in the console: their secrets by fingerprint, their drift, and lines for a shell that send a delivery when pasted.

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { visitConsole } from '../../support/console.ts';
import { createFolder } from '../../support/folder.ts';
import { operators } from '../../support/operators.ts';
import { completed, deliver, newJobId, SECRET } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';

const NAMED = 'the-secret-of-team-a-0001';

test('the lines of a source send a signed delivery when pasted into a shell', async () => {
  await using folder = await createFolder();
  await writeFile(folder.path('sources.json'), JSON.stringify({ 'team-a': { secrets: [NAMED] } }));
  await using relay = await startTestService({ env: { SOURCES_FILE: folder.path('sources.json') } });
  const visit = await visitConsole(relay, { role: 'viewer' });
  for (const [name, secret] of [
    ['default', SECRET],
    ['team-a', NAMED],
  ] as const) {
    const page = await visit.get(`/console/source?name=${name}`);
    expect(page.status).toBe(200);
    expect(page.html).not.toContain(secret);
    expect(page.text).toContain(`${relay.webhooks}${name === 'default' ? '' : '/team-a'}`);
    const lines = page.pres.find((pre) => pre.includes('openssl')) ?? '';
    const { stdout } = await promisify(execFile)('bash', ['-c', lines], {
      env: { ...process.env, SIGNING_SECRET: secret },
    });
    expect(stdout).toContain(`{"outcome":"accepted","event_id":"${name}:job_try:processing:45"}`);
  }
});

test('a source shows its secrets by fingerprint, its drift and who is refused', async () => {
  await using relay = await startTestService();
  await deliver(relay.webhooks, completed(newJobId(), { colour_space: 'bt709' }));
  await deliver(relay.webhooks, completed(newJobId()), { secret: 'another-secret-0123456789' });
  const visit = await visitConsole(relay, { role: 'viewer' });
  const { get } = await operators(relay);
  const { body } = await get<{ items: { secrets: { fingerprint: string }[] }[] }>('/sources');
  const fingerprint = body.items[0]?.secrets[0]?.fingerprint ?? '';
  const page = await visit.get('/console/source?name=default');
  expect(page.links).toContainEqual({
    href: `/console/deliveries?source=default&secret_fingerprint=${fingerprint}`,
    text: fingerprint,
  });
  await until(
    'its drift and its refusals are written',
    async () => {
      const { text } = await visit.get('/console/source?name=default');
      const isThere =
        text.includes('field colour_space completed string 1') && /Count, at least 127\.0\.0\.1 1/.test(text);
      return isThere || undefined;
    },
    { limitMs: 20_000 },
  );
  // Its one refusal is an unauthorized delivery.
  expect((await visit.get('/console/source?name=default')).text).toContain('Refused or unauthorized');
  const list = await visit.get('/console/sources');
  expect(list.links).toContainEqual({ href: '/console/source?name=default', text: 'default' });
});

test('a source that there is not, or that the token may not see, is not found', async () => {
  await using relay = await startTestService();
  const all = await visitConsole(relay);
  expect((await all.get('/console/source?name=nobody')).status).toBe(404);
  const limited = await visitConsole(relay, { role: 'viewer', sources: ['other'] });
  expect((await limited.get('/console/source?name=default')).status).toBe(404);
  expect((await limited.get('/console/sources')).text).not.toContain('default');
});
