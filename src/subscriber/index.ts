// A subscriber, as another team would write it: it knows only the bus. This is `tallyhook/subscriber` of the package.
// The door of this room: other rooms import from this file alone.

export { type Subscriber, type SubscriberState, createSubscriber } from './subscriber.ts';
export type { SubscriberOptions } from './options.ts';
export type { MessageDelivery, Handlers, InvalidEvent, UnknownEvent } from './delivery.ts';
export type { Notice } from './notices.ts';
export type { Standing } from './consumer.ts';
export type { ToldFailure } from './dead-letter.ts';
export type { Backoff } from './backoff.ts';
export { RejectError, SubscriberError, TimeLimitError, UnavailableError } from './errors.ts';
export type { DedupContext, DedupStore } from './dedup.ts';
export { memoryDedup } from './dedup-memory.ts';
export {
  type PostgresClient,
  type PostgresDedup,
  type PostgresPool,
  postgresDedup,
} from './dedup-postgres.ts';
