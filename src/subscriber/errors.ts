// The errors of a subscriber.

/**
 * Throw it in a handler to dead-letter the event at once, without another attempt: trying again would not help.
 */
export class RejectError extends Error {
  override readonly name = 'RejectError';
  readonly code = 'rejected';
}

/**
 * Throw it in a handler when the fault is not the event's: what you depend on is away. The event is tried again for as long as it
 * takes, and no attempt counts. A dedup store that fails before it calls the handler is treated in the same way.
 */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
  readonly code = 'unavailable';
}

/** A handler did not end in time. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError';
  readonly code = 'time_limit';
}

/**
 * The broker does not let the subscriber work. The message says why and what to do.
 * - `queue_differs`: the queue, or its dead-letter queue, exists with other arguments.
 * - `access_refused`: the account's password or the virtual host is wrong, or it lacks a permission.
 * - `limit_reached`: the account, the virtual host or the broker may not have more connections.
 * - `wrong_port`: what answers there does not speak AMQP, or TLS is on one side only.
 * - `tls_failed`: one side does not trust the other's certificate, or we have none.
 * - `broker_refused`: another reason, which the message quotes.
 * - `exchange_missing`, `queue_missing`: not declared yet by who owns it.
 */
export class SubscriberError extends Error {
  override readonly name = 'SubscriberError';
  readonly code:
    | 'queue_differs'
    | 'access_refused'
    | 'limit_reached'
    | 'wrong_port'
    | 'tls_failed'
    | 'broker_refused'
    | 'exchange_missing'
    | 'queue_missing';

  constructor(code: SubscriberError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
