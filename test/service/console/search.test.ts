// The search box: what names one thing leads to its page, a prefix lists, and nothing says what can be searched.

import { expect, test } from 'vitest';
import { visitConsole } from '../../support/console.ts';
import { operators } from '../../support/operators.ts';
import { completed, deliver, failed, newJobId } from '../../support/sender.ts';
import { shareTestService } from '../../support/shared-service.ts';

const shared = shareTestService();

const searchFor = (text: string) => `/console/search?q=${encodeURIComponent(text)}`;

test('an id, a code and a source lead to their pages', async () => {
  const relay = shared();
  const jobId = newJobId();
  await deliver(relay.webhooks, failed(jobId, { error_code: 'NO_SUCH_CODEC' }));
  const visit = await visitConsole(relay, { role: 'viewer' });
  const where = async (text: string) => (await visit.get(searchFor(text))).location;
  expect(await where(jobId)).toBe(`/console/job?source=default&job_id=${jobId}`);
  expect(await where(`  ${jobId}\n`)).toBe(`/console/job?source=default&job_id=${jobId}`);
  expect(await where(`default:${jobId}:failed`)).toBe(`/console/event?id=default%3A${jobId}%3Afailed`);
  expect(await where('NO_SUCH_CODEC')).toBe('/console/deliveries?error_code=NO_SUCH_CODEC');
  expect(await where('default')).toBe('/console/source?name=default');
  const { get } = await operators(relay);
  const { body } = await get<{ items: { id: string }[] }>(`/deliveries?job_id=${jobId}`);
  const deliveryId = body.items[0]?.id ?? '';
  expect(await where(deliveryId)).toBe(`/console/deliveries/${deliveryId}`);
});

test('a search for nothing says what can be searched', async () => {
  const relay = shared();
  const { status, text } = await (await visitConsole(relay)).get('/console/search?q=+');
  expect(status).toBe(200);
  expect(text).toContain('the id of a job, an event, a delivery or a replay');
});

test('a prefix lists the jobs that begin with it', async () => {
  const relay = shared();
  const prefix = newJobId();
  for (const last of ['a', 'b']) await deliver(relay.webhooks, completed(`${prefix}${last}`));
  const { status, links, text } = await (await visitConsole(relay)).get(searchFor(prefix));
  expect(status).toBe(200);
  for (const last of ['a', 'b']) {
    const id = `${prefix}${last}`;
    expect(links).toContainEqual({ href: `/console/job?source=default&job_id=${id}`, text: id });
  }
  expect(text).toContain(`tallyhook find ${prefix}`);
});

test('more jobs than are listed can be listed', async () => {
  const relay = shared();
  const prefix = newJobId();
  for (let n = 0; n < 26; n++) await deliver(relay.webhooks, completed(`${prefix}_${n}`));
  const { links, text } = await (await visitConsole(relay)).get(searchFor(prefix));
  expect(text).toContain('The first 25 of each kind are shown.');
  expect(links).toContainEqual({
    href: `/console/jobs?job_id_prefix=${prefix}`,
    text: 'All jobs whose ids begin with this',
  });
});

test('a text that nothing has is shown as text, with what can be searched', async () => {
  const relay = shared();
  const { status, html, text } = await (await visitConsole(relay)).get(searchFor('"><script>x</script>'));
  expect(status).toBe(200);
  expect(html).not.toContain('<script>x');
  expect(text).toContain('Nothing has the id, code or name "><script>x</script>');
  expect(text).toContain('the id of a job, an event, a delivery or a replay');
});

test('a text that is too long is an error that says so', async () => {
  const relay = shared();
  const { status, text } = await (await visitConsole(relay)).get(searchFor('x'.repeat(257)));
  expect(status).toBe(400);
  expect(text).toContain('at most 256 characters');
});
