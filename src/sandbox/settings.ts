// Everything about the sandbox that can be chosen, with what holds where nobody chooses. Plain data: the command line
// fills it from its options, tests as they need it. Nothing here reads the environment.

import { type Tiers, TIERS } from './accounts/tiers.ts';
import { DEFAULT_ENGINE_LIMITS, type EngineLimits } from './engine/engine.ts';
import type { RunnerLimits } from './jobs/runner.ts';
import { IN_MEMORY } from './store/database.ts';
import { type Chaos, type RetryPlan, WEBHOOK_TIMEOUT_MS } from './webhooks/deliverer.ts';
import { DEFAULT_RETRY } from './webhooks/retry.ts';

export const ENGINE_CHOICES = ['auto', 'ffmpeg', 'simulated'] as const;
export type EngineChoice = (typeof ENGINE_CHOICES)[number];

export type Settings = {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** The SQLite file, made if it is missing, or `:memory:`. */
  readonly data: string;
  /** `auto`: ffmpeg where it is installed, otherwise the simulated engine. */
  readonly engine: EngineChoice;
  /** Plain HTTP and loopback addresses, which the service itself would never reach, are allowed. */
  readonly allowLocal: boolean;
  readonly tiers: Tiers;
  readonly jobs: RunnerLimits & {
    /** Older ones are dropped when they have ended, with their webhooks. */
    readonly kept: number;
  };
  readonly engineLimits: EngineLimits;
  /** From one step of the simulated engine's progress to the next. */
  readonly simulatedStepMs: number;
  readonly webhooks: {
    /** `maxAttempts` is each account's own. */
    readonly retry: RetryPlan;
    readonly timeoutMs: number;
    readonly concurrency: number;
    readonly chaos: Chaos | undefined;
  };
  /** For answers and webhooks under way when it stops. */
  readonly graceMs: number;
};

export const DEFAULT_SETTINGS: Settings = {
  // Loopback: it is a tool for development, and has tokens but no TLS.
  host: '127.0.0.1',
  port: 8090,
  data: IN_MEMORY,
  engine: 'auto',
  allowLocal: false,
  tiers: TIERS,
  jobs: {
    // A conversion takes two cores or so: on a developer's machine more at a time would only make each slower.
    concurrent: 2,
    concurrentPerAccount: 2,
    unended: 1_000,
    kept: 10_000,
  },
  engineLimits: DEFAULT_ENGINE_LIMITS,
  // Ten steps or so of it: long enough to watch, short enough to wait for.
  simulatedStepMs: 300,
  webhooks: {
    retry: DEFAULT_RETRY,
    timeoutMs: WEBHOOK_TIMEOUT_MS,
    concurrency: 16,
    chaos: undefined,
  },
  graceMs: 5_000,
};
