// What the generator and the bare publisher are told, and what they tell.

import type { Latency } from './latency.ts';

export type LoadPlan = {
  /** Where to send: connections take these in turns. */
  readonly ports: readonly number[];
  /** `/webhooks`, or the path of a rival. */
  readonly path: string;
  /** A bare GET of `path` in place of each notification. */
  readonly isProbe?: boolean;
  /** Of 127.0.0.0/8: where its connections come from. */
  readonly localAddress?: string;
  /** A new connection for each request; connecting counts. */
  readonly freshConnections?: boolean;
  readonly secret: string;
  /** Names the jobs of this run, letters and digits: another run's notifications are others. */
  readonly run: string;
  /** Exact, at least `SMALLEST_BODY_BYTES`. */
  readonly bodyBytes: number;
  /** 0 to 1: how many of the notifications are copies of earlier ones. */
  readonly duplicateShare: number;
  readonly loop:
    | { readonly kind: 'closed'; readonly concurrency: number }
    /** At fixed intended times, whatever the answers do; latency counts from the intended time. */
    | { readonly kind: 'open'; readonly ratePerS: number; readonly connections: number };
  readonly warmUpS: number;
  /** Measured, after the warm-up. It ends earlier when `deliveries` are answered. */
  readonly durationS: number;
  readonly deliveries?: number;
  /** Signed before the clock starts; what goes beyond is signed while it runs, and counted. */
  readonly stock: number;
  /**
   * What a lost connection, an answer that is late (10 s) or not 2xx means. `fail`: the run is worthless.
   * `repeat`: send it again after a while until it is acknowledged, as the conversion service does.
   */
  readonly onFailure: 'fail' | 'repeat';
  /** Gets each notification's first time of sending, as 8-byte floats in microseconds, by number; 0 if none. */
  readonly sendTimesFile?: string;
};

/** Of one second, told as it goes. */
export type LoadSecond = {
  readonly atS: number;
  /** By status; `lost` for connections that ended before the answer, `late` for answers after 10 s. */
  readonly answers: Readonly<Record<string, number>>;
  readonly latency: Latency;
  /** Due and without a free connection, at the end of the second. */
  readonly waiting: number;
  /** Different notifications that were ever answered with a 2xx. */
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
  /** Numbers of the notifications first sent in the window. */
  readonly firstNumber: number;
  readonly endNumber: number;
  readonly signedLate: number;
  /** Most that were due at once without a free connection (open loop). */
  readonly mostWaiting: number;
  /** Due or sent, and without an answer when patience was over: the rate cannot be served. */
  readonly unanswered: number;
  /** Nothing failed: everything was answered, and each with a 2xx. */
  readonly isClean: boolean;
};

/** What the bare confirm publisher is told, and what it tells. */
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
