// What the console's pages gain with a script: keys, local times, copies, pages that load themselves again, buttons that rest.
// All of it under the CSP.

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { describeInBrowser, type OpenPage, type PageOptions } from '../support/browser.ts';
import { signInBrowser } from '../support/console.ts';
import { axeViolations } from '../support/page-checks.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { shareTestService } from '../support/shared-service.ts';

async function openConsole(
  open: OpenPage,
  relay: TestService,
  path: string,
  options: Partial<PageOptions> = {},
) {
  const opened = await open({ baseUrl: relay.operators, ...options });
  await signInBrowser(opened.context, relay);
  await opened.page.goto(path);
  return opened;
}

const focused = (page: Page) =>
  page.evaluate<string>('document.activeElement.id || document.activeElement.textContent');
const isHelpOpen = (page: Page) => page.locator('dialog.keys').isVisible();

describeInBrowser("the console's script", (open) => {
  const shared = shareTestService();

  test('the keys reach the search box, the help and the rows', async () => {
    const relay = shared();
    const [first, second] = [newJobId(), newJobId()];
    await deliver(relay.webhooks, completed(first));
    await deliver(relay.webhooks, completed(second));
    await using opened = await openConsole(open, relay, '/console/jobs');
    const { page } = opened;
    await page.keyboard.press('j');
    expect(await focused(page)).toBe(second); // the newest first
    await page.keyboard.press('j');
    expect(await focused(page)).toBe(first);
    expect(await page.locator('tr.current').textContent()).toContain(first);
    await page.keyboard.press('k');
    expect(await focused(page)).toBe(second);
    await page.keyboard.press('?');
    expect(await isHelpOpen(page)).toBe(true);
    expect(await axeViolations(page)).toEqual([]);
    await page.keyboard.press('j'); // the list below the help stays where it is
    await page.keyboard.press('Escape');
    expect(await isHelpOpen(page)).toBe(false);
    expect(await focused(page)).toBe(second);
    await page.keyboard.press('/');
    expect(await focused(page)).toBe('search');
    expect(await page.locator('#search').inputValue()).toBe('');
    await page.goto('/console/jobs');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('job_id') === second);
    await opened.faults(); // the page of a job may not be there yet
  });

  test('the keys do nothing while somebody types, and none with a modifier', async () => {
    const relay = shared();
    await deliver(relay.webhooks, completed(newJobId()));
    await using opened = await openConsole(open, relay, '/console/jobs');
    const { page } = opened;
    const field = page.locator('input[name="job_id_prefix"]');
    await field.focus();
    await page.keyboard.type('j/?k');
    expect(await field.inputValue()).toBe('j/?k');
    await page.locator('select[name="state"]').focus();
    await page.keyboard.press('?');
    await page.locator('h1').evaluate<void, unknown>('(heading) => (heading.contentEditable = "true")');
    await page.locator('h1').focus();
    await page.keyboard.press('?');
    await page.evaluate('document.activeElement.blur()');
    for (const key of ['Control+j', 'Alt+j', 'Meta+j']) await page.keyboard.press(key);
    expect(await isHelpOpen(page)).toBe(false);
    expect(await page.locator('tr.current').count()).toBe(0);
  });

  test('pointing at a time shows the local one and how long ago it was', async () => {
    const relay = shared();
    await deliver(relay.webhooks, completed(newJobId()));
    await using opened = await openConsole(open, relay, '/console/jobs', { timezoneId: 'Asia/Tokyo' });
    const time = opened.page.locator('main time').first();
    await time.hover();
    const [utc = '', local, ago] = (await time.getAttribute('title'))?.split('\n') ?? [];
    expect(utc).toBe(await time.getAttribute('datetime'));
    expect(local).toContain('GMT+9');
    expect(ago).toMatch(/ago|now/);
  });

  test('a line to paste is copied; without a clipboard it is selected', async () => {
    const relay = shared();
    await using opened = await openConsole(open, relay, '/console/jobs', {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const { page } = opened;
    await page.getByText('From the command line').click();
    const copy = page.getByRole('button', { name: 'Copy: Command line' });
    await copy.click();
    await page.locator('[role="status"]', { hasText: 'Copied' }).waitFor({ state: 'attached' });
    expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(
      'tallyhook jobs list --limit 25',
    );
    // As on plain http by an address, where scripts have no clipboard.
    await page.evaluate(
      `Object.defineProperty(navigator, 'clipboard', { value: undefined }); document.execCommand = () => false`,
    );
    await copy.click();
    await page.locator('[role="status"]', { hasText: 'Selected' }).waitFor({ state: 'attached' });
    expect(await page.evaluate<string>('String(getSelection())')).toBe('tallyhook jobs list --limit 25');
  });

  test('the overview loads itself again, and leaves the focus, the folds and a selection alone', async () => {
    await using relay = await startTestService();
    await using opened = await open({ baseUrl: relay.operators });
    const { page, context } = opened;
    await signInBrowser(context, relay);
    // The seconds between two loads are the page's; the test waits for fewer.
    await page.route('**/console', async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replace(/data-refresh="\d+"/, 'data-refresh="0.3"');
      await route.fulfill({ response, body });
    });
    await page.goto('/console');
    await page.getByText('All is well.').waitFor();
    await page.getByText('From the command line').click();
    const link = page.getByRole('link', { name: 'Last 6 hours' });
    await link.focus();
    await deliver(relay.webhooks, { job_id: newJobId(), status: 'unheard_of' });
    await page.getByText('1 delivery in quarantine').waitFor();
    expect(await focused(page)).toBe('Last 6 hours');
    expect(await page.locator('.same-as').getAttribute('open')).not.toBeNull();
    expect(await page.locator('main [aria-live], main [role="status"], main [role="alert"]').count()).toBe(0);

    // Counted where they begin, and from the same moment: one that is under way ends meanwhile, and replaces nothing.
    await page.evaluate(`{
      const load = fetch;
      globalThis.loads = 0;
      globalThis.fetch = (...asked) => { loads += 1; return load(...asked); };
      getSelection().selectAllChildren(document.querySelector('h1'));
    }`);
    await deliver(relay.webhooks, { job_id: newJobId(), status: 'unheard_of' });
    await page.waitForTimeout(1_000); // nothing may happen, so there is nothing to wait for
    expect(await page.evaluate<number>('loads')).toBe(0);
    expect(await page.evaluate<string>('String(getSelection())')).toBe('Overview');
    await page.evaluate('getSelection().removeAllRanges()');
    await page.getByText('2 deliveries in quarantine').waitFor();
    await page.unrouteAll({ behavior: 'wait' });
  });

  test('a page whose last state does not change any more shows it, and loads itself no more', async () => {
    const relay = shared();
    await using opened = await open({ baseUrl: relay.operators });
    const { page, context } = opened;
    await signInBrowser(context, relay);
    let loads = 0;
    await page.route('**/console', async (route) => {
      loads += 1;
      const response = await route.fetch();
      const body = await response.text();
      const last = body.replace(/ data-refresh="\d+"/, '').replace('Overview</h1>', 'The end</h1>');
      // Longer than between two loads: the next one waits for this answer.
      if (loads === 2) await page.waitForTimeout(1_000);
      await route.fulfill({
        response,
        body: loads === 1 ? body.replace(/data-refresh="\d+"/, 'data-refresh="0.3"') : last,
      });
    });
    await page.goto('/console');
    await page.getByRole('heading', { name: 'The end' }).waitFor();
    await page.waitForTimeout(1_000); // nothing may happen, so there is nothing to wait for
    expect(loads).toBe(2);
    await page.unrouteAll({ behavior: 'wait' });
  });

  test('the end of the session is seen by a page that loads itself again', async () => {
    const relay = shared();
    await using opened = await open({ baseUrl: relay.operators });
    const { page, context } = opened;
    const visit = await signInBrowser(context, relay);
    await page.route('**/console', async (route) => {
      const response = await route.fetch({ maxRedirects: 0 });
      const body = (await response.text()).replace(/data-refresh="\d+"/, 'data-refresh="0.3"');
      await route.fulfill({ response, body });
    });
    await page.goto('/console');
    await page.unrouteAll({ behavior: 'wait' });
    await visit.post('/console/sign-out');
    await page.waitForURL(/\/console\/sign-in/);
    expect(await page.locator('h1').textContent()).toBe('Sign in');
  });

  test('the button of a form that acts rests after it was pressed', async () => {
    const relay = shared();
    await using opened = await openConsole(open, relay, '/console/jobs');
    const { page } = opened;
    // The page stays, so that its button can be looked at.
    await page.evaluate(`window.addEventListener('submit', (event) => event.preventDefault())`);
    const button = page.getByRole('button', { name: 'Sign out' });
    await button.click();
    await page.locator('.who button:disabled').waitFor();
    await page.locator('.who button:enabled').waitFor();
    expect(page.url()).toMatch(/\/console\/jobs$/);
  });
});
