// The plans for the generator and the bare publisher, and their reports.

import type { Latency } from './latency.ts';

export type LoadPlan = {
  /** Connections are spread over these. */
  readonly ports: readonly number[];
  /** `/webhooks`, or the path of another subject. */
  readonly path: string;
  /** Sends a bare GET of `path` instead of notifications. */
  readonly isProbe?: boolean;
  /** The address of 127.0.0.0/8 that its connections come from. */
  readonly localAddress?: string;
  /** A new connection for each request. The time to connect counts. */
  readonly freshConnections?: boolean;
  readonly secret: string;
  /** Letters and digits. Part of the job ids, so that runs share no job. */
  readonly run: string;
  /** The exact size, at least `SMALLEST_BODY_BYTES`. */
  readonly bodyBytes: number;
  /** 0 to 1: the share of notifications that are copies of earlier ones. */
  readonly duplicateShare: number;
  readonly loop:
    | { readonly kind: 'closed'; readonly concurrency: number }
    /** At fixed intended times, independent of the answers. Latency counts from the intended time. */
    | { readonly kind: 'open'; readonly ratePerS: number; readonly connections: number };
  /** Ends earlier when the benchmark says so. */
  readonly warmUpS: number;
  /** The measured window after the warm-up. It ends earlier when `deliveries` are answered. */
  readonly durationS: number;
  readonly deliveries?: number;
  /** Number of notifications that are signed before the start. Further ones are signed during the run, and counted. */
  readonly stock: number;
  /**
   * What follows from a lost connection, or an answer that is late (10 s) or not 2xx. `fail`: the run does not count.
   * `repeat`: it is sent again until it is acknowledged, as the conversion service does.
   */
  readonly onFailure: 'fail' | 'repeat';
  /** The times of first sending are written to it: 8-byte floats in microseconds, by number; 0 for none. */
  readonly sendTimesFile?: string;
};

/** The report of one second, sent during the run. */
export type LoadSecond = {
  readonly atS: number;
  /** By status, with `lost` for connections that ended before the answer and `late` for answers after 10 s. */
  readonly answers: Readonly<Record<string, number>>;
  readonly latency: Latency;
  /** Due, but without a free connection, at the second's end. */
  readonly waiting: number;
  /** Different notifications that were answered with a 2xx so far. */
  readonly acknowledged: number;
};

export type LoadReport = {
  /** The measured window, without warm-up. */
  readonly fromUs: number;
  readonly toUs: number;
  readonly answers: Readonly<Record<string, number>>;
  readonly answersPerS: number;
  readonly latency: Latency;
  /** Answers of the whole run, warm-up included. */
  readonly answersInAll: Readonly<Record<string, number>>;
  /** Different notifications that were answered with a 2xx, warm-up included. */
  readonly acknowledged: number;
  /** The range of numbers that were first sent in the window. */
  readonly firstNumber: number;
  readonly endNumber: number;
  readonly signedLate: number;
  /** The most that were due at once without a free connection (open loop). */
  readonly mostWaiting: number;
  /** Due or sent, but without an answer in time: the rate cannot be served. */
  readonly unanswered: number;
  /** Nothing failed: everything was answered, and each with a 2xx. */
  readonly isClean: boolean;
};

/** A rate does not count if some deliveries failed. @throws Error */
export function assertClean({ isClean, answersInAll, unanswered }: LoadReport): void {
  if (isClean) return;
  const late = unanswered > 0 ? `, and ${unanswered} without any: the rate cannot be served` : '';
  throw new Error(`not every answer was a 2xx: ${JSON.stringify(answersInAll)}${late}`);
}

/** For the bare confirm publisher. Its report follows. */
export type PublishPlan = {
  readonly run: string;
  readonly bodyBytes: number;
  readonly inFlight: number;
  readonly warmUpS: number;
  readonly durationS: number;
};

export type PublishReport = {
  readonly fromUs: number;
  readonly toUs: number;
  readonly confirmed: number;
  readonly confirmedPerS: number;
  readonly latency: Latency;
};
