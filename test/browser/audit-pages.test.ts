// The pages of jobs, deliveries, events and publications in a real browser, with what senders may have written in them.

import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { address } from '../../src/operators/kernel/view/links.ts';
import { describeInBrowser, type Look, show } from '../support/browser.ts';
import { newRequests, type PageRequest } from '../support/console-pages.ts';
import { signInBrowser } from '../support/console.ts';
import { faultsIn, overflow } from '../support/page-checks.ts';
import { patience } from '../support/patience.ts';
import { PUBLICATIONS } from '../support/publications.ts';
import { completed, deliver, failed, progress } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { cases } from '../only-in-all.ts';

const PATIENCE = { timeout: patience(15_000) };

const HOSTILE = `<script>alert(1)</script>'"javascript:alert(1)`;
const MARKUP = '</pre></details><script>alert(1)</script><img src=x onerror=alert(1)>';

async function fill(relay: TestService): Promise<void> {
  for (let at = 10; at < 40; at++) await deliver(relay.webhooks, progress(`job_${at}`, 10));
  for (const job of ['job_story', HOSTILE]) {
    await deliver(relay.webhooks, progress(job, 20));
    await deliver(relay.webhooks, progress(job, 20));
    const fields = {
      error_message: `${MARKUP}\u202e`,
      [MARKUP]: `javascript:\u202e\0`,
      n: 'x'.repeat(50_000),
    };
    await deliver(relay.webhooks, failed(job, fields), { headers: { 'user-agent': MARKUP } });
    await deliver(relay.webhooks, failed(job, { error_message: MARKUP }));
    await deliver(relay.webhooks, { job_id: job, status: MARKUP });
  }
  await relay.database.query(
    `update deliveries set body = decode('00ff', 'hex') || body where outcome = 'quarantined'`,
  );
  await expect.poll(() => relay.database.query(`select from ${PUBLICATIONS} p`), PATIENCE).toHaveLength(34);
}

/** A page's address, and the button that is pressed on it. */
type Visit = readonly [path: string, press?: string];

async function visitsOf(relay: TestService): Promise<readonly Visit[]> {
  const rows = await relay.database.query<{ id: string; outcome: string }>(
    `select id, outcome from deliveries where job_id = $1`,
    [HOSTILE],
  );
  const path = (outcome: string) => `/console/deliveries/${rows.find((row) => row.outcome === outcome)?.id}`;
  const job = address('/console/job', { source: 'default', job_id: HOSTILE });
  const event = address('/console/event', { id: `default:${HOSTILE}:failed` });
  return [
    ['/console/jobs'],
    ['/console/jobs?state=stuck&stuck_after=60'],
    [address('/console/jobs', { job_id: MARKUP })],
    ['/console/deliveries'],
    ['/console/deliveries?outcome=quarantined&remote_address=127.0.0.1'],
    ['/console/events?kind=failed'],
    ['/console/publications'],
    [job],
    [job, 'Show the error message'],
    [job, 'Show the body'],
    [path('accepted')],
    [path('accepted'), 'Show the body'],
    [path('conflict'), 'Compare the two bodies'],
    [path('quarantined'), 'Show the body'],
    [path('duplicate')],
    [event],
    [event, 'Show the CloudEvent'],
  ];
}

async function open(page: Page, [path, press]: Visit): Promise<void> {
  await page.goto(path);
  if (press !== undefined) {
    const loaded = page.waitForEvent('load');
    await page.getByRole('button', { name: press }).last().click();
    await loaded;
  }
  await page.evaluate(`for (const part of document.querySelectorAll('details')) part.open = true`);
}

const WITH_JAVASCRIPT: readonly Look[] = [
  { width: 1280, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
];
const EACH_WIDTH: readonly Look[] = [
  { width: 1280, colorScheme: 'dark' },
  { width: 768, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
];
const THE_OTHER_WAY: readonly Look[] = [
  { width: 1280, colorScheme: 'light' },
  { width: 768, colorScheme: 'dark' },
  { width: 390, colorScheme: 'light' },
];
/** What no entry of the list of pages leads to. */
const MORE = [
  '/console/search',
  '/console/replays/new',
  '/console/tokens/new',
  '/console/docs/operators',
  '/console/docs/runbook',
  '/console/docs/subscribers',
];

const listed = (page: Page) =>
  page.evaluate<string[]>(
    `[...document.querySelectorAll('.page > nav a')].map((each) => each.getAttribute('href'))`,
  );

/** Undefined if each text has a size of the scale, and the present page is named in the list of pages, or on its fold. */
function outOfOrder(page: Page): Promise<string | undefined> {
  return page.evaluate<string | undefined>(`(() => {
    const sizeOf = (each) => parseFloat(getComputedStyle(each).fontSize);
    const texts = [...document.querySelectorAll('body *')].filter((each) =>
      [...each.childNodes].some((child) => child.nodeType === 3 && child.data.trim() !== ''));
    const small = texts.find((each) => sizeOf(each) < 12);
    if (small) return 'smaller than 12 pixels: ' + small.textContent;
    if (sizeOf(document.querySelector('h1')) < 22 || sizeOf(document.body) < 14) return 'the title does not lead';
    const present = document.querySelector('.page > nav [aria-current]');
    if (present === null) return undefined;
    const shown = [present, document.querySelector('.menu > summary b')].find((each) => each.checkVisibility());
    const { left = -1, right = -1 } = shown?.getBoundingClientRect() ?? {};
    return left >= 0 && right > left && right <= innerWidth && shown.textContent === present.textContent
      ? undefined : 'the present page is not seen in the list of pages';
  })()`);
}
const WITHOUT_JAVASCRIPT: readonly Look[] = [{ width: 390, colorScheme: 'light' }];

describeInBrowser('the pages of jobs, deliveries, events and publications', (openPage) => {
  test.for(
    cases(
      [{ looks: WITH_JAVASCRIPT, javaScriptEnabled: true }],
      [{ looks: WITHOUT_JAVASCRIPT, javaScriptEnabled: false }],
    ),
  )(
    'are accessible and fit, and what senders wrote is inert, with JavaScript $javaScriptEnabled',
    { timeout: patience(180_000) },
    async ({ looks, javaScriptEnabled }) => {
      await using relay = await startTestService();
      await fill(relay);
      await using opened = await openPage({ baseUrl: relay.operators, javaScriptEnabled });
      const { page, context } = opened;
      await signInBrowser(context, relay, { role: 'auditor' });
      page.on('dialog', () => expect.unreachable('a script of a sender ran'));
      for (const visit of await visitsOf(relay)) {
        await open(page, visit);
        expect(await faultsIn(page, looks), `on ${visit.join(' ')}`).toEqual([]);
        expect(await page.locator('h1').count()).toBe(1);
        expect(await page.locator('main script, main img').count()).toBe(0);
      }
    },
  );

  test.for(cases([false], [true]))(
    'filter, reload, back: the view is the address, with JavaScript %s',
    async (javaScriptEnabled) => {
      await using relay = await startTestService();
      await fill(relay);
      await using opened = await openPage({ baseUrl: relay.operators, javaScriptEnabled });
      const { page, context } = opened;
      await signInBrowser(context, relay, { role: 'viewer' });
      const rows = () => page.locator('tbody tr').count();
      await page.goto('/console/deliveries');
      expect(await rows()).toBe(25);

      await page.getByLabel('Job', { exact: true }).fill('job_story');
      await page.getByLabel('Outcome').selectOption('duplicate');
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
      expect(await rows()).toBe(1);
      const filtered = page.url();
      await page.reload();
      expect([await rows(), page.url()]).toEqual([1, filtered]);
      expect(await page.getByLabel('Outcome').inputValue()).toBe('duplicate');

      await page.getByRole('link', { name: 'Clear' }).click();
      const weights = await page.evaluate<string[]>(
        `[...document.querySelectorAll('.pager span a')].map((each) => getComputedStyle(each).fontWeight)`,
      );
      expect(weights).toEqual(['600', '400', '400']); // the present number of rows is seen
      await page.getByRole('link', { name: 'Next page' }).click();
      const second = await page.locator('tbody').innerText();
      await page.goBack();
      expect(await rows()).toBe(25);
      await page.goForward();
      expect(await page.locator('tbody').innerText()).toBe(second);
      await page.goto(filtered); // the link in a chat
      expect(await rows()).toBe(1);
    },
  );

  test.for(cases([false], [true]))(
    'a job’s story leads to its delivery, its event and the message, with JavaScript %s',
    async (javaScriptEnabled) => {
      await using relay = await startTestService();
      await deliver(relay.webhooks, completed('job_story'));
      await expect
        .poll(() => relay.database.query(`select from ${PUBLICATIONS} p`), PATIENCE)
        .toHaveLength(1);
      await using opened = await openPage({ baseUrl: relay.operators, javaScriptEnabled });
      const { page, context } = opened;
      await signInBrowser(context, relay, { role: 'auditor' });
      await page.goto('/console/jobs');
      await page.getByRole('link', { name: 'job_story' }).click();
      await page.getByRole('button', { name: 'Show the body' }).click();
      expect(await page.locator('.story pre').first().innerText()).toContain('"job_id": "job_story"');
      await page.getByRole('link', { name: 'Delivery', exact: true }).click();
      expect(await page.locator('h1').innerText()).toContain('Delivery');
      await page.getByRole('link', { name: 'default:job_story:completed' }).click();
      await page.getByRole('button', { name: 'Show the CloudEvent' }).click();
      expect(await page.locator('main pre').first().innerText()).toContain('"specversion": "1.0"');
    },
  );

  test.for(cases([false], [true]))(
    'filters are folded where the window is narrow, and open at a press, with JavaScript %s',
    async (javaScriptEnabled) => {
      await using relay = await startTestService();
      await using opened = await openPage({ baseUrl: relay.operators, javaScriptEnabled });
      const { page, context } = opened;
      await signInBrowser(context, relay, { role: 'viewer' });
      const field = page.getByLabel('Job', { exact: true });
      const fold = page.getByText(/^Filters/);
      await page.goto('/console/deliveries?job_id=job_1');
      expect([await field.isVisible(), await fold.isVisible()]).toEqual([true, false]);
      await page.setViewportSize({ width: 390, height: 800 });
      expect(await field.isVisible()).toBe(false);
      expect(await fold.innerText()).toBe('Filters (1)');
      await fold.click();
      await field.fill('job_2');
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
      await page.waitForURL(/job_id=job_2/);
    },
  );

  test.for(
    cases(
      [
        { data: 'no', looks: EACH_WIDTH },
        { data: 'much', looks: EACH_WIDTH },
      ],
      [
        { data: 'no', looks: THE_OTHER_WAY },
        { data: 'much', looks: THE_OTHER_WAY },
      ],
    ),
  )(
    'with $data data, each page of the console is accessible, fits, and shows where one is, first in $looks.0.colorScheme',
    { timeout: patience(240_000) },
    async ({ data, looks }) => {
      await using relay = await startTestService();
      await using opened = await openPage({ baseUrl: relay.operators });
      const { page, context } = opened;
      await signInBrowser(context, relay, { role: 'admin' });
      if (data === 'much') await fill(relay);
      const things = data === 'much' ? await newRequests(relay) : new Map<string, PageRequest>();
      await page.goto('/console');
      const paths = [...things]
        .filter(
          ([name, { status }]) => name.startsWith('get ') && status === 200 && !name.endsWith('/stream'),
        )
        .map(([, { path }]) => path);
      for (const path of new Set([...(await listed(page)), ...MORE, ...paths])) {
        await page.goto(path);
        expect(await faultsIn(page, looks), `on ${path}`).toEqual([]);
        for (const look of looks) {
          await show(page, look);
          expect(await outOfOrder(page), `on ${path} at ${look.width}`).toBe(undefined);
        }
      }
    },
  );

  test.for(cases([false], [true]))(
    'where the window is narrow, the pages are in a menu that names the present one, with JavaScript %s',
    async (javaScriptEnabled) => {
      await using relay = await startTestService();
      await using opened = await openPage({ baseUrl: relay.operators, width: 390, javaScriptEnabled });
      const { page, context } = opened;
      await signInBrowser(context, relay, { role: 'viewer' });
      await page.goto('/console/sources');
      const menu = page.getByText(/^Menu/);
      expect(await menu.innerText()).toBe('Menu Sources');
      const jobs = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Jobs' });
      expect(await jobs.isVisible()).toBe(false);
      await menu.click();
      expect(await overflow(page)).toEqual([]);
      const heights = await page.evaluate<number[]>(
        `[...document.querySelectorAll('.menu a')].map((each) => each.getBoundingClientRect().height)`,
      );
      expect(Math.min(...heights)).toBeGreaterThanOrEqual(44); // of a finger
      const isRoleWhole = `(({ scrollWidth, offsetWidth, textContent }) => textContent === 'viewer' && scrollWidth <= offsetWidth)(
        document.querySelector('.who > .dim'))`;
      expect(await page.evaluate<boolean>(isRoleWhole)).toBe(true);
      await jobs.click();
      expect(await page.locator('h1').innerText()).toBe('Jobs');
    },
  );
});
