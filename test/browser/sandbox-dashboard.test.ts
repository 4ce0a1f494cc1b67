// The sandbox's dashboard in a real Chromium: every page in both colours and at two widths, and what a developer does with
// it from the first sign-in to the end of a session, with JavaScript and without.

import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { describeInBrowser, type Look } from '../support/browser.ts';
import { signedIn } from '../support/dashboard.ts';
import { createFolder } from '../support/folder.ts';
import { startHostileSandbox } from '../support/hostile-sandbox.ts';
import { faultsIn } from '../support/page-checks.ts';
import { answer, startReceiver } from '../support/receiver.ts';
import {
  createJob,
  newToken,
  startTestFiles,
  startTestSandbox,
  type TestSandbox,
  untilEnded,
} from '../support/sandbox.ts';
import { waitFor } from '../support/waits.ts';
import { IS_SHORT_RUN, cases } from '../only-in-all.ts';

/** With the sample clip. */
async function startFiles() {
  const files = await startTestFiles();
  const clip = await fetch(files.input).then((response) => response.arrayBuffer());
  await fetch(files.output('sample.mp4'), { method: 'PUT', body: clip });
  return files;
}

const addressIn = ({ sandbox }: TestSandbox) => sandbox.newSignIn(sandbox.accounts.open('default'));

async function signIn(page: Page, on: TestSandbox): Promise<void> {
  await page.goto(addressIn(on));
  await page.click('text=Sign in >> nth=-1');
  await page.waitForURL('**/dashboard');
}

const LOOKS: readonly Look[] = ([1280, 390] as const).flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
);

async function looksRight(page: Page, path: string, looks = LOOKS): Promise<void> {
  expect({ path, faults: await faultsIn(page, looks) }).toEqual({ path, faults: [] });
  expect({ path, title: await page.title() }).toEqual({
    path,
    title: expect.stringContaining('Conversion sandbox'),
  });
}

vi.setConfig({ testTimeout: 90_000 });

describeInBrowser('the sandbox’s dashboard', (open) => {
  test('every page is sound: light and dark, wide and narrow', async () => {
    await using files = await startFiles();
    await using receiver = await startReceiver(answer(500, 200));
    await using on = await startTestSandbox({ filesUrl: files.url, receiverUrl: receiver.url });
    const urls = { input_url: files.input, output_url: files.output('out.webm'), webhook_url: receiver.url };
    const good = await createJob(on, urls);
    const bad = await createJob(on, { ...urls, input_url: files.corrupt });
    await untilEnded(on, bad.job_id);
    await untilEnded(on, good.job_id);
    newToken(on.sandbox, { name: 'that has expired', expiresAt: '2020-01-01T00:00:00.000Z' });
    const { text } = await (await signedIn(on.sandbox)).get(`/jobs/${good.job_id}`);
    const delivery = /whd_\w{24}/.exec(text)?.[0];

    await using opened = await open({ baseUrl: on.sandbox.dashboardUrl });
    const { page } = opened;
    const visit = async (path: string) => {
      await page.goto(`/dashboard${path}`);
      await looksRight(page, path);
    };
    await visit('/sign-in');
    await visit('/sign-in?ended=1');
    await page.goto(addressIn(on));
    await looksRight(page, '/sign-in?code');
    await signIn(page, on);
    for (const path of [
      '',
      '/jobs',
      '/jobs/new',
      '/jobs?status=processing',
      `/jobs/${good.job_id}`,
      `/jobs/${bad.job_id}`,
    ]) {
      await visit(path);
    }
    for (const path of [
      '/deliveries',
      `/deliveries/${delivery}`,
      '/webhooks?done=saved',
      '/tokens?done=revoked',
    ]) {
      await visit(path);
    }
    await page.click('summary >> nth=0');
    await looksRight(page, 'a token to revoke');
    await page.fill('[name=name]', 'seen');
    await page.click('text=Create the token');
    await page.waitForSelector('#value');
    await looksRight(page, 'a token’s value');
    await page.goto('/dashboard/webhooks');
    await page.click('text=Show the secret');
    await page.click('summary');
    await looksRight(page, 'the secret');
    await page.goto('/dashboard/jobs/new');
    await page.check('input[value=own]');
    await looksRight(page, 'a file of one’s own');
    expect(await opened.faults()).toEqual([]);
    await page.goto('/dashboard/jobs/job_none');
    await looksRight(page, 'a page that is not there');
    expect(await opened.faults()).toEqual([expect.stringContaining('404')]);
  });

  test('an account without anything has sound pages, too', async () => {
    await using on = await startTestSandbox();
    await using opened = await open({ baseUrl: on.sandbox.dashboardUrl });
    const { page } = opened;
    await page.goto(on.sandbox.newSignIn(on.sandbox.accounts.open('empty')));
    await page.click('text=Sign in >> nth=-1');
    await page.waitForURL('**/dashboard');
    for (const path of ['', '/jobs', '/jobs/new', '/deliveries', '/tokens']) {
      await page.goto(`/dashboard${path}`);
      await looksRight(page, path, [{ width: 1280, colorScheme: 'light' }]);
    }
    expect(await opened.faults()).toEqual([]);
  });

  test.skipIf(IS_SHORT_RUN)('hostile text stays text: light and dark, wide and narrow', async () => {
    await using folder = await createFolder();
    await using hostile = await startHostileSandbox(folder);
    const { on, jobId, deliveryId } = hostile;
    await using opened = await open({ baseUrl: on.sandbox.dashboardUrl });
    const { page } = opened;
    await signIn(page, on);
    for (const path of [
      '',
      '/jobs',
      `/jobs/${jobId}`,
      '/deliveries',
      `/deliveries/${deliveryId}`,
      '/webhooks',
      '/tokens',
    ]) {
      await page.goto(`/dashboard${path}`);
      await looksRight(page, path);
    }
    expect(await opened.faults()).toEqual([]);
  });

  test.for(cases([true], [false]))(
    'the story of a developer, with JavaScript: %s',
    async (javaScriptEnabled) => {
      await using files = await startFiles();
      await using receiver = await startReceiver();
      await using on = await startTestSandbox({
        filesUrl: files.url,
        receiverUrl: receiver.url,
        simulatedStepMs: 600,
      });
      await using opened = await open({ baseUrl: on.sandbox.dashboardUrl, javaScriptEnabled });
      const { page } = opened;
      const main = () => page.innerText('main');
      const untilShown = (text: RegExp) =>
        waitFor(async () => expect(await main().catch(() => '')).toMatch(text), {
          timeout: 15_000,
          interval: 100,
        });

      // In by the printed address, and a token, whose value is shown once.
      await signIn(page, on);
      await page.click('nav >> text=Tokens');
      await page.fill('[name=name]', 'of the story');
      await page.click('text=Create the token');
      const token = await page.innerText('#value');
      expect(token).toMatch(/^cvs_live_[\w-]{43}$/);
      expect(await page.isVisible('text=Copy')).toBe(javaScriptEnabled);
      await page.click('nav >> text=Tokens');
      expect(await main()).not.toContain(token);

      // Out, and in again with the token.
      await page.click('text=Sign out');
      await page.fill('[name=token]', token);
      await page.click('main button');
      await page.waitForURL('**/dashboard');

      // A conversion: it goes on by itself.
      await page.click('text=New conversion');
      await page.click('text=Create the conversion');
      await page.waitForURL('**/jobs/job_*');
      await untilShown(/processing\s+[1-9]\d? %/);
      await untilShown(/completed\s+100 %/);
      await untilShown(/completed\s+✓?\s*delivered\s+1\s+✓?\s*200/);
      const sent = receiver.received.length;

      // Its last webhook once more.
      await page.click('main >> text=/^whd_/ >> nth=0');
      expect(await main()).toContain('"status":"completed"');
      await page.click('main >> text=Redeliver');
      await untilShown(/\n2\s+✓?\s*200/);
      await receiver.untilReceived(sent + 1);

      // The secret, shown at a press, and replaced.
      await page.click('nav >> text=Webhooks');
      await page.click('text=Show the secret');
      const secret = await page.innerText('#value');
      await page.click('text=Replace the secret');
      await page.click('text=Replace it now');
      await untilShown(/There is a new signing secret/);
      await page.click('text=Show the secret');
      expect(await page.innerText('#value')).not.toBe(secret);

      // The token's end is the session's.
      await page.click('nav >> text=Tokens');
      const row = page.locator('tr', { hasText: 'of the story' });
      await row.locator('summary').click();
      await row.locator('text=Revoke this token').click();
      await untilShown(/Your session has ended/);
      expect(page.url()).toContain('/dashboard/sign-in');
      expect(await opened.faults()).toEqual([]);
      await page.goto(`/dashboard/jobs`);
      expect(page.url()).toContain('/dashboard/sign-in');
    },
  );
});
