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

/**
 * The result of one publish attempt. `blame` names the cause of a failure: the event itself; the broker or the network, so that
 * any event would have failed; or unknown, if the broker closed the channel because of one of the messages in flight.
 */
export type Publication = { readonly durationMs: number } & (
  | { readonly result: 'confirmed' }
  | { readonly result: 'returned' | 'nacked'; readonly detail: string; readonly blame: 'event' }
  | { readonly result: 'failed'; readonly detail: string; readonly blame: Blame }
);

export type Blame = 'event' | 'broker' | 'unknown';
