// The settings of a subscriber: its options with every default, checked. What is wrong is said at once, before anything connects.

import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { type Kind, KINDS, routingKey } from '../event/index.ts';
import { accountOf } from '../base/amqp/broker-connection.ts';
import { areEncrypted, brokerUrlsForm } from '../base/amqp/broker-urls.ts';
import { type Certificates, certificatesFault } from '../base/net/certificates.ts';
import { SOURCE_NAME } from '../base/text/source-name.ts';
import type { Backoff } from './backoff.ts';
import type { DedupStore } from './dedup.ts';
import { memoryDedup } from './dedup-memory.ts';
import type { Handlers } from './delivery.ts';
import { aFunction, faultsOf, handlersForm } from './handlers-form.ts';
import type { Notice } from './notices.ts';
import type { SubscriberOptions } from './options.ts';

/** What is wanted at the broker. */
export type Topology = {
  readonly exchange: string;
  readonly declareExchange: boolean;
  readonly queue: string;
  /** `temporary`: deleted by the subscriber at its end. The others: see `SubscriberOptions.declare`. */
  readonly form: 'always' | 'missing' | 'never' | 'temporary';
  readonly singleActiveConsumer: boolean;
  readonly bindings: readonly string[];
  /** For messages to people: what the account needs. */
  readonly account: { readonly user: string; readonly virtualHost: string };
};

/** With every default. */
export type Settings<Tx> = {
  readonly url: string;
  readonly certificates: () => Certificates | Promise<Certificates>;
  readonly on: Handlers<Tx>;
  readonly order: 'job' | 'queue' | 'none';
  readonly concurrency: number;
  readonly prefetch: number;
  readonly attempts: number;
  readonly backoff: Backoff;
  readonly timeLimitMs: number;
  readonly stopLimitMs: number;
  readonly dedup: DedupStore<Tx> | undefined;
  readonly topology: Topology;
  readonly signal: AbortSignal | undefined;
  readonly onNotice: ((notice: Notice) => void) | undefined;
};

const DEFAULT_CONCURRENCY = 10;
const PREFETCH_PER_HANDLER = 5;
const PREFETCH_MIN = 20;
/** Beyond it quorum queues become slow, and RabbitMQ advises against it. */
const PREFETCH_MAX = 2_000;
const CONCURRENCY_MAX = 1_000;
/** AMQP's limit of 255 bytes, less `.dead`. */
const QUEUE_NAME_MAX_BYTES = 250;
/** The broker closes the channel of a message that was not acknowledged for 30 minutes. */
const TIME_LIMIT_MAX_MS = 15 * 60_000;

const whole = (min: number, max: number) => z.int().min(min).max(max);
const name = z
  .string()
  .min(1)
  .refine((text) => Buffer.byteLength(text) <= QUEUE_NAME_MAX_BYTES, 'is longer than 250 bytes');

const pem = z.union([z.string(), z.instanceof(Buffer)]);
const certificates = z.strictObject({
  ca: z.union([pem, z.array(pem)]).optional(),
  cert: pem.optional(),
  key: pem.optional(),
});

/** Strict: a name that is not an option is a mistake in writing. */
export const optionsForm = z.strictObject({
  url: brokerUrlsForm('must begin with amqp:// or amqps://'),
  tls: z
    .union([aFunction, certificates], {
      error: 'must be { ca, cert, key } in PEM, or a function that gives them',
    })
    .optional(),
  queue: z.union([name, z.strictObject({ temporary: name })], {
    error: 'must be a name of 1 to 250 bytes, or { temporary: … }',
  }),
  on: handlersForm,
  sources: z.array(z.string().regex(SOURCE_NAME, 'is not the name of a source')).min(1).optional(),
  bindings: z.array(z.string().min(1).max(255)).min(1).optional(),
  exchange: name.default('conversion.events'),
  order: z.enum(['job', 'queue', 'none']).default('job'),
  concurrency: whole(1, CONCURRENCY_MAX).optional(),
  prefetch: whole(1, PREFETCH_MAX).optional(),
  attempts: whole(1, 100).default(5),
  backoff: z
    .strictObject({ firstMs: whole(1, 600_000), maxMs: whole(1, 600_000) })
    .refine(({ firstMs, maxMs }) => firstMs <= maxMs, 'firstMs must not be above maxMs')
    .default({ firstMs: 1_000, maxMs: 30_000 }),
  timeLimitMs: whole(1, TIME_LIMIT_MAX_MS).default(60_000),
  stopLimitMs: whole(0, TIME_LIMIT_MAX_MS).default(20_000),
  dedup: z
    .union([z.literal(false), z.looseObject({ once: aFunction })], {
      error: 'must be a dedup store, as memoryDedup() gives one, or false',
    })
    .optional(),
  declare: z.enum(['always', 'missing', 'never']).default('always'),
  declareExchange: z.boolean().default(false),
  signal: z.instanceof(AbortSignal).optional(),
  onNotice: aFunction.optional(),
});

/** @throws TypeError that names every option at fault. It quotes no value: the URL has a password. */
export function settle<Tx>(options: SubscriberOptions<Tx>): Settings<Tx> {
  const checked = optionsForm.safeParse(options);
  if (!checked.success)
    throw new TypeError(`the options of the subscriber are not valid: ${faultsOf(checked.error)}`);
  const { url, queue, order, declare, declareExchange, exchange, ...rest } = checked.data;
  const { on, tls = {} } = options;
  const fault = options.tls === undefined ? undefined : tlsFault(url, options.tls);
  if (fault !== undefined) throw new TypeError(`the options of the subscriber are not valid: tls: ${fault}`);
  const kinds = KINDS.filter((kind) => on[kind] !== undefined);
  if (kinds.length === 0 && options.bindings === undefined && declare === 'always')
    throw new TypeError('the options of the subscriber are not valid: on: has no function for any kind');
  const concurrency = order === 'queue' ? 1 : (rest.concurrency ?? DEFAULT_CONCURRENCY);
  const isTemporary = typeof queue !== 'string';
  return {
    url,
    certificates: typeof tls === 'function' ? tls : () => tls,
    on,
    order,
    concurrency,
    prefetch:
      rest.prefetch ?? Math.min(PREFETCH_MAX, Math.max(PREFETCH_MIN, PREFETCH_PER_HANDLER * concurrency)),
    attempts: rest.attempts,
    backoff: rest.backoff,
    timeLimitMs: rest.timeLimitMs,
    stopLimitMs: rest.stopLimitMs,
    // Without a store of its own type, nothing is lent: Tx is undefined.
    dedup:
      options.dedup === false ? undefined : (options.dedup ?? (memoryDedup() as unknown as DedupStore<Tx>)),
    topology: {
      exchange,
      declareExchange,
      queue: isTemporary ? `${queue.temporary}${randomBytes(8).toString('hex')}` : queue,
      form: isTemporary ? 'temporary' : declare,
      singleActiveConsumer: order !== 'none',
      bindings: options.bindings ?? bindingsOf(kinds, options.sources ?? ['*']),
      account: accountOf(url),
    },
    signal: options.signal,
    onNotice: options.onNotice,
  };
}

function tlsFault(url: string, tls: NonNullable<SubscriberOptions['tls']>): string | undefined {
  if (!areEncrypted(url)) return 'the URL has to begin with amqps://';
  return typeof tls === 'function' ? undefined : certificatesFault(tls);
}

const bindingsOf = (kinds: readonly Kind[], sources: readonly string[]): string[] =>
  kinds.flatMap((kind) => sources.map((source) => routingKey('job', kind, source)));
