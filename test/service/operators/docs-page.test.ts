// The API's documentation in a real browser: read without a token, and tried with one.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newToken } from '../../support/operators.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

const CHROMIUM = '/usr/bin/chromium';
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8');

type Opened = AsyncDisposable & {
  readonly page: Page;
  /** Violations of the policy, errors in the console, and requests to elsewhere. */
  readonly faults: string[];
};

/** What `globalThis` is in the page, whose types Node does not know. */
type InPage = {
  readonly axe: {
    run: (where: object) => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
  };
  readonly localStorage: object;
  readonly sessionStorage: object;
  readonly document: { readonly cookie: string };
};

/** Opens the form of an operation. */
async function formOf(page: Page, operation: string) {
  const section = page.locator(`#${operation}`);
  await section.locator('summary').click();
  return section.locator('form');
}

describe.skipIf(!existsSync(CHROMIUM))('the documentation', () => {
  let relay: TestService;
  let browser: Browser;
  let value: string;
  const job = newJobId();
  beforeAll(async () => {
    relay = await startTestService();
    await deliver(relay.webhooks, completed(job, { note: '<script>alert(1)</script>\u202e' }));
    ({ value } = await newToken(relay.database));
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  });
  afterAll(async () => {
    await browser.close();
    await relay[Symbol.asyncDispose]();
  });

  async function open(options: Parameters<Browser['newContext']>[0] = {}): Promise<Opened> {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (line) => {
      // Chromium writes a line for each answer that is an error; the test looks at these itself.
      if (line.type() === 'error' && !line.text().startsWith('Failed to load resource'))
        faults.push(line.text());
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(relay.operators)) faults.push(request.url());
      if (request.url().includes(value)) faults.push('a token in an address');
    });
    await page.goto(`${relay.operators}/api/v1/docs`);
    return { page, faults, [Symbol.asyncDispose]: () => context.close() };
  }

  test.each(['light', 'dark'] as const)('has no fault in %s, with a form open', async (colorScheme) => {
    await using opened = await open({ colorScheme });
    const { page, faults } = opened;
    await formOf(page, 'createReplay');
    await page.evaluate(AXE);
    // All operations are alike, and the whole page would take long.
    const include = ['header', 'nav', '.token', '.about', '#createReplay', '#shape-Job'];
    const { violations } = await page.evaluate(
      (parts) => (globalThis as unknown as InPage).axe.run({ include: parts.map((part) => [part]) }),
      include,
    );
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html).slice(0, 3)])).toEqual([]);
    expect(faults).toEqual([]);
  });

  test('is as wide as a telephone', async () => {
    await using opened = await open({ viewport: { width: 390, height: 844 } });
    await formOf(opened.page, 'createReplay');
    const width = await opened.page.locator('html').evaluate((html) => html.scrollWidth);
    expect(width).toBeLessThanOrEqual(390);
  });

  test('without JavaScript is whole, and offers nothing to try', async () => {
    await using opened = await open({ javaScriptEnabled: false });
    const { page, faults } = opened;
    expect(await page.locator('section h3').count()).toBeGreaterThan(30);
    expect(await page.locator('summary, input').count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test('tries a read with a pasted token, and keeps the token nowhere', async () => {
    await using opened = await open();
    const { page, faults } = opened;
    await page.getByLabel('Token').fill(` ${value} `);
    const form = await formOf(page, 'listJobs');
    await form.locator('[name="query job_id"]').fill(job);
    await form.getByRole('button', { name: 'Try' }).click();

    await expect.poll(() => form.getByRole('status').textContent()).toBe('200 OK');
    await expect.poll(() => form.locator('pre').textContent()).toContain(`"job_id": "${job}",\n`);
    expect(await form.locator('dl').textContent()).toMatch(
      /Content-Type: application\/json.*X-RateLimit-Limit: /,
    );
    const kept = await page.evaluate(() => {
      const { localStorage, sessionStorage, document } = globalThis as unknown as InPage;
      return JSON.stringify([localStorage, sessionStorage, document.cookie]);
    });
    expect(kept).toBe('[{},{},""]');
    expect(await page.content()).not.toContain(value);
    await page.reload();
    expect(await page.getByLabel('Token').inputValue()).toBe('');
    expect(faults).toEqual([]);
  });

  test('shows a sender’s text as text, and errors as they are answered', async () => {
    await using opened = await open();
    const { page, faults } = opened;
    const [row] = await relay.database.query<{ id: string }>('select id from deliveries');
    const form = await formOf(page, 'showDeliveryBody');
    await form.getByLabel('id').fill(row?.id ?? '');
    await form.getByRole('button', { name: 'Try' }).click();
    await expect.poll(() => form.getByRole('status').textContent()).toBe('401 Unauthorized');

    await page.getByLabel('Token').fill(value);
    await form.getByRole('button', { name: 'Try' }).click();
    await expect.poll(() => form.getByRole('status').textContent()).toBe('200 OK');
    await expect.poll(() => form.locator('pre').textContent()).toContain('<script>alert(1)</script>\u{fffd}');
    expect(await form.locator('pre *').count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test('says that an action acts, and the same key acts once', async () => {
    await using opened = await open();
    const { page, faults } = opened;
    await page.getByLabel('Token').fill(value);
    const form = await formOf(page, 'createToken');
    expect(await form.locator('.warning').textContent()).toContain('it acts on the running service');
    expect(await form.getByLabel('Idempotency-Key').inputValue()).toMatch(/^[0-9a-f]{32}$/);
    const body = form.locator('textarea');
    expect(JSON.parse(await body.inputValue())).toEqual({ name: '', role: expect.any(String) });
    await body.fill('{"name":"made in a browser","role":"viewer"}');
    for (const replayed of [false, true]) {
      await form.getByRole('button', { name: 'Send: this acts' }).click();
      await expect.poll(() => form.getByRole('status').textContent()).toBe('201 Created');
      await expect.poll(() => form.locator('dl').textContent()).toContain('Content-Type');
      expect((await form.locator('dl').textContent())?.includes('Idempotency-Replayed: true')).toBe(replayed);
    }
    const made = await relay.database.query(`select from tokens where name = 'made in a browser'`);
    expect(made).toHaveLength(1);
    expect(faults).toEqual([]);
  });

  test('shows a stream as it comes, until it is stopped', async () => {
    await using opened = await open();
    const { page, faults } = opened;
    await page.getByLabel('Token').fill(value);
    const form = await formOf(page, 'listen');
    await form.getByRole('button', { name: 'Try' }).click();
    await expect.poll(() => form.getByRole('status').textContent()).toBe('200 OK');
    const later = newJobId();
    await deliver(relay.webhooks, completed(later));
    await expect.poll(() => form.locator('pre').textContent()).toContain(later);
    await form.getByRole('button', { name: 'Stop' }).click();
    await expect.poll(() => form.getByRole('status').textContent()).toBe('200 OK (stopped)');
    expect(faults).toEqual([]);
  });
});
