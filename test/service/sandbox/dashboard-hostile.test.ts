// What others wrote is inert and readable on every page of the dashboard: markup, addresses that are scripts, characters
// that turn or hide text, NULs, and very long lines.

import { expect, test } from 'vitest';
import { signedIn } from '../../support/dashboard.ts';
import { createFolder } from '../../support/folder.ts';
import { LONG_LINE, SCRIPT, startHostileSandbox } from '../../support/hostile-sandbox.ts';

/** As a browser turns it into text. */
const unescaped = (text: string) =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

test('hostile text is text on every page, is cut in lists, and is whole in the file', async () => {
  await using folder = await createFolder();
  await using hostile = await startHostileSandbox(folder);
  const { on, jobId, deliveryId, body } = hostile;
  const visiting = await signedIn(on.sandbox);
  const paths = [
    '',
    '/jobs',
    `/jobs/${jobId}`,
    '/deliveries',
    `/deliveries/${deliveryId}`,
    '/webhooks',
    '/tokens',
    '/jobs/new',
  ];
  let scripts = 0;
  for (const path of paths) {
    const { status, text } = await visiting.get(path);
    expect({ path, status }).toEqual({ path, status: 200 });
    expect(text.match(/<script[^>]*>/g)).toEqual([expect.stringMatching(/src="\/dashboard\/assets\//)]);
    expect(text).not.toMatch(/<(?:img|svg)\b/);
    expect(text).not.toMatch(/(?:href|src|action)="(?!\/dashboard|#)/);
    // oxlint-disable-next-line no-control-regex -- they are what must not be there
    expect(text).not.toMatch(/[\u0000\u200B\u202E\u2066]/);
    if (unescaped(text).includes(SCRIPT)) scripts += 1;
    // The body alone is shown whole.
    const most = path === `/deliveries/${deliveryId}` ? 300_000 : 40_000;
    expect(text.length).toBeLessThan(most);
  }
  expect(scripts).toBeGreaterThanOrEqual(5);

  const page = await visiting.get(`/deliveries/${deliveryId}`);
  expect(unescaped(page.text)).toContain(`${SCRIPT}\\u202ednuora\\u0000\\u200b\\u2066hidden${LONG_LINE}"}`);
  expect(page.text).toContain('Characters that cannot be seen are written as \\u escapes here.');
  expect(page.text).toContain('9,007,199,254,740,991');
  expect((await visiting.get(`/deliveries/${deliveryId}/body`)).text).toBe(body.toString());
});

test('what a form or an address says back is text, too', async () => {
  await using folder = await createFolder();
  await using started = await startHostileSandbox(folder);
  const visiting = await signedIn(started.on.sandbox);
  const hostile = `"><script>alert(1)</script>`;
  const answers = [
    await visiting.post('/tokens', { name: hostile, scopes: [], expires: hostile }),
    await visiting.post('/webhooks', { url: hostile, attempts: hostile, first: hostile }),
    await visiting.post('/jobs/new', {
      clip: hostile,
      input_url: hostile,
      output_format: hostile,
      webhook_url: hostile,
    }),
    await visiting.post('/tier', { tier: hostile }),
    await visiting.get(`/sign-in?code=${encodeURIComponent(hostile)}&next=${encodeURIComponent(hostile)}`),
    await visiting.get(`/jobs?status=${encodeURIComponent(hostile)}`),
    await visiting.get(`/webhooks?done=${encodeURIComponent(hostile)}`),
    await visiting.get(`/${encodeURIComponent(hostile)}`),
    await visiting.get(`/jobs/${encodeURIComponent(hostile)}`),
    await visiting.get('/jobs/%ff'),
    await visiting.get('/tokens?from=-5'),
    await visiting.get('/tokens?from=1e99'),
  ];
  expect(answers.map(({ status }) => status)).toEqual([
    422, 422, 422, 422, 200, 200, 200, 404, 404, 400, 200, 200,
  ]);
  for (const { text } of answers) expect(text).not.toContain('<script>');
});
