// All settings of the sandbox and their defaults. The command line fills them from its options; nothing here reads the
// environment.

import { type Tiers, TIERS } from './accounts/tiers.ts';
import { DEFAULT_ENGINE_LIMITS, type EngineLimits } from './engine/engine.ts';
import type { RunnerLimits } from './jobs/runner.ts';
import { IN_MEMORY } from './store/database.ts';
import type { Chaos } from './webhooks/chaos.ts';
import { WEBHOOK_TIMEOUT_MS } from './webhooks/deliverer.ts';
import { DEFAULT_RETRY, type RetryPlan } from './webhooks/retry.ts';

export const ENGINE_CHOICES = ['auto', 'ffmpeg', 'simulated'] as const;
export type EngineChoice = (typeof ENGINE_CHOICES)[number];

export type Settings = {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** The SQLite file, created if missing, or `:memory:`. */
  readonly data: string;
  /** `auto`: ffmpeg if it is installed, otherwise the simulated engine. */
  readonly engine: EngineChoice;
  /** Allows http:// and loopback addresses, which the real service would reject. */
  readonly allowLocal: boolean;
  /** Origins on this machine that are allowed anyway, such as `http://127.0.0.1:8091`. */
  readonly localOrigins: readonly string[];
  /** The file server with the sample clips, for the dashboard's form. Without a slash at its end. */
  readonly filesUrl?: string | undefined;
  /** The receiver of webhooks that the form proposes. */
  readonly receiverUrl?: string | undefined;
  readonly tiers: Tiers;
  readonly jobs: RunnerLimits & {
    /** Older jobs that have ended are deleted, with their notifications. */
    readonly kept: number;
  };
  readonly engineLimits: EngineLimits;
  /** Between two steps of the simulated engine's progress. */
  readonly simulatedStepMs: number;
  readonly webhooks: {
    /** This and `timeoutMs` hold where an account has set nothing itself. `maxAttempts` each account has. */
    readonly retry: RetryPlan;
    readonly timeoutMs: number;
    readonly concurrency: number;
    readonly chaos: Chaos | undefined;
  };
  /** For responses and webhooks under way at a stop. */
  readonly graceMs: number;
};

export const DEFAULT_SETTINGS: Settings = {
  // Loopback, since it is a development tool without TLS.
  host: '127.0.0.1',
  port: 8090,
  data: IN_MEMORY,
  engine: 'auto',
  allowLocal: false,
  localOrigins: [],
  tiers: TIERS,
  jobs: {
    // A conversion uses about two cores. On a developer's machine, more at a time only make each slower.
    concurrent: 2,
    concurrentPerAccount: 2,
    unended: 1_000,
    kept: 10_000,
  },
  engineLimits: DEFAULT_ENGINE_LIMITS,
  // Times ten steps: long enough to watch, short enough to wait for.
  simulatedStepMs: 300,
  webhooks: {
    retry: DEFAULT_RETRY,
    timeoutMs: WEBHOOK_TIMEOUT_MS,
    concurrency: 16,
    chaos: undefined,
  },
  graceMs: 5_000,
};
