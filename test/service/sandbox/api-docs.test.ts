// The numbers and fields in docs/sandbox.md are those of the code.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ACCOUNT_RANGES } from '../../../src/sandbox/accounts/checks.ts';
import { CODE_MS, IDLE_MS, SESSION_MS } from '../../../src/sandbox/accounts/sessions.ts';
import { TIER_NAMES, TIERS } from '../../../src/sandbox/accounts/tiers.ts';
import { SCOPES } from '../../../src/sandbox/accounts/tokens.ts';
import { BODY_LIMIT_BYTES } from '../../../src/sandbox/api/bodies.ts';
import { FORMAT_NAMES } from '../../../src/sandbox/engine/formats.ts';
import { MICROS_PER_MINUTE } from '../../../src/sandbox/jobs/cost.ts';
import { DEFAULT_SETTINGS } from '../../../src/sandbox/settings.ts';
import type { Job } from '../../../src/sandbox/jobs/job.ts';
import { createJob, startTestSandbox } from '../../support/sandbox.ts';

const page = readFileSync(new URL('../../../docs/sandbox.md', import.meta.url), 'utf8');
const text = page.replaceAll(/\s+/g, ' ');
const webhooksText = readFileSync(
  new URL('../../../docs/sandbox-webhooks.md', import.meta.url),
  'utf8',
).replaceAll(/\s+/g, ' ');
const grouped = (count: number) => count.toLocaleString('en-US');

test.for(TIER_NAMES)('the limits and formats of the tier %s', (tier) => {
  const { requestsPerHour, burstPerMinute, formats } = TIERS[tier];
  const hour = requestsPerHour === null ? '–' : grouped(requestsPerHour);
  const row = `| \`${tier}\` | ${hour} | ${grouped(burstPerMinute)} | ${formats?.join(', ') ?? 'all'} |`;
  expect(page).toContain(row);
});

test('the limits of jobs, bodies and conversions, and the price', () => {
  const { jobs, engineLimits } = DEFAULT_SETTINGS;
  expect(text).toContain(`| ${grouped(jobs.unended)} jobs are under way`);
  expect(text).toContain(`The last ${grouped(jobs.kept)} are kept`);
  expect(text).toContain(`a body of more than ${BODY_LIMIT_BYTES / 1024} KiB`);
  expect(text).toContain(`more than ${engineLimits.inputBytes / 1024 ** 2} MiB`);
  expect(text).toContain(`for more than ${engineLimits.mediaSeconds / 60} minutes`);
  expect(text).toContain(`took longer than ${engineLimits.runMs / 60_000} minutes`);
  expect(text).toContain(`${grouped(MICROS_PER_MINUTE)} micro-units for each started minute`);
  for (const format of FORMAT_NAMES) expect(text).toMatch(new RegExp(`\\b${format}\\b`));
  for (const scope of SCOPES) expect(text).toContain(`| \`${scope}\` |`);
});

test('how long codes and sessions of the dashboard live, and the ranges of an account’s settings', () => {
  const hourMs = 60 * 60_000;
  expect(CODE_MS).toBe(10 * 60_000);
  expect(text).toContain('The code signs in once, within ten minutes.');
  expect([IDLE_MS, SESSION_MS]).toEqual([2 * hourMs, 24 * hourMs]);
  expect(text).toContain('ends after two hours without a request, after 24 hours,');
  expect(ACCOUNT_RANGES).toEqual({
    maxAttempts: { min: 1, max: 20 },
    retryFirstMs: { min: 1, max: 24 * hourMs },
    retryFactor: { min: 1, max: 10 },
    retryMaxMs: { min: 1, max: 24 * hourMs },
    timeoutMs: { min: 100, max: 10_000 },
  });
  expect(webhooksText).toContain(
    'from 1 to 20. It can also have a schedule of its own (a first and a longest wait of 1 ms to a day, a factor of 1 to 10)',
  );
  expect(webhooksText).toContain('(0.1 to 10 s)');
});

test('the fields of a job, in their order', async () => {
  await using on = await startTestSandbox();
  const shown = JSON.parse(/```json\n(\{\n {2}"job_id"[^`]*)```/.exec(page)?.[1] ?? '{}') as Job;
  expect(Object.keys(shown)).toEqual(Object.keys(await createJob(on)));
});
