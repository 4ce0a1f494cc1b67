// Runs the jobs, oldest first, with a limit on how many run at a time, in total and per account. A job that was running
// when the program stopped or died is converted again from the start by the next process. Its progress keeps the old
// value until the new run exceeds it.

import { describeError } from '../../base/errors.ts';
import type { Logger } from '../../base/log/log.ts';
import type { Engine } from '../engine/engine.ts';
import { ConversionError } from '../engine/errors.ts';
import type { JobStore, OwnedJob } from '../store/jobs.ts';
import { createMilestones } from './milestones.ts';
import type { JobUpdates } from './updates.ts';

export type RunnerLimits = {
  readonly concurrent: number;
  readonly concurrentPerAccount: number;
  /** Waiting and running together. */
  readonly unended: number;
};

export type Runner = {
  /** Queues the jobs that an earlier process did not finish. */
  readonly start: () => void;
  readonly hasRoom: () => boolean;
  /** The job must be stored already. */
  readonly add: (owned: OwnedJob) => void;
  /** Cancels the running conversions; the next start repeats them. Safe to call twice. */
  readonly stop: () => Promise<void>;
};

/** A job whose conversion crashes the program must not crash it at every start. */
const MAX_STARTS = 5;

type Running = { readonly accountId: string; readonly ended: Promise<void> };

export function createRunner(options: {
  jobs: JobStore;
  updates: JobUpdates;
  engine: Engine;
  limits: RunnerLimits;
  log: Logger;
}): Runner {
  const { jobs, updates, engine, limits, log } = options;
  const waiting: OwnedJob[] = [];
  const running = new Map<string, Running>();
  const stopping = new AbortController();
  const { signal } = stopping;

  function fill(): void {
    while (!signal.aborted && running.size < limits.concurrent) {
      const index = waiting.findIndex(({ accountId }) => runningOf(accountId) < limits.concurrentPerAccount);
      const [next] = index < 0 ? [] : waiting.splice(index, 1);
      if (next === undefined) return;
      running.set(next.job.job_id, { accountId: next.accountId, ended: run(next) });
    }
  }

  function runningOf(accountId: string): number {
    return [...running.values()].filter((each) => each.accountId === accountId).length;
  }

  async function run(owned: OwnedJob): Promise<void> {
    const jobId = owned.job.job_id;
    try {
      await convert(owned);
    } catch (error) {
      // The job stays `processing`, so the next start of the program runs it again.
      log.error({ job: jobId, err: describeError(error) }, 'the job cannot be run or recorded');
    } finally {
      running.delete(jobId);
      fill();
    }
  }

  async function convert({ job, accountId }: OwnedJob): Promise<void> {
    const { job_id: jobId, input_format: from, output_format: to } = job;
    if (jobs.countStart(jobId) > MAX_STARTS) {
      return updates.failed(jobId, {
        code: 'INTERNAL',
        message: 'the conversion was interrupted too often',
      });
    }
    const startedMs = performance.now();
    const line = { job: jobId, account: accountId, from, to };
    log.info({ ...line, engine: engine.kind }, 'job begins');
    try {
      const conversion = await engine.convert({
        inputUrl: job.input_url,
        outputUrl: job.output_url,
        inputFormat: from,
        outputFormat: to,
        signal,
        onProgress: progressListener(job, startedMs),
      });
      const elapsedMs = performance.now() - startedMs;
      updates.completed(jobId, conversion, elapsedMs);
      log.info({ ...line, ms: Math.round(elapsedMs), bytes: conversion.outputBytes }, 'job completed');
    } catch (error) {
      if (signal.aborted) return jobs.undoStart(jobId);
      const fault = faultOf(error);
      updates.failed(jobId, fault);
      if (error instanceof ConversionError) log.info({ ...line, code: fault.code }, 'job failed');
      else log.error({ ...line, err: describeError(error) }, 'job failed: an error of the sandbox');
    }
  }

  /** Saves the engine's progress as whole percents that never decrease, with an estimated time of completion. */
  function progressListener(job: OwnedJob['job'], startedMs: number) {
    const isMilestone = createMilestones(job.progress_percentage);
    let reached = job.progress_percentage;
    return (percentage: number, remainingMs: number | undefined) => {
      const whole = Math.min(99, Math.floor(percentage));
      if (signal.aborted || whole <= reached) return;
      reached = whole;
      const nowMs = performance.now();
      const guessMs = ((nowMs - startedMs) / whole) * (100 - whole);
      updates.progressed(job.job_id, whole, remainingMs ?? guessMs, isMilestone(whole, nowMs));
    };
  }

  return {
    start: () => {
      waiting.push(...jobs.underWay());
      if (waiting.length > 0) log.info({ jobs: waiting.length }, 'jobs begin again');
      fill();
    },
    hasRoom: () => !signal.aborted && waiting.length + running.size < limits.unended,
    add: (owned) => {
      waiting.push(owned);
      fill();
    },
    stop: async () => {
      stopping.abort(new Error('the sandbox stops'));
      await Promise.all([...running.values()].map(({ ended }) => ended));
    },
  };
}

function faultOf(error: unknown): { code: string; message: string } {
  if (error instanceof ConversionError) return { code: error.code, message: error.message };
  return { code: 'INTERNAL', message: 'something went wrong on our side' };
}
