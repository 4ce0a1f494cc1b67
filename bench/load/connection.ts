// One kept-alive connection with at most one request under way. Tells what became of each request; connects
// again when it was lost or the server asked it to close.

import { connect, type Socket } from 'node:net';
import { createAnswerReader, type HttpAnswer } from './answers.ts';

export type Reply = { readonly outcome: string; readonly isGood: boolean };

export type Connection = {
  /** Only when it is free. */
  readonly send: (request: Buffer) => void;
  readonly isOpen: () => boolean;
  readonly close: () => void;
};

/** The sender's own limit (spec 6.1). */
const PATIENCE_MS = 10_000;
const RECONNECT_MS = 200;

/** `onFree` comes when it can send, the first time too; `onReply` once for each request, before it. */
export function openConnection(options: {
  port: number;
  onReply: (reply: Reply) => void;
  onFree: () => void;
}): Connection {
  const { port, onReply, onFree } = options;
  let socket: Socket | undefined;
  let isUnderWay = false;
  let isClosed = false;
  let patience: NodeJS.Timeout | undefined;

  function open(): void {
    if (isClosed) return;
    const read = createAnswerReader();
    const opened = connect({ port, host: '127.0.0.1', noDelay: true });
    socket = opened;
    opened.on('connect', onFree);
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
      if (!isClosed) setTimeout(open, RECONNECT_MS);
    });
  }

  function onAnswer(from: Socket, { status, closes }: HttpAnswer): void {
    const isGood = status >= 200 && status < 300;
    isUnderWay = false;
    clearPatience();
    onReply({ outcome: String(status), isGood });
    if (!closes) return onFree();
    socket = undefined;
    from.destroy();
    open();
  }

  function settle(outcome: 'lost' | 'late'): void {
    clearPatience();
    if (!isUnderWay) return;
    isUnderWay = false;
    onReply({ outcome, isGood: false });
  }

  function clearPatience(): void {
    clearTimeout(patience);
    patience = undefined;
  }

  function onPatienceOver(): void {
    settle('late');
    socket?.destroy();
  }

  open();
  return {
    send: (request) => {
      isUnderWay = true;
      patience = setTimeout(onPatienceOver, PATIENCE_MS);
      socket?.write(request);
    },
    isOpen: () => socket?.readyState === 'open',
    close: () => {
      isClosed = true;
      clearPatience();
      socket?.destroy();
    },
  };
}
