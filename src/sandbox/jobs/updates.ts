// Writes down what becomes of a job, each step together with the notice that tells of it: one transaction, so that no
// crash leaves the one without the other. Who is told, and of what, is the job's and its account's choice.

import type { Accounts } from '../accounts/accounts.ts';
import type { Conversion } from '../engine/engine.ts';
import { newId } from '../ids.ts';
import type { OwnedJob } from '../store/jobs.ts';
import type { Store } from '../store/store.ts';
import type { Job } from './job.ts';
import { completedBody, failedBody, progressBody } from '../webhooks/bodies.ts';
import type { EventKind } from '../webhooks/deliverer.ts';
import { costOf } from './cost.ts';

export type Chronicle = {
  /** `tell`: whether this step is worth a notice. */
  readonly progressed: (jobId: string, percentage: number, remainingMs: number, tell: boolean) => void;
  readonly completed: (jobId: string, conversion: Conversion, elapsedMs: number) => void;
  readonly failed: (jobId: string, fault: { code: string; message: string }) => void;
};

const BODIES = { completed: completedBody, failed: failedBody, progress: progressBody } as const;

export function createChronicle({
  store,
  accounts,
  now,
  onNotice,
}: {
  store: Pick<Store, 'transaction' | 'jobs' | 'notices'>;
  accounts: Pick<Accounts, 'find'>;
  now: () => number;
  onNotice: () => void;
}): Chronicle {
  const { transaction, jobs, notices } = store;
  const time = (ms = now()) => new Date(ms).toISOString();

  /** Nothing happens to a job that has ended: `step` finds none then. */
  function write(kind: EventKind, tell: boolean, step: () => OwnedJob | undefined): void {
    const isTold = transaction(() => {
      const changed = step();
      return changed !== undefined && tell && addNotice(kind, changed);
    });
    if (isTold) onNotice();
  }

  function addNotice(kind: EventKind, { job, accountId }: OwnedJob): boolean {
    const account = accounts.find({ id: accountId });
    const url = job.webhook_url ?? account?.webhookUrl ?? null;
    if (url === null || account?.eventKinds.includes(kind) !== true) return false;
    notices.add(
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
    progressed: (jobId, percentage, remainingMs, tell) =>
      write('progress', tell, () => jobs.progress(jobId, percentage, time(now() + remainingMs))),
    completed: (jobId, conversion, elapsedMs) =>
      write('completed', true, () =>
        jobs.complete(jobId, {
          completed_at: time(),
          ...costOf(conversion.mediaSeconds),
          processing_time_seconds: Math.max(1, Math.ceil(elapsedMs / 1_000)),
          output_size_bytes: conversion.outputBytes,
        }),
      ),
    failed: (jobId, { code, message }) =>
      write('failed', true, () =>
        jobs.fail(jobId, { failed_at: time(), error_code: code, error_message: message }),
      ),
  };
}

/** A job as it begins. */
export type JobOrder = Pick<
  Job,
  'job_type' | 'input_url' | 'output_url' | 'input_format' | 'output_format' | 'webhook_url'
>;

export function newJob(order: JobOrder, createdAt: string): Job {
  return {
    job_id: newId('job'),
    status: 'processing',
    ...order,
    progress_percentage: 0,
    created_at: createdAt,
    estimated_completion: null,
    completed_at: null,
    failed_at: null,
    error_code: null,
    error_message: null,
    cost_micros: null,
    cost_cents: null,
    processing_time_seconds: null,
    output_size_bytes: null,
  };
}
