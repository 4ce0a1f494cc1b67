// What the publisher takes and what it answers: a message, and the result of one attempt to publish it.

export type OutgoingMessage = {
  readonly messageId: string;
  readonly routingKey: string;
  readonly contentType: string;
  readonly type: string;
  readonly timestamp: Date;
  readonly body: Buffer;
  /** Published only to this queue, not to the exchange. At most 255 bytes. */
  readonly queue?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
};

/** What the broker routes alike: the messages of a routing key, and those for a queue. */
export function routeOf({ queue, routingKey }: Pick<OutgoingMessage, 'queue' | 'routingKey'>): string {
  return typeof queue === 'string' ? `queue ${queue}` : routingKey;
}

/** The result of one publish attempt. `blame` names the cause of a failure. */
export type Publication = { readonly durationMs: number } & (
  | { readonly result: 'confirmed' }
  | { readonly result: 'returned' | 'nacked'; readonly detail: string; readonly blame: 'event' }
  | { readonly result: 'failed'; readonly detail: string; readonly blame: Blame }
);

/**
 * - `event`: the event itself.
 * - `broker`: the broker or the network, so that any event would have failed.
 * - `route`: where it was to go. Events of other routes are published meanwhile.
 * - `queue`: we may not publish to a queue directly. For one queue only.
 * - `unknown`: one of the messages in flight, because of which the broker closed the channel.
 */
export type Blame = 'event' | 'broker' | 'route' | 'queue' | 'unknown';
