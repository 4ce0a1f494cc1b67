// One kept-alive connection with at most one request at a time, or instead a new connection for each request. Reports the result
// of each request. Connects again when the connection is lost or the server asks to close it.

import { connect, type Socket } from 'node:net';
import { createAnswerReader, type HttpAnswer } from './answers.ts';

export type Reply = { readonly outcome: string; readonly isGood: boolean };

export type Connection = {
  /** To be called only while it is free. */
  readonly send: (request: Buffer) => void;
  readonly isOpen: () => boolean;
  readonly close: () => void;
};

/** The sender's own limit (service interface 6.1). */
const ANSWER_TIMEOUT_MS = 10_000;
const RECONNECT_MS = 200;

/** Calls `onFree` whenever it can send, also the first time, and `onReply` once for each request, before `onFree`. */
export function openConnection(options: {
  port: number;
  localAddress?: string | undefined;
  /** A new connection for each request. The time to connect counts. */
  isFresh?: boolean | undefined;
  onReply: (reply: Reply) => void;
  onFree: () => void;
}): Connection {
  const { port, localAddress, isFresh = false, onReply, onFree } = options;
  let socket: Socket | undefined;
  let isUnderWay = false;
  let isClosed = false;
  let timeout: NodeJS.Timeout | undefined;

  function open(first?: Buffer): void {
    if (isClosed) return;
    const read = createAnswerReader();
    const opened = connect({ port, host: '127.0.0.1', localAddress, noDelay: true });
    socket = opened;
    opened.on('connect', () => (first === undefined ? onFree() : opened.write(first)));
    opened.on('data', (chunk) => {
      try {
        for (const answer of read(chunk)) onAnswer(opened, answer);
      } catch (error) {
        opened.destroy(error as Error);
      }
    });
    opened.on('error', () => {});
    opened.on('close', () => {
      if (socket !== opened) return;
      socket = undefined;
      settle('lost');
      if (!isClosed) setTimeout(start, RECONNECT_MS);
    });
  }

  function onAnswer(from: Socket, { status, closes }: HttpAnswer): void {
    const isGood = status >= 200 && status < 300;
    isUnderWay = false;
    clearPatience();
    onReply({ outcome: String(status), isGood });
    if (!closes && !isFresh) return onFree();
    socket = undefined;
    from.destroy();
    start();
  }

  function start(): void {
    if (isFresh) onFree();
    else open();
  }

  function settle(outcome: 'lost' | 'late'): void {
    clearPatience();
    if (!isUnderWay) return;
    isUnderWay = false;
    onReply({ outcome, isGood: false });
  }

  function clearPatience(): void {
    clearTimeout(timeout);
    timeout = undefined;
  }

  function onTimeout(): void {
    settle('late');
    socket?.destroy();
  }

  // Not at once: the caller does not have the connection yet.
  setImmediate(start);
  return {
    send: (request) => {
      isUnderWay = true;
      timeout = setTimeout(onTimeout, ANSWER_TIMEOUT_MS);
      if (isFresh) open(request);
      else socket?.write(request);
    },
    isOpen: () => (isFresh ? !isClosed : socket?.readyState === 'open'),
    close: () => {
      isClosed = true;
      clearPatience();
      socket?.destroy();
    },
  };
}
