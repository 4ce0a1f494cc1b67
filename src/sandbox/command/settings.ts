// The options of `tallyhook sandbox serve`, and the sandbox's settings that they make.

import { decimal, oneOf, type parse, whole } from '../../terminal/arguments.ts';
import { DEFAULT_SETTINGS, ENGINE_CHOICES, FLOOD_MAX_COPIES, NO_CHAOS, type Settings } from '../index.ts';
import type { SERVE_OPTIONS } from './help.ts';

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

type Values = Partial<ReturnType<typeof parse<typeof SERVE_OPTIONS>>['values']>;

const DAY_MS = 24 * 60 * 60 * 1_000;

/** All but where it keeps its data. @throws UsageError */
export function toSettings(values: Values): Settings {
  const { jobs, webhooks } = DEFAULT_SETTINGS;
  return {
    ...DEFAULT_SETTINGS,
    host: values.host ?? DEFAULT_SETTINGS.host,
    port: portOf('--port', values.port, DEFAULT_SETTINGS.port),
    engine: oneOf('--engine', values.engine, DEFAULT_SETTINGS.engine, ENGINE_CHOICES),
    allowLocal: values['allow-local'] ?? false,
    jobs: { ...jobs, ...concurrency(values['max-jobs']) },
    webhooks: { ...webhooks, retry: toRetry(values), chaos: toChaos(values) },
  };
}

/** @throws UsageError */
export function logLevelOf(given: string | undefined): (typeof LOG_LEVELS)[number] {
  return oneOf('--log-level', given, 'info', LOG_LEVELS);
}

/** 0 takes a free one. @throws UsageError */
export function portOf(name: string, given: string | undefined, fallback: number): number {
  return whole(name, given, fallback, { min: 0, max: 65_535 });
}

/** Where there is one account, as usual, it gets all that is asked for. */
function concurrency(given: string | undefined): Partial<Settings['jobs']> {
  if (given === undefined) return {};
  const count = whole('--max-jobs', given, 0, { min: 1, max: 64 });
  return { concurrent: count, concurrentPerAccount: count };
}

function toRetry(values: Values): Settings['webhooks']['retry'] {
  const { retry } = DEFAULT_SETTINGS.webhooks;
  const delay = (name: 'retry-first-ms' | 'retry-max-ms', fallback: number) =>
    whole(`--${name}`, values[name], fallback, { min: 1, max: DAY_MS });
  return {
    ...retry,
    firstDelayMs: delay('retry-first-ms', retry.firstDelayMs),
    factor: decimal('--retry-factor', values['retry-factor'], retry.factor, { min: 1, max: 10 }),
    maxDelayMs: delay('retry-max-ms', retry.maxDelayMs),
  };
}

function toChaos(values: Values): Settings['webhooks']['chaos'] {
  const chance = (name: 'duplicates' | 'reorder' | 'tamper' | 'wrong-secret') =>
    decimal(`--chaos-${name}`, values[`chaos-${name}`], 0, { min: 0, max: 1 });
  return {
    ...NO_CHAOS,
    duplicates: chance('duplicates'),
    reorder: chance('reorder'),
    tamper: chance('tamper'),
    wrongSecret: chance('wrong-secret'),
    delayMs: whole('--chaos-delay-ms', values['chaos-delay-ms'], 0, { min: 0, max: 60_000 }),
    flood: whole('--chaos-flood', values['chaos-flood'], 0, { min: 0, max: FLOOD_MAX_COPIES }),
  };
}
