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
  { name: 'search', path: '/search?q=job_5' },
  { name: 'jobs', path: '/jobs' },
  { name: 'job', path: `/job?${job}`, height: 1_500 },
  { name: 'deliveries', path: '/deliveries' },
  { name: 'delivery', path: '/deliveries?outcome=conflict', prepare: compare },
  { name: 'events', path: '/events' },
  { name: 'event', path: `/event?id=${STORY.source}:${STORY.jobId}:completed` },
  { name: 'publications', path: '/publications' },
  { name: 'outbox', path: '/outbox' },
  { name: 'quarantine', path: '/quarantine' },
  { name: 'replays', path: '/replays' },
  { name: 'replay', path: '/replays?state=running', prepare: openFirst },
  { name: 'new-replay', path: '/replays/new?source=mobile-app&status=failed' },
  { name: 'sources', path: '/sources' },
  { name: 'source', path: '/source?name=studio' },
  { name: 'live', path: '/live', prepare: letThingsHappen },
  { name: 'tokens', path: '/tokens' },
  { name: 'sessions', path: '/sessions' },
  { name: 'operator-log', path: '/operator-log' },
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
  }
  await page.getByText(idOf(954)).nth(5).waitFor();
}
