// A confirm channel beside the main one, on the same connection, for messages that could stop it for all others. It is opened by
// its first message, and again after it closed. That it closes is no loss of the connection.

import { describeError } from '../base/errors.ts';
import type { OpenChannel } from './confirm-channel.ts';
import type { OutgoingMessage, Publication } from './publication.ts';

export type SideChannel = {
  readonly send: (message: OutgoingMessage, settled: (publication: Publication) => void) => void;
  /** Undefined while it is not open. */
  readonly current: () => OpenChannel | undefined;
  /** Nothing more is sent on the current one: the next message opens another one. */
  readonly giveUp: () => void;
  /** The same, but the current one, which is returned, stays open for the answers of what is in flight on it. */
  readonly replace: () => OpenChannel | undefined;
};

/** @param open opens another channel; calls its argument when that is closed */
export function createSideChannel(open: (onClosed: () => void) => Promise<OpenChannel>): SideChannel {
  let opening: Promise<OpenChannel> | undefined;
  let current: OpenChannel | undefined;

  function forget(which: Promise<OpenChannel>): void {
    if (opening !== which) return;
    opening = undefined;
    current = undefined;
  }

  function start(): Promise<OpenChannel> {
    const started: Promise<OpenChannel> = open(() => forget(started));
    opening = started;
    void keep(started);
    return started;
  }

  /** Who waits for it hears of its failure. */
  async function keep(started: Promise<OpenChannel>): Promise<void> {
    try {
      const channel = await started;
      if (opening === started) current = channel;
    } catch {
      forget(started);
    }
  }

  async function send(message: OutgoingMessage, settled: (publication: Publication) => void): Promise<void> {
    let channel: OpenChannel | undefined;
    try {
      channel = await (opening ?? start());
    } catch (error) {
      settled({ result: 'failed', detail: describeError(error).message, blame: 'broker', durationMs: 0 });
      return;
    }
    try {
      channel.send(message, settled);
    } catch (error) {
      // amqplib may have counted a message that was never sent: this channel's confirms are no longer of use.
      if (channel === current) giveUp();
      channel.inFlight.failAll(describeError(error).message);
    }
  }

  function replace(): OpenChannel | undefined {
    const former = current;
    opening = undefined;
    current = undefined;
    return former;
  }

  const giveUp = () => replace()?.close();

  return {
    send: (message, settled) => void send(message, settled),
    current: () => current,
    giveUp,
    replace,
  };
}
