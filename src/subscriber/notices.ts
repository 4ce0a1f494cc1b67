// What a subscriber tells about itself, for logs and metrics: one object for each thing that happened.

import { inspect } from 'node:util';

/** Which message. */
export type Named = {
  /** The event's id. Of what is no event, AMQP's message id if it has one. */
  readonly id: string | undefined;
  readonly kind: 'completed' | 'failed' | 'progress' | 'unknown' | 'invalid';
  /** The job. Undefined if it is no event. */
  readonly subject: string | undefined;
  /** The broker delivered it before. */
  readonly redelivered: boolean;
};

/** What happened to one message. */
type EventNotice =
  | (Named & {
      readonly type: 'handled';
      readonly attempt: number;
      /** From the arrival in this process to the end of the handler, with all attempts. */
      readonly durationMs: number;
      /** False if the connection was lost meanwhile: a copy comes, which a dedup store drops. */
      readonly acknowledged: boolean;
    })
  | (Named & { readonly type: 'duplicate' })
  | (Named & {
      readonly type: 'retry';
      /** The one that failed. */
      readonly attempt: number;
      /** False after an `UnavailableError`, or if the dedup store is away: the same attempt is made again. */
      readonly counts: boolean;
      readonly retryInMs: number;
      readonly error: unknown;
    })
  | (Named & {
      readonly type: 'dead_lettered';
      /** `attempts`: all failed. `rejected`: by a `RejectError`. `invalid`: the message is no event. */
      readonly reason: 'attempts' | 'rejected' | 'invalid';
      readonly error: unknown;
    })
  | (Named & {
      readonly type: 'skipped';
      /** `unknown`: a type or form that this package does not know. `no_handler`: a kind that nobody handles here. */
      readonly reason: 'unknown' | 'no_handler';
      /** The CloudEvent's type, and of an unknown one its `dataschema`. */
      readonly eventType: string;
    });

/** What happened to the connection or the queue. */
type ConnectionNotice =
  | {
      readonly type: 'connected';
      readonly queue: string;
      /** False the first time. */
      readonly again: boolean;
      /** Connected again, but the broker no longer had the queue: what was published meanwhile did not reach it. */
      readonly queueWasGone: boolean;
      /** Of the queue when this subscriber opened it. With a single active consumer, these or this one wait. */
      readonly otherConsumers: number;
    }
  /** Another consumer is active, and gets all events: this one waits to take over. Only with the orders `job` and `queue`. */
  | { readonly type: 'standby'; readonly queue: string; readonly otherConsumers: number }
  /** It was on standby, and the first event has come: it has taken over. */
  | { readonly type: 'active'; readonly queue: string }
  | { readonly type: 'lost'; readonly error: Error }
  /** No connection, or the broker does not let it work (`SubscriberError`). It is tried again. */
  | { readonly type: 'unreachable'; readonly error: Error; readonly retryInMs: number }
  | { readonly type: 'stopping' }
  | {
      readonly type: 'stopped';
      /** Events that had come and were not begun: the broker gives them to the next consumer. */
      readonly returned: number;
      /** Handlers that did not end before the deadline. Their events come again. */
      readonly unfinished: number;
    };

/** `message` is a line for a person, without secrets. Log `error` with it. */
export type Notice = (EventNotice | ConnectionNotice) & {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
};

type Untold = EventNotice | ConnectionNotice;

export type Tell = (untold: Untold) => void;

/** Makes notices, and passes them on. A hook that throws does no harm. */
export function createTeller(onNotice: (notice: Notice) => void = printTroubles): Tell {
  return (untold) => {
    try {
      onNotice({ ...untold, level: levelOf(untold), message: lineOf(untold) });
    } catch (error) {
      printTroubles({ ...untold, level: 'error', message: `onNotice threw: ${messageOf(error)}` });
    }
  };
}

/** Without a hook nothing must go wrong unseen. */
function printTroubles({ level, message }: Notice): void {
  if (level === 'warn' || level === 'error') process.stderr.write(`tallyhook subscriber: ${message}\n`);
}

function levelOf(untold: Untold): Notice['level'] {
  switch (untold.type) {
    case 'handled':
    case 'duplicate':
      return 'debug';
    case 'dead_lettered':
      return 'error';
    case 'retry':
    case 'lost':
    case 'unreachable':
      return 'warn';
    case 'skipped':
      return untold.reason === 'unknown' ? 'warn' : 'debug';
    case 'connected':
      return untold.queueWasGone ? 'error' : 'info';
    case 'stopped':
      return untold.unfinished > 0 ? 'warn' : 'info';
    case 'standby':
    case 'active':
    case 'stopping':
      return 'info';
  }
}

function lineOf(untold: Untold): string {
  switch (untold.type) {
    case 'handled':
      return `handled ${nameOf(untold)}`;
    case 'duplicate':
      return `${nameOf(untold)} was handled before: acknowledged`;
    case 'retry':
      return `attempt ${untold.attempt} at ${nameOf(untold)} failed${untold.counts ? '' : ' and does not count'}, the next one is in ${untold.retryInMs} ms: ${messageOf(untold.error)}`;
    case 'dead_lettered':
      return `${nameOf(untold)} was dead-lettered (${untold.reason}): ${messageOf(untold.error)}`;
    case 'skipped':
      return `${nameOf(untold)} was acknowledged unhandled: ${untold.reason === 'unknown' ? 'this version does not know' : 'there is no function for'} ${untold.eventType}`;
    case 'connected':
      return connectedLine(untold);
    case 'standby':
      return `another consumer of queue ${untold.queue} is active: this one waits to take over`;
    case 'active':
      return `has taken over queue ${untold.queue}`;
    case 'lost':
      return `the connection to the broker was lost, connecting again: ${untold.error.message}`;
    case 'unreachable':
      return `${messageOf(untold.error)} (tried again in ${untold.retryInMs} ms)`;
    case 'stopping':
      return 'stopping: what was begun is finished';
    case 'stopped':
      return `stopped: ${untold.returned} events were returned to the queue, ${untold.unfinished} were not finished`;
  }
}

const nameOf = ({ id }: Named) => id ?? 'a message without id';

function connectedLine(notice: Extract<Untold, { type: 'connected' }>): string {
  if (notice.queueWasGone)
    return `connected again, but queue ${notice.queue} was gone: events that were published meanwhile are missing`;
  return notice.again
    ? `connected again: queue ${notice.queue} has kept what arrived`
    : `connected: consuming queue ${notice.queue}`;
}

/** Of anything that was thrown. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : inspect(error, { depth: 1 });
  // No address of a host could be reached: the message of an AggregateError is empty.
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  return error.message || (inner instanceof Error ? inner.message : error.name);
}
