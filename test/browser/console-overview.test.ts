// The overview, incidents, search and sources in a real browser: at every width, light and dark, with JavaScript and without.

import { expect, test } from 'vitest';
import { describeInBrowser, type Look } from '../support/browser.ts';
import { signInBrowser } from '../support/console.ts';
import { type IncidentRow, insertIncident } from '../support/incidents.ts';
import { faultsIn } from '../support/page-checks.ts';
import { completed, deliver, newJobId, progress } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { cases } from '../only-in-all.ts';

const SENT = 8;

/** What goes on and what was, with a source and with names of people. */
const INCIDENTS: readonly IncidentRow[] = [
  { condition: 'source-silent', subject: 'team-a', severity: 'critical', beganAgo: '3 hours' },
  { condition: 'quarantine', severity: 'warning', beganAgo: '20 minutes' },
  {
    condition: 'outbox-lag',
    severity: 'critical',
    beganAgo: '9 hours',
    endedAgo: '7 hours',
    eventsWaited: 1_234,
    decidedBy: ['Ada', 'Grace'],
  },
];

type Case = { readonly javaScriptEnabled: boolean; readonly looks: readonly Look[] };

/** Charts with bars and lines, a row of drift, and something to decide. */
async function fill(relay: TestService): Promise<void> {
  const jobId = newJobId();
  for (let percent = 0; percent < 5; percent++) await deliver(relay.webhooks, progress(jobId, percent));
  await deliver(relay.webhooks, completed(jobId, { colour_space: 'bt709' }));
  await deliver(relay.webhooks, { job_id: jobId, status: 'unheard_of' });
  await deliver(relay.webhooks, completed(jobId), { secret: 'another-secret-0123456789' });
  // All of them: the first write may have some alone.
  const counted = () =>
    relay.database.query<{ n: number }>(
      `select coalesce(sum(count), 0)::int as n from rollups where measure = 'answer'`,
    );
  const rows = async () => (await counted())[0]?.n === SENT || undefined;
  await until('the statistics are written', rows, { limitMs: 20_000 });
  for (const row of INCIDENTS) await insertIncident(relay.database, row);
}

describeInBrowser('the overview, incidents, search and sources', (open) => {
  test.for(
    cases<Case>(
      [
        {
          javaScriptEnabled: true,
          looks: [
            { width: 1280, colorScheme: 'light' },
            { width: 390, colorScheme: 'dark' },
          ],
        },
      ],
      [
        {
          javaScriptEnabled: false,
          looks: [
            { width: 768, colorScheme: 'dark' },
            { width: 390, colorScheme: 'light' },
          ],
        },
      ],
    ),
  )('are accessible and fit, with JavaScript $javaScriptEnabled', async ({ looks, javaScriptEnabled }) => {
    await using relay = await startTestService();
    await fill(relay);
    await using opened = await open({ baseUrl: relay.operators, javaScriptEnabled });
    const { page } = opened;
    await signInBrowser(opened.context, relay);
    for (const path of [
      '',
      '/incidents',
      '/incidents?state=open',
      '/sources',
      '/source?name=default',
      '/search',
      '/search?q=job_',
      '/search?q=%00',
    ]) {
      await page.goto(`/console${path}`);
      for (const fold of await page.locator('main details > summary').all()) await fold.click();
      expect({ path, faults: await faultsIn(page, looks) }).toEqual({ path, faults: [] });
    }
    await opened.faults(); // %00 is a 400
  });

  test('a pasted id leads to its page, without JavaScript too', async () => {
    await using relay = await startTestService();
    const jobId = newJobId();
    await deliver(relay.webhooks, completed(jobId));
    await using opened = await open({ baseUrl: relay.operators, javaScriptEnabled: false });
    const { page } = opened;
    await signInBrowser(opened.context, relay);
    await page.goto('/console');
    await page.locator('#search').fill(` ${jobId} `);
    await page.getByRole('button', { name: 'Search' }).click();
    const url = new URL(page.url());
    expect(url.pathname).toBe('/console/job');
    expect(url.searchParams.get('job_id')).toBe(jobId);
    await opened.faults(); // the page of a job may not be there yet
  });

  test('a chart is named and described for those who do not see it', async () => {
    await using relay = await startTestService();
    await fill(relay);
    await using opened = await open({ baseUrl: relay.operators });
    const { page } = opened;
    await signInBrowser(opened.context, relay);
    await page.goto('/console');
    const chart = page.getByRole('img', { name: /^Deliveries by outcome/ });
    expect(await chart.count()).toBe(1);
    expect(await chart.locator('desc').textContent()).toContain('1 quarantined');
    expect(await page.locator('#outcomes-what').textContent()).toContain('answered');
  });

  test.for([true, false])(
    'a bar, and each of the numbers behind it, leads to the list that it counts, with JavaScript %s',
    async (javaScriptEnabled) => {
      await using relay = await startTestService();
      await fill(relay);
      await using opened = await open({ baseUrl: relay.operators, javaScriptEnabled });
      const { page } = opened;
      await signInBrowser(opened.context, relay);
      await page.goto('/console');
      const figure = page
        .locator('figure')
        .filter({ has: page.getByRole('img', { name: /^Deliveries by/ }) });
      await figure.locator('.plot-links a[title*="accepted"]').first().click();
      const listed = async () => {
        await page.waitForURL('**/console/deliveries?*');
        return page.locator('tbody tr').count();
      };
      expect(await listed()).toBeGreaterThan(0);

      await page.goto('/console');
      const numbers = page.locator('details.numbers').first();
      await numbers.locator('summary').click();
      const link = numbers.locator('a[href*="outcome=quarantined"]');
      const counted = Number(await link.textContent());
      await link.click();
      expect(await listed()).toBe(counted);
    },
  );

  test('what waits has a curve, and the oldest of it a line beside the lag, while nothing is published', async () => {
    await using relay = await startTestService();
    await relay.database.query(
      `insert into waits select date_trunc('minute', now()) - make_interval(mins => n), 10 * n, 1, 2, 3, 60 * n
       from generate_series(0, 9) n`,
    );
    await using opened = await open({ baseUrl: relay.operators });
    const { page } = opened;
    await signInBrowser(opened.context, relay);
    await page.goto('/console');
    const waited = page.locator('figure').filter({ has: page.getByRole('img', { name: /^What waited/ }) });
    expect(await waited.locator('text').first().textContent()).toBe('peak: 90 in a minute');
    expect(await waited.locator('polyline').count()).toBe(4);
    expect(await waited.getByRole('link', { name: 'parked' }).getAttribute('href')).toBe(
      '/console/outbox?state=parked',
    );
    const lag = page.locator('figure').filter({ has: page.getByRole('img', { name: /^Lag/ }) });
    expect(await lag.locator('.legend').textContent()).toContain('oldest that waited 9 min');
  });
});
