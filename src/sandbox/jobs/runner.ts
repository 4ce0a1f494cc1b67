// Runs the jobs: a bounded number at a time, in all and of one account, the oldest first. What is under way when the
// program stops, or dies, begins again from the start with the next one; its progress stays where it was until the new
// run gets beyond it.

import { describeError } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import type { Engine } from '../engine/engine.ts';
import { ConversionError } from '../engine/errors.ts';
import type { JobStore, OwnedJob } from '../store/jobs.ts';
import type { Chronicle } from './updates.ts';
import { createMilestones } from './milestones.ts';

export type RunnerLimits = {
  /** At a time. */
  readonly concurrent: number;
  /** At a time, of one account. */
  readonly concurrentPerAccount: number;
  /** That have not ended, those that run included. */
  readonly unended: number;
};

export type Runner = {
  /** Takes up what an earlier run of the program left behind. */
  readonly start: () => void;
  readonly hasRoom: () => boolean;
  /** For a job that is stored already. */
  readonly add: (owned: OwnedJob) => void;
  /** Cancels what runs, so that the next start begins it again. Safe to call twice. */
  readonly stop: () => Promise<void>;
};

/** A job that takes the program down with it must not do so for ever. */
const MAX_STARTS = 5;

type Running = { readonly accountId: string; readonly ended: Promise<void> };

export function createRunner(options: {
  jobs: JobStore;
  chronicle: Chronicle;
  engine: Engine;
  limits: RunnerLimits;
  log: Logger;
}): Runner {
  const { jobs, chronicle, engine, limits, log } = options;
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
      // Nobody expected that. The next start tries again.
      log.error({ job: jobId, err: describeError(error) }, 'the job cannot be run or recorded');
    } finally {
      running.delete(jobId);
      fill();
    }
  }

  async function convert({ job, accountId }: OwnedJob): Promise<void> {
    const { job_id: jobId, input_format: from, output_format: to } = job;
    if (jobs.begin(jobId) > MAX_STARTS) {
      return chronicle.failed(jobId, {
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
        onProgress: meter(job, startedMs),
      });
      const elapsedMs = performance.now() - startedMs;
      chronicle.completed(jobId, conversion, elapsedMs);
      log.info({ ...line, ms: Math.round(elapsedMs), bytes: conversion.outputBytes }, 'job completed');
    } catch (error) {
      if (signal.aborted) return jobs.giveBack(jobId);
      const fault = faultOf(error);
      chronicle.failed(jobId, fault);
      if (error instanceof ConversionError) log.info({ ...line, code: fault.code }, 'job failed');
      else log.error({ ...line, err: describeError(error) }, 'job failed through a fault of ours');
    }
  }

  /** What the engine tells becomes whole percent that never fall, and a time of completion. */
  function meter(job: OwnedJob['job'], startedMs: number) {
    const isWorthTelling = createMilestones(job.progress_percentage);
    let reached = job.progress_percentage;
    return (percentage: number, remainingMs: number | undefined) => {
      const whole = Math.min(99, Math.floor(percentage));
      if (signal.aborted || whole <= reached) return;
      reached = whole;
      const nowMs = performance.now();
      const guessMs = ((nowMs - startedMs) / whole) * (100 - whole);
      chronicle.progressed(job.job_id, whole, remainingMs ?? guessMs, isWorthTelling(whole, nowMs));
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
