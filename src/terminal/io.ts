// What a command has of its process: the three streams, signals, and the exit. The one way in which commands write. Control
// characters never reach the output: text for people has a mark in their place, and JSON has them escaped, which changes no
// value. Only `putBytes` writes what it is given. `serve` alone is a process of its own and uses `process` beside it.

import { once } from 'node:events';
import { styleText } from 'node:util';
import { escapeInvisible, maskInvisibleInColours } from '../base/text/invisible-characters.ts';

/** `columns`: characters a line, where it is a terminal. */
export type Output = NodeJS.WritableStream & { readonly isTTY: boolean; readonly columns: number };

type OnSignal = (name: NodeJS.Signals, listener: (name: NodeJS.Signals) => void) => unknown;

/** As `process` has it. */
export type Host = {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY: boolean };
  readonly stdout: Output;
  readonly stderr: Output;
  readonly on: OnSignal;
  readonly once: OnSignal;
  readonly off: OnSignal;
  readonly exit: (code: number) => void;
};

export type Format = Parameters<typeof styleText>[0];
/** Without colours if standard output is no terminal or NO_COLOR is set: Node sees to it. */
export type Paint = (format: Format, text: string) => string;

export const withoutColours: Paint = (_, text) => text;

export type Io = Pick<Host, 'stdin' | 'stdout' | 'stderr' | 'exit'> & {
  readonly signals: Pick<Host, 'on' | 'once' | 'off'>;
  /** A line on standard output. */
  readonly say: (line: string) => void;
  /** A line on standard error. */
  readonly complain: (line: string) => void;
  /** As `say`, but without a line's end. Resolves when the reader is ready for more, so that output may be of any length. */
  readonly put: (text: string) => Promise<void>;
  /** One line. */
  readonly putJson: (item: unknown) => Promise<void>;
  /** Unchanged. Not for text of others on a terminal. */
  readonly putBytes: (chunk: string | Uint8Array) => Promise<void>;
  readonly paint: Paint;
  /**
   * Calls `end` when nothing more can be written, in place of what was called before: with 0 and no message if the reader
   * closed the pipe, as `head` does, and with 1 otherwise, as on a full disk.
   */
  readonly whenOutputCloses: (end: (exitCode: number) => void) => void;
};

/** `process`, or what a test has in its place. Node opens each of its streams when it is first used. */
export function createIo(host: Host): Io {
  let onError: ((error: NodeJS.ErrnoException) => void) | undefined;

  function complain(line: string): void {
    host.stderr.write(`${maskInvisibleInColours(line)}\n`);
  }

  async function putBytes(chunk: string | Uint8Array): Promise<void> {
    if (!host.stdout.write(chunk)) await once(host.stdout, 'drain');
  }

  return {
    get stdin() {
      return host.stdin;
    },
    get stdout() {
      return host.stdout;
    },
    get stderr() {
      return host.stderr;
    },
    exit: (code) => host.exit(code),
    signals: host,
    say: (line) => void host.stdout.write(`${maskInvisibleInColours(line)}\n`),
    complain,
    put: (text) => putBytes(maskInvisibleInColours(text)),
    putJson: (item) => putBytes(`${toJson(item)}\n`), // escaped already
    putBytes,
    paint: (format, text) => styleText(format, text, { stream: host.stdout }),
    whenOutputCloses: (end) => {
      if (onError !== undefined) host.stdout.off('error', onError);
      onError = (error) => {
        if (error.code === 'EPIPE') return end(0);
        complain(`standard output: ${error.message}`);
        end(1);
      };
      host.stdout.on('error', onError);
    },
  };
}

export function toJson(item: unknown, indent?: number): string {
  return escapeInvisible(JSON.stringify(item, undefined, indent));
}
