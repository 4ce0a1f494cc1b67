// Saves each step of a job and the notification about it in one transaction, so that a crash cannot leave one without
// the other. The job's address or its account's settings decide whether there is a notification.

import type { Accounts } from '../accounts/accounts.ts';
import type { Conversion } from '../engine/engine.ts';
import { newId } from '../ids.ts';
import type { OwnedJob } from '../store/jobs.ts';
import type { Store } from '../store/store.ts';
import { completedBody, failedBody, progressBody } from '../webhooks/bodies.ts';
import type { EventKind } from '../webhooks/notifications.ts';
import { costOf } from './cost.ts';

/** Each does nothing if the job has ended. */
export type JobUpdates = {
  /** `notify`: whether this step is worth a notification. */
  readonly progressed: (jobId: string, percentage: number, remainingMs: number, notify: boolean) => void;
  readonly completed: (jobId: string, conversion: Conversion, elapsedMs: number) => void;
  readonly failed: (jobId: string, fault: { code: string; message: string }) => void;
};

const BODIES = { completed: completedBody, failed: failedBody, progress: progressBody } as const;

export function createJobUpdates({
  store: { transaction, jobs, notifications },
  accounts,
  now,
  onNotification,
}: {
  store: Pick<Store, 'transaction' | 'jobs' | 'notifications'>;
  accounts: Pick<Accounts, 'find'>;
  now: () => number;
  onNotification: () => void;
}): JobUpdates {
  const time = (ms = now()) => new Date(ms).toISOString();

  /** `update` returns undefined for a job that has ended. */
  function save(kind: EventKind, notify: boolean, update: () => OwnedJob | undefined): void {
    const isAdded = transaction(() => {
      const updated = update();
      return updated !== undefined && notify && addNotification(kind, updated);
    });
    if (isAdded) onNotification();
  }

  function addNotification(kind: EventKind, { job, accountId }: OwnedJob): boolean {
    const account = accounts.find({ id: accountId });
    const url = job.webhook_url ?? account?.webhookUrl ?? null;
    if (url === null || account?.eventKinds.includes(kind) !== true) return false;
    notifications.add(
      {
        id: newId('whd'),
        accountId,
        jobId: job.job_id,
        kind,
        url,
        body: BODIES[kind](job),
        createdAt: time(),
      },
      now(),
    );
    return true;
  }

  return {
    progressed: (jobId, percentage, remainingMs, notify) =>
      save('progress', notify, () => jobs.progress(jobId, percentage, time(now() + remainingMs))),
    completed: (jobId, conversion, elapsedMs) =>
      save('completed', true, () =>
        jobs.complete(jobId, {
          completed_at: time(),
          ...costOf(conversion.mediaSeconds),
          processing_time_seconds: Math.max(1, Math.ceil(elapsedMs / 1_000)),
          output_size_bytes: conversion.outputBytes,
        }),
      ),
    failed: (jobId, { code, message }) =>
      save('failed', true, () =>
        jobs.fail(jobId, { failed_at: time(), error_code: code, error_message: message }),
      ),
  };
}
