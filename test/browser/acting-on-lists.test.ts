// What stands beside a list, in a real browser with JavaScript and without: replays of what is ticked or matches, boxes that tick a
// whole page, more rows, and previews that try.

import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { describeInBrowser, type OpenPage, type PageOptions } from '../support/browser.ts';
import { listen, newExchange } from '../support/bus.ts';
import { parseLines } from '../support/cli.ts';
import { signInBrowser } from '../support/console.ts';
import { untilNonePending } from '../support/facts.ts';
import type { TokenOptions } from '../support/operators.ts';
import { faultsIn } from '../support/page-checks.ts';
import { patience } from '../support/patience.ts';
import { completed, deliver, failed, newJobId } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { OUTBOX } from '../support/outbox.ts';

const PATIENCE = { timeout: patience(15_000) };

async function signedIn(
  open: OpenPage,
  relay: TestService,
  { token = {}, ...options }: Partial<PageOptions> & { token?: TokenOptions } = {},
) {
  const opened = await open({ baseUrl: relay.operators, ...options });
  await signInBrowser(opened.context, relay, token);
  return opened;
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const follow = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).first().click();
const heading = (page: Page) => page.getByRole('heading', { level: 1 }).innerText();
const main = (page: Page) => page.getByRole('main').innerText();
const rowsOf = (page: Page) => page.locator('main table.list tbody tr').count();

async function returned(relay: TestService, jobs: readonly string[]): Promise<void> {
  for (const job of jobs) await deliver(relay.webhooks, completed(job));
  const read = () =>
    relay.database.query(`select from ${OUTBOX} where state = 'returned' and job_id = any($1)`, [jobs]);
  await expect.poll(read, PATIENCE).toHaveLength(jobs.length);
}

describeInBrowser('acting on lists', (open) => {
  test.for([[true], [false]])(
    'events and publications are replayed by ticks and by the filter, with JavaScript: %s',
    async ([javaScriptEnabled = true]) => {
      const exchange = newExchange();
      await using bus = await listen(exchange, { bindings: ['job.#'] });
      await using relay = await startTestService({ exchange });
      const jobs = [newJobId(), newJobId(), newJobId()];
      for (const job of jobs) await deliver(relay.webhooks, completed(job));
      await deliver(relay.webhooks, failed(newJobId()));
      await bus.received(4);
      await untilNonePending(relay.database);
      await using opened = await signedIn(open, relay, { javaScriptEnabled, token: { role: 'operator' } });
      const { page } = opened;

      // Without a tick nothing is chosen, and nothing is made of it.
      await page.goto('/console/events');
      await press(page, 'Replay selected …');
      expect(await heading(page)).toBe('Nothing was selected');
      await opened.faults();

      await page.goto('/console/events');
      expect(await main(page)).toContain('To replay all that match, choose a filter.');
      for (const job of jobs.slice(0, 2)) await page.getByLabel(`Choose default:${job}:completed`).check();
      await press(page, 'Replay selected …');
      await press(page, 'Replay 2 events to the exchange');
      await bus.received(6);
      await untilNonePending(relay.database);

      await page.goto('/console/events?kind=completed');
      await follow(page, 'Replay all that match …');
      await press(page, 'Replay 3 events to the exchange');
      await bus.received(9);
      await untilNonePending(relay.database);

      // Of publications: an event that was published thrice is replayed once.
      await page.goto('/console/publications');
      await page
        .getByRole('row')
        .filter({ hasText: jobs[0] ?? '' })
        .first()
        .getByRole('checkbox')
        .check();
      await press(page, 'Replay selected …');
      await page.getByRole('button', { name: 'Replay 1 event to the exchange' }).waitFor();
      await page.goto(`/console/publications?job_id=${jobs[0]}`);
      expect(await rowsOf(page)).toBe(3);
      await press(page, 'Replay the events of all that match …');
      await press(page, 'Replay 1 event to the exchange');
      await bus.received(10);
    },
  );

  test.for([[true], [false]])(
    'a whole page of ids that are too long for an address is replayed, with JavaScript: %s',
    async ([javaScriptEnabled = true]) => {
      const exchange = newExchange();
      await using bus = await listen(exchange, { bindings: ['job.#'] });
      await using relay = await startTestService({ exchange });
      const jobs = Array.from({ length: 32 }, () => `${newJobId()}${'x'.repeat(110)}`);
      for (const job of jobs) await deliver(relay.webhooks, completed(job));
      await bus.received(32);
      await untilNonePending(relay.database);
      await using opened = await signedIn(open, relay, { javaScriptEnabled, token: { role: 'operator' } });
      const { page } = opened;
      await page.goto('/console/events?limit=50');
      for (const box of await page.getByRole('checkbox', { name: /^Choose default/ }).all())
        await box.check();
      await press(page, 'Replay selected …');
      await page.getByLabel('Why').fill('too long for an address');
      if (!javaScriptEnabled) await press(page, 'Preview');
      await expect
        .poll(() => page.locator('input[type=hidden][name=note]').getAttribute('value'), PATIENCE)
        .toBe('too long for an address');
      await press(page, 'Replay 32 events to the exchange');
      await bus.received(64);
    },
  );

  test('a returned event says for which routing key no queue is bound, with the line that binds one, and offers retry', async () => {
    const exchange = newExchange();
    await using bus = await listen(exchange, { bindings: [] });
    await using relay = await startTestService({ exchange });
    const job = newJobId();
    await returned(relay, [job]);
    await using opened = await signedIn(open, relay, { token: { role: 'operator' } });
    const { page } = opened;
    await page.goto('/console/events');
    await page.getByRole('row').filter({ hasText: job }).getByRole('link', { name: 'Retry …' }).waitFor();
    await page.goto(`/console/event?id=default:${job}:completed`);
    const [line = '', ofShell] = await page.locator('code[data-copy]').allInnerTexts();
    expect(ofShell).toBe(
      `rabbitmqadmin declare binding source=${exchange} destination=QUEUE destination_type=queue routing_key=job.completed.default`,
    );
    expect(line).toBe(`await channel.bindQueue(QUEUE, "${exchange}", "job.completed.default");`);
    expect(await faultsIn(page, [{ width: 390, colorScheme: 'dark' }])).toEqual([]);

    // What the line says is so.
    const [, key = ''] = /"([^"]+)"\);$/.exec(line) ?? [];
    await bus.channel.bindQueue(bus.queue, exchange, key);
    await follow(page, 'Retry …');
    await press(page, 'Retry 1 event');
    await bus.received(1);

    await using viewer = await signedIn(open, relay, { token: { role: 'viewer' } });
    await viewer.page.goto('/console/events');
    expect(await viewer.page.getByRole('checkbox').count()).toBe(0);
  });

  test('a box in the head ticks the page, and shows when some are ticked; without JavaScript each row is ticked', async () => {
    const exchange = newExchange();
    await using _ = await listen(exchange, { bindings: [] });
    await using relay = await startTestService({ exchange });
    await returned(relay, [newJobId(), newJobId(), newJobId()]);
    for (const width of [1280, 390] as const) {
      await using opened = await signedIn(open, relay, { width, token: { role: 'operator' } });
      const { page } = opened;
      await page.goto('/console/outbox?state=returned');
      const all = page.getByLabel('Select all on this page');
      const boxes = page.locator('tbody input[type=checkbox]');
      await all.check();
      expect(await page.locator('tbody input:checked').count()).toBe(3);
      await boxes.first().uncheck();
      expect(await page.evaluate(`document.querySelector('[aria-label^="Select all"]').indeterminate`)).toBe(
        true,
      );
      await boxes.first().check();
      expect(await all.isChecked()).toBe(true);
      await press(page, 'Park selected');
      expect(await heading(page)).toBe('Park 3 events?');
      await page.goBack();
      await page.goto('/console/outbox?state=returned');
      expect(await faultsIn(page, [{ width, colorScheme: 'light' }])).toEqual([]);
    }
    await using plain = await signedIn(open, relay, {
      javaScriptEnabled: false,
      token: { role: 'operator' },
    });
    await plain.page.goto('/console/outbox?state=returned');
    expect(await plain.page.getByRole('checkbox').count()).toBe(3);
    await plain.page.getByRole('checkbox').first().check();
    await press(plain.page, 'Park selected');
    expect(await heading(plain.page)).toBe('Park 1 event?');
  });

  test.for([[true], [false]])(
    'a list has 25, 50 or 100 rows, which its filters and its pages keep, with JavaScript: %s',
    async ([javaScriptEnabled = true]) => {
      await using relay = await startTestService();
      await relay.database.query(
        `insert into jobs (source, job_id, last_status, first_seen_at, last_seen_at)
         select 'default', 'job_' || n, 'processing', now() - n * interval '1 second', now() from generate_series(1, 120) n`,
      );
      await using opened = await signedIn(open, relay, { javaScriptEnabled, token: { role: 'viewer' } });
      const { page } = opened;
      await page.goto('/console/jobs');
      expect(await rowsOf(page)).toBe(25);
      await follow(page, '50');
      expect(await rowsOf(page)).toBe(50);
      await follow(page, 'Next page');
      expect(await rowsOf(page)).toBe(50);
      // At the same place.
      const first = () => page.locator('main table.list tbody a.id').first().innerText();
      const before = await first();
      await follow(page, '25');
      expect([await rowsOf(page), await first()]).toEqual([25, before]);
      await follow(page, '100');
      expect([await rowsOf(page), await first()]).toEqual([70, before]);
      await follow(page, 'First page');
      expect(await rowsOf(page)).toBe(100);
      await page.getByLabel('Source').selectOption('default');
      await press(page, 'Filter');
      expect([await rowsOf(page), new URL(page.url()).searchParams.get('limit')]).toEqual([100, '100']);
      await follow(page, 'Clear');
      expect(await rowsOf(page)).toBe(100);
      expect(await faultsIn(page, [{ width: 768, colorScheme: 'dark' }])).toEqual([]);
    },
  );

  test('search finds the middle of a job’s id, whatever its case, and says how far it looked', async () => {
    await using relay = await startTestService();
    const job = `Batch-${newJobId()}-Final`;
    await deliver(relay.webhooks, completed(job));
    await using opened = await signedIn(open, relay, { javaScriptEnabled: false, token: { role: 'viewer' } });
    const { page } = opened;
    await page.goto('/console');
    await page.getByRole('searchbox').fill(job.slice(2, -2).toUpperCase());
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.pathname === '/console/search');
    expect(await main(page)).toContain('Every job’s id was searched (1 job).');
    await follow(page, job);
    expect(await heading(page)).toContain(job);
  });

  test.for([[true], [false]])(
    'a list is exported whole, of a day or with its filter, with bodies for who may, with JavaScript: %s',
    async ([javaScriptEnabled = true]) => {
      await using relay = await startTestService();
      const jobs = Array.from({ length: 27 }, newJobId);
      for (const job of jobs) await deliver(relay.webhooks, completed(job));
      await deliver(relay.webhooks, { job_id: newJobId(), status: '=HYPERLINK(1)' });
      await using opened = await signedIn(open, relay, { javaScriptEnabled, token: { role: 'auditor' } });
      const { page } = opened;
      const exported = async () => {
        const coming = page.waitForEvent('download');
        await press(page, 'Export all that match');
        const download = await coming;
        return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') };
      };

      await page.goto('/console/deliveries?outcome=accepted');
      await page.getByText('Export', { exact: true }).click();
      expect(await faultsIn(page, [{ width: 390, colorScheme: 'dark' }])).toEqual([]);
      const csv = await exported();
      expect(csv.name).toBe('deliveries.csv');
      expect(csv.text.split('\r\n')).toHaveLength(1 + 27 + 1);

      // With bodies, as NDJSON, of one day; and the page stays where it is.
      await page.goto('/console/deliveries');
      await page.getByText('Export', { exact: true }).click();
      await page.getByLabel('Format').selectOption('ndjson');
      await page.getByLabel('with bodies').check();
      await page.getByLabel('Only of this day (UTC)').fill(new Date().toISOString().slice(0, 10));
      const ndjson = await exported();
      expect(ndjson.name).toBe('deliveries.ndjson');
      const bodies = parseLines(ndjson.text).map(
        ({ body }) => JSON.parse(String(body)) as { job_id: string },
      );
      expect(bodies).toHaveLength(28);
      expect(bodies.map(({ job_id: job }) => job)).toEqual(expect.arrayContaining(jobs));
      expect(new URL(page.url()).pathname).toBe('/console/deliveries');

      // Of another day nothing; and a spreadsheet runs nothing of it.
      await page.goto('/console/quarantine');
      await page.getByText('Export', { exact: true }).click();
      expect((await exported()).text).toContain(`,'=HYPERLINK(1),`);
      await page.getByLabel('Only of this day (UTC)').fill('2020-01-31');
      await expect
        .poll(() => page.getByRole('button', { name: 'Export all' }).isEnabled(), PATIENCE)
        .toBe(true);
      expect((await exported()).text.split('\r\n')).toHaveLength(2);
      const logged = await relay.database.query<{ subject: string; detail: { bodies?: boolean } }>(
        `select subject, detail::jsonb as detail from operator_log where action = 'export' order by id`,
      );
      expect(logged.map(({ subject, detail }) => [subject, detail.bodies ?? false])).toEqual([
        ['deliveries', false],
        ['deliveries', true],
        ['quarantine', false],
        ['quarantine', false],
      ]);

      await using viewer = await signedIn(open, relay, { javaScriptEnabled, token: { role: 'viewer' } });
      await viewer.page.goto('/console/deliveries');
      expect(await viewer.page.getByText('Export', { exact: true }).count()).toBe(0);
    },
  );

  test.for([[true], [false]])(
    'what a release could not do is said before it is asked for, with JavaScript: %s',
    async ([javaScriptEnabled = true]) => {
      await using relay = await startTestService();
      const [known, ...unknown] = [newJobId(), newJobId(), newJobId()];
      for (const job of [known, ...unknown])
        await deliver(relay.webhooks, { job_id: job, status: 'archived' });
      await using opened = await signedIn(open, relay, { javaScriptEnabled, token: { role: 'operator' } });
      const { page } = opened;
      await page.goto('/console/quarantine');
      await follow(page, 'Release all that match …');
      expect(await heading(page)).toBe('None of 3 deliveries can be released');
      expect(await page.getByRole('button', { name: /^Release/ }).count()).toBe(0);
      expect(await faultsIn(page, [{ width: 390, colorScheme: 'light' }])).toEqual([]);
      await relay.database.query(
        `update deliveries set body = convert_to('{"job_id":"${known}","status":"processing","progress_percentage":9}', 'utf8')
         where job_id = $1`,
        [known],
      );
      await page.goto('/console/quarantine');
      await follow(page, 'Release all that match …');
      expect(await heading(page)).toBe('Release 1 of 3 deliveries?');
      expect(await main(page)).toMatch(/2: unknown status/);
      await press(page, 'Release 1 of 3 deliveries');
      expect(await heading(page)).toBe('1 delivery released');
    },
  );
});
