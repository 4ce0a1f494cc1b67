// The live page in a real browser: what happens is shown as it happens, by one stream for all tabs, with marks where something is
// missing. What senders wrote stays text.

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { describeInBrowser } from '../support/browser.ts';
import { signInBrowser } from '../support/console.ts';
import { axeViolations, overflow } from '../support/page-checks.ts';
import { operators } from '../support/operators.ts';
import { startProxy } from '../support/proxy.ts';
import { completed, deliver, failed, newJobId, progress } from '../support/sender.ts';
import { shareTestService } from '../support/shared-service.ts';

const LISTENERS_PER_TOKEN = 8;
const TABS = 8;

async function openLive(page: Page, search = ''): Promise<void> {
  await page.goto(`/console/live${search}`);
  await page.locator('#listening', { hasText: 'Listening' }).waitFor();
}

const rowOf = (page: Page, jobId: string) => page.locator('#rows tr', { hasText: jobId });

describeInBrowser('the live page', (open) => {
  const shared = shareTestService();

  test('eight open tabs share one stream and stay responsive', async () => {
    const relay = shared();
    await using opened = await open({ baseUrl: relay.operators });
    const { context } = opened;
    const visit = await signInBrowser(context, relay);
    const tabs = [opened.page];
    while (tabs.length < TABS) tabs.push(await context.newPage());
    for (const tab of tabs) await openLive(tab);

    const jobId = newJobId();
    await deliver(relay.webhooks, completed(jobId));
    for (const tab of tabs) await rowOf(tab, jobId).first().waitFor();

    // The browser opens six connections to a host, and a token has eight streams: seven are left.
    const streams: Response[] = [];
    const listen = () =>
      fetch(`${relay.operators}/api/v1/live`, { headers: { authorization: `Bearer ${visit.value}` } });
    for (let taken = 1; taken < LISTENERS_PER_TOKEN; taken++) streams.push(await listen());
    expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200));
    expect((await listen()).status).toBe(429);
    for (const { body } of streams) await body?.cancel();

    for (const tab of tabs.slice(0, 2)) {
      await tab.goto('/console/jobs');
      expect(await tab.locator('h1').textContent()).toBe('Jobs');
    }
  });

  test('the filters of the address are those of the rows', async () => {
    const relay = shared();
    await using opened = await open({ baseUrl: relay.operators });
    await signInBrowser(opened.context, relay);
    const other = await opened.context.newPage();
    const [wanted, unwanted] = [newJobId(), newJobId()];
    await openLive(opened.page, '?events=deliveries&kind=failed');
    await openLive(other, `?job_id=${unwanted}`);
    await deliver(relay.webhooks, completed(unwanted));
    await deliver(relay.webhooks, progress(wanted, 10));
    await deliver(relay.webhooks, failed(wanted));
    await rowOf(opened.page, wanted).waitFor();
    expect(await opened.page.locator('#rows tr td:nth-child(6)').allTextContents()).toEqual(['failed']);
    // Its delivery, and the attempt to publish it.
    await rowOf(other, unwanted).nth(1).waitFor();
    expect(await rowOf(other, wanted).count()).toBe(0);
    await opened.page.locator('select[name="kind"]').selectOption('completed');
    await opened.page.locator('form.filters button').click();
    expect(new URL(opened.page.url()).searchParams.get('kind')).toBe('completed');
  });

  test('a paused page keeps what comes, and shows it when it goes on', async () => {
    const relay = shared();
    await using opened = await open({ baseUrl: relay.operators });
    const { page } = opened;
    await signInBrowser(opened.context, relay);
    await openLive(page, '?events=deliveries');
    const jobId = newJobId();
    await page.getByRole('button', { name: 'Pause' }).click();
    await deliver(relay.webhooks, completed(jobId));
    await page.locator('#waiting', { hasText: '1 waiting' }).waitFor();
    expect(await rowOf(page, jobId).count()).toBe(0);
    await page.getByRole('button', { name: 'Resume' }).click();
    await rowOf(page, jobId).waitFor();
    expect(await page.locator('#waiting').textContent()).toBe('');
  });

  test('a lost stream is opened again, with a mark of the gap', async () => {
    const relay = shared();
    await using proxy = await startProxy(relay.operators, { defaultPort: 80 });
    await using opened = await open({ baseUrl: new URL(proxy.url).origin });
    const { page } = opened;
    await signInBrowser(opened.context, relay);
    await openLive(page);
    proxy.refuse();
    proxy.cut();
    await page.locator('#listening', { hasText: 'lost' }).waitFor();
    proxy.heal();
    await page.locator('#listening', { hasText: /^Listening$/ }).waitFor();
    const gap = page.locator('#rows tr.gap');
    await gap.waitFor();
    expect(await gap.textContent()).toMatch(
      /^Gap: the stream was not open, from .* to .*\. The lists have them/,
    );
    const jobId = newJobId();
    await deliver(relay.webhooks, completed(jobId));
    await rowOf(page, jobId).first().waitFor();
    await gap.getByRole('link', { name: 'deliveries' }).click();
    expect(new URL(page.url()).searchParams.has('from')).toBe(true);
    await opened.faults(); // of the connections that were cut
  });

  test('the end of the session leads to the sign-in page, and back here', async () => {
    const relay = shared();
    await using proxy = await startProxy(relay.operators, { defaultPort: 80 });
    await using opened = await open({ baseUrl: new URL(proxy.url).origin });
    const { page } = opened;
    const visit = await signInBrowser(opened.context, relay);
    await openLive(page, '?kind=failed');
    await visit.post('/console/sign-out');
    proxy.cut(); // what the service does itself within a minute
    await page.waitForURL(/sign-in/);
    await page.locator('input[name="token"]').fill((await operators(relay)).value);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('#listening', { hasText: 'Listening' }).waitFor();
    expect(page.url()).toMatch(/\/console\/live\?kind=failed$/);
    await opened.faults(); // of the connection that was cut
  });

  test('what senders wrote is text, and the region that is read aloud does not tell rows', async () => {
    const relay = shared();
    await using opened = await open({ baseUrl: relay.operators, width: 390, colorScheme: 'dark' });
    const { page } = opened;
    await signInBrowser(opened.context, relay);
    await openLive(page);
    const jobId = newJobId();
    const status = '<img src=x onerror=alert(1)>"';
    await deliver(relay.webhooks, { job_id: jobId, status });
    await rowOf(page, jobId).first().waitFor();
    expect(await page.locator('#rows img, #rows script').count()).toBe(0);
    expect(await page.locator('#rows').textContent()).toContain(status);
    expect(await page.locator('#listening').textContent()).toBe('Listening');
    expect(await page.locator('#rows [aria-live], [aria-live] #rows, [role="log"]').count()).toBe(0);
    expect(await axeViolations(page)).toEqual([]);
    expect(await overflow(page)).toEqual([]);
  });

  test('a browser whose tabs cannot share a stream has none in a hidden tab, and marks the gap', async () => {
    const relay = shared();
    await using opened = await open({ baseUrl: relay.operators });
    const { page, context } = opened;
    await context.addInitScript('delete window.SharedWorker');
    await signInBrowser(context, relay);
    await openLive(page);
    const hide = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`);
    await hide(true);
    await hide(false);
    await page.locator('#rows tr.gap', { hasText: 'this tab was hidden' }).waitFor();
    const jobId = newJobId();
    await deliver(relay.webhooks, completed(jobId));
    await rowOf(page, jobId).first().waitFor();
    expect(await page.locator('#rows tr.gap').count()).toBe(1);
  });

  test('without JavaScript the page says that it needs it', async () => {
    const relay = shared();
    await using opened = await open({ baseUrl: relay.operators, javaScriptEnabled: false });
    await signInBrowser(opened.context, relay);
    await opened.page.goto('/console/live');
    expect(await opened.page.locator('main').textContent()).toContain('This page needs JavaScript');
    expect(await opened.page.locator('#pause').isVisible()).toBe(false);
    expect(await axeViolations(opened.page)).toEqual([]);
  });
});
