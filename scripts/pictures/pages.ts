// Which pages are pictured, and in which state.

import type { Page } from 'playwright-core';
import { send } from './history.ts';
import { completed, idOf, progress, SOURCES, STORY } from './plan.ts';
import type { Stage } from './stage.ts';

export type Picture = {
  /** Of the file. */
  readonly name: string;
  /** Below `/console`. */
  readonly path: string;
  /** Of the window in pixels, where the usual one shows too little. */
  readonly height?: number;
  /** What is done on the page before the picture. */
  readonly prepare?: (page: Page, stage: Stage) => Promise<void>;
};

const job = new URLSearchParams({ source: STORY.source, job_id: STORY.jobId }).toString();

export const PICTURES: readonly Picture[] = [
  { name: 'overview', path: '?range=6h' },
  { name: 'search', path: '/search?q=job_5', height: 520 },
  { name: 'jobs', path: '/jobs' },
  { name: 'job', path: `/job?${job}`, height: 1_500 },
  { name: 'deliveries', path: '/deliveries', height: 520 },
  { name: 'delivery', path: '/deliveries?outcome=conflict', height: 900, prepare: compare },
  { name: 'events', path: '/events', height: 520 },
  { name: 'event', path: `/event?id=${STORY.source}:${STORY.jobId}:completed`, height: 620 },
  { name: 'publications', path: '/publications?result=nacked', height: 500 },
  { name: 'outbox', path: '/outbox', height: 660 },
  { name: 'quarantine', path: '/quarantine', height: 600 },
  { name: 'replays', path: '/replays', height: 500 },
  { name: 'replay', path: '/replays?state=running', height: 500, prepare: openFirst },
  { name: 'new-replay', path: '/replays/new?source=mobile-app&status=failed' },
  { name: 'sources', path: '/sources', height: 500 },
  { name: 'source', path: '/source?name=studio' },
  { name: 'live', path: '/live', height: 560, prepare: letThingsHappen },
  { name: 'tokens', path: '/tokens', height: 500 },
  { name: 'sessions', path: '/sessions', height: 500 },
  { name: 'operator-log', path: '/operator-log', height: 600 },
];

async function openFirst(page: Page): Promise<void> {
  await page.locator('main tbody a').first().click();
  await page.waitForLoadState();
}

async function compare(page: Page): Promise<void> {
  await openFirst(page);
  await page.getByRole('button', { name: 'Compare the two bodies' }).click();
  await page.waitForLoadState();
}

/** While the page listens. */
async function letThingsHappen(page: Page, stage: Stage): Promise<void> {
  await page.getByText('Listening').first().waitFor();
  for (let n = 0; n < 5; n += 1) {
    const source = SOURCES[n % SOURCES.length] ?? 'default';
    for (const data of [progress(25), progress(60), completed(0, 1, Date.now())]) {
      const body = JSON.stringify({ job_id: idOf(950 + n), ...data });
      await send(stage, { source, body, status: 202 });
    }
    // Three deliveries and three publications.
    await page
      .getByText(idOf(950 + n))
      .nth(5)
      .waitFor();
  }
}
