// The pages by which operators decide and act, in a real browser: how they look, and whole stories, with JavaScript and without.

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { describeInBrowser, type Look, type OpenPage, type PageOptions } from '../support/browser.ts';
import { listen, newExchange } from '../support/bus.ts';
import { signInBrowser, visitConsole } from '../support/console.ts';
import { untilNonePending } from '../support/facts.ts';
import type { TokenOptions } from '../support/operators.ts';
import { faultsIn } from '../support/page-checks.ts';
import { patience } from '../support/patience.ts';
import { completed, deliver, failed, newJobId, progress } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { OUTBOX } from '../support/outbox.ts';
import { cases, IS_SHORT_RUN } from '../only-in-all.ts';

const PATIENCE = { timeout: patience(15_000) };
const MARKUP = '</td><script>alert(1)</script><img src=x onerror=alert(1)>';

async function isReturned(relay: TestService, count: number): Promise<void> {
  const read = () => relay.database.query(`select from ${OUTBOX} where state = 'returned'`);
  await expect.poll(read, PATIENCE).toHaveLength(count);
}

/** Nothing is bound, so every event is returned. */
async function returned(relay: TestService, count: number): Promise<void> {
  const before = await relay.database.query(`select from ${OUTBOX} where state = 'returned'`);
  for (let at = 0; at < count; at++) await deliver(relay.webhooks, completed(newJobId()));
  await isReturned(relay, before.length + count);
}

const quarantine = (relay: TestService, jobId = newJobId(), status = 'archived') =>
  deliver(relay.webhooks, { job_id: jobId, status });

async function signedIn(
  open: OpenPage,
  relay: TestService,
  { token = {}, ...options }: Partial<PageOptions> & { token?: TokenOptions } = {},
) {
  const opened = await open({ baseUrl: relay.operators, ...options });
  const visit = await signInBrowser(opened.context, relay, token);
  return { ...opened, visit };
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const follow = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).first().click();
const heading = (page: Page) => page.getByRole('heading', { level: 1 }).innerText();

const WITH_JAVASCRIPT: readonly Look[] = [
  { width: 1280, colorScheme: 'light' },
  { width: 768, colorScheme: 'dark' },
  { width: 390, colorScheme: 'light' },
];
const WITHOUT_JAVASCRIPT: readonly Look[] = [{ width: 390, colorScheme: 'dark' }];

describeInBrowser('pages that act', (open) => {
  test.skipIf(IS_SHORT_RUN).for([
    { looks: WITH_JAVASCRIPT, javaScriptEnabled: true },
    { looks: WITHOUT_JAVASCRIPT, javaScriptEnabled: false },
  ])('are accessible and fit, with JavaScript $javaScriptEnabled', async ({ looks, javaScriptEnabled }) => {
    const exchange = newExchange();
    await using _ = await listen(exchange, { bindings: [] });
    await using relay = await startTestService({ exchange });
    await returned(relay, 2);
    for (const status of ['archived', MARKUP, `\u202e${'x'.repeat(100)}`])
      await quarantine(relay, MARKUP, status);
    await deliver(relay.webhooks, progress(newJobId(), 5));
    await deliver(relay.webhooks, failed(newJobId()));
    await isReturned(relay, 4);
    const { page, visit } = await signedIn(open, relay, { javaScriptEnabled, token: { name: MARKUP } });
    const preview = await visit.get('/console/replays/new?kind=completed');
    const { location = '' } = await visit.submit(preview.forms.find(({ text }) => text.startsWith('Replay')));

    const paths = [
      '/console/outbox',
      '/console/outbox?state=returned&by=queue',
      '/console/outbox?source=nothing',
      '/console/outbox/retry?all=true&state=returned',
      '/console/outbox/discard?all=true&state=returned',
      '/console/quarantine',
      '/console/quarantine?state=released',
      '/console/quarantine/release?all=true',
      '/console/quarantine/discard?all=true',
      '/console/replays',
      '/console/replays/new',
      '/console/replays/new?kind=completed&from=24h&queue=billing',
      location,
      `${location}/cancel`,
      '/console/tokens',
      '/console/tokens/new',
      `/console/tokens/${visit.token.id}/revoke`,
      '/console/sessions',
      '/console/operator-log',
    ];
    for (const path of paths) {
      await page.goto(path);
      await page.evaluate(`for (const part of document.querySelectorAll('details')) part.open = true`);
      expect({ path, faults: await faultsIn(page, looks) }).toEqual({ path, faults: [] });
    }
  });

  test.for(cases([true], [false]))('stories, with JavaScript: %s', async (javaScriptEnabled) => {
    const exchange = newExchange();
    await using bus = await listen(exchange, { bindings: [] });
    await using relay = await startTestService({ exchange });
    const { page, visit, faults } = await signedIn(open, relay, { javaScriptEnabled });

    // Returned events are sent again after a queue was bound; one that came after the preview is left alone.
    await returned(relay, 2);
    await page.goto('/console/outbox?state=returned');
    await follow(page, 'Retry all that match …');
    expect(await heading(page)).toBe('Retry 2 events?');
    await returned(relay, 1);
    await bus.channel.bindQueue(bus.queue, exchange, 'job.#');
    await press(page, 'Retry 2 events');
    expect(await heading(page)).toBe('2 events retried');
    await bus.received(2);
    // One is ticked, and decided on alone.
    await follow(page, 'Back to the list');
    await page.getByRole('checkbox').check();
    await press(page, 'Retry selected');
    await press(page, 'Retry 1 event');
    expect(await heading(page)).toBe('1 event retried');
    await bus.received(3);

    // A quarantined delivery is released.
    const job = newJobId();
    await quarantine(relay, job);
    await relay.database.query(
      `update deliveries set body = convert_to('{"job_id":"${job}","status":"processing","progress_percentage":9}', 'utf8')
       where job_id = '${job}'`,
    );
    await page.goto('/console/quarantine');
    await page.getByRole('row').filter({ hasText: job }).getByRole('link', { name: 'Release' }).click();
    await quarantine(relay);
    await press(page, 'Release 1 delivery');
    expect(await heading(page)).toBe('1 delivery released');
    await bus.received(4);
    await untilNonePending(relay.database);

    // One subscriber's day is replayed to its queue, with a preview.
    await using billing = await listen(exchange, { bindings: [] });
    await page.goto('/console/replays');
    await follow(page, 'New replay');
    await page.getByLabel('Kind').selectOption('completed');
    await page.getByLabel('From (UTC)').fill('soon');
    if (!javaScriptEnabled) await press(page, 'Preview');
    const fault = page.locator('input[name=from][aria-invalid=true] ~ .fault');
    expect(await fault.innerText()).toContain('write 2026-01-31T12:00:00Z');
    expect(await faultsIn(page, [{ width: 390, colorScheme: 'dark' }])).toEqual([]);
    await page.getByLabel('From (UTC)').fill('24h');
    if (javaScriptEnabled) await fault.waitFor({ state: 'detached' });
    expect(await faults()).toEqual([expect.stringContaining('a status of 400')]);
    await page.getByLabel('Only to this queue').fill(billing.queue);
    const button = page.getByRole('button', { name: `Replay 3 events to the queue ${billing.queue}` });
    // With JavaScript the preview appears by itself.
    if (!javaScriptEnabled) await press(page, 'Preview');
    await button.waitFor();
    expect(new URL(page.url()).searchParams.get('queue')).toBe(billing.queue);
    await deliver(relay.webhooks, completed(newJobId()));
    await bus.received(5);
    await button.click();
    await billing.received(3);
    await expect
      .poll(async () => {
        if (!javaScriptEnabled) await page.reload();
        else await page.goto(page.url());
        return page.getByRole('main').innerText();
      }, PATIENCE)
      .toContain('finished');
    expect(billing.messages).toHaveLength(3);

    // A token is revoked, and its session ends.
    const other = await visitConsole(relay, { role: 'viewer', name: 'somebody' });
    await page.goto('/console/tokens');
    await page.getByRole('row').filter({ hasText: 'somebody' }).getByRole('link', { name: 'Revoke' }).click();
    await press(page, 'Revoke the token');
    expect(await heading(page)).toBe('Token revoked');
    expect((await other.get('/console/jobs')).status).toBe(303);
    await page.goto('/console/sessions');
    expect(await page.getByRole('main').innerText()).not.toContain('somebody');

    // A value is shown once: not after a reload, which sends the form again.
    await page.goto('/console/tokens/new');
    await page.getByLabel('Name').fill('billing');
    await press(page, 'Create token');
    expect(await page.locator('code.value').innerText()).toMatch(/^thk_test_/);
    await page.reload();
    expect(await page.locator('code.value').count()).toBe(0);
    expect(await page.getByRole('main').innerText()).toContain('Its value was shown once');
    await page.goto(`/console/operator-log?token_id=${visit.token.id}`);
    expect(await page.getByRole('main').innerText()).toContain('token.revoke');
  });
});
