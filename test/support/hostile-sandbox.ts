// A sandbox whose account, tokens, jobs and webhooks hold text that tries to be more than text.

import { randomUUID } from 'node:crypto';
import { openStore } from '../../src/sandbox/store/store.ts';
import { newJob } from '../../src/sandbox/jobs/job.ts';
import type { TestFolder } from './folder.ts';
import { startTestSandbox, type TestSandbox } from './sandbox.ts';

export const SCRIPT = `<script>document.title = 'taken'</script><img src=x onerror="document.title = 'taken'">`;
export const BREAKOUT = `"><svg onload=document.title='taken'>'`;
/** Turns what follows around, hides something, and ends a C string. */
export const INVISIBLE = '\u202Ednuora\u0000\u200B\u2066hidden';
export const LONG_LINE = 'x'.repeat(200_000);

export type HostileSandbox = AsyncDisposable & {
  readonly on: TestSandbox;
  readonly jobId: string;
  readonly deliveryId: string;
  readonly body: Buffer;
};

/** Its account is `default`. */
export async function startHostileSandbox(folder: TestFolder): Promise<HostileSandbox> {
  const data = folder.path(`${randomUUID()}.db`);
  const first = await startTestSandbox({ data });
  const account = first.sandbox.accounts.change(first.sandbox.accounts.open('default'), {
    webhookUrl: `https://relay.example.com/?q=${BREAKOUT}`,
  });
  await first.sandbox.stop();

  const store = openStore(data);
  const now = new Date().toISOString();
  const token = {
    accountId: account.id,
    environment: 'test',
    scopes: ['jobs:read'],
    createdAt: now,
  } as const;
  const names = [SCRIPT, `${BREAKOUT}${INVISIBLE}`, LONG_LINE];
  for (const name of names) {
    const id = `tok_${randomUUID()}`;
    store.accounts.addToken(
      { ...token, id, name, expiresAt: null, revokedAt: null, lastUsedAt: null },
      Buffer.from(id),
    );
  }
  const job = newJob(
    {
      job_type: 'video',
      input_url: `javascript:document.title='taken'//${SCRIPT}`,
      output_url: `https://files.example.com/${INVISIBLE}`,
      input_format: 'mp4',
      output_format: 'webm',
      webhook_url: `https://relay.example.com/${LONG_LINE}`,
    },
    now,
  );
  store.jobs.add(job, account.id);
  store.jobs.fail(job.job_id, {
    failed_at: now,
    error_code: `${SCRIPT}${INVISIBLE}`,
    error_message: `${SCRIPT}${INVISIBLE}${LONG_LINE}`,
  });
  const body = Buffer.from(`{"error_message":"${SCRIPT}${INVISIBLE}${LONG_LINE}"}`);
  const deliveryId = 'whd_hostile';
  const url = `javascript:document.title='taken'//${BREAKOUT}`;
  store.notifications.add(
    { id: deliveryId, accountId: account.id, jobId: job.job_id, kind: 'failed', url, body, createdAt: now },
    Number.MAX_SAFE_INTEGER,
  );
  const attempt = {
    notificationId: deliveryId,
    attempt: 2 ** 53 - 1,
    startedAt: now,
    durationMs: 1_234_567,
    httpStatus: null,
  };
  store.notifications.record(
    { ...attempt, error: `${SCRIPT}${INVISIBLE}` },
    { state: 'given_up', dueAtMs: null },
  );
  store.close();
  const on = await startTestSandbox({ data });
  return { on, jobId: job.job_id, deliveryId, body, [Symbol.asyncDispose]: on.sandbox.stop };
}
