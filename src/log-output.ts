// Where the log's lines go: standard output, which whoever reads it may slow down or stop. Promises that neither memory
// grows nor anybody waits then: lines wait in a buffer with a limit, and those beyond it are dropped and counted. While
// lines flow none is lost, and each goes out in the same turn of the event loop in which it was written.

import { fstatSync, writeFile } from 'node:fs';

export type LogOutput = {
  /** One line with its end, or more. Returns at once. */
  readonly write: (line: string) => void;
  /** Hands over at once what waits, where that is possible: pino calls it after a fatal line. */
  readonly flushSync: () => void;
  /** Calls back once all that was written so far is out, or lost to an error. Never, while nobody reads. */
  readonly flush: (done: () => void) => void;
  /** How many lines were dropped or lost so far. */
  readonly dropped: () => number;
  /** From now on `tell` is called with the number of dropped lines when lines flow again. It may write one itself. */
  readonly onFlowing: (tell: (dropped: number) => void) => void;
};

/** Writes all of the text, then calls back. */
export type WriteText = (text: string, done: (error?: Error | null) => void) => void;

/** Some 3,000 deliveries: a reader may pause for a second of the peak, or ten of an ordinary day. */
const LIMIT_BYTES = 1024 * 1024;

const STDOUT = 1;

export function createLogOutput(
  writeText: WriteText = toStandardOutput(),
  limitBytes: number = LIMIT_BYTES,
): LogOutput {
  const waiting = { text: '', bytes: 0, lines: 0 };
  let leavingBytes = 0; // with `writeText`, which has not called back
  let isLeaving = false;
  let isDue = false;
  let isTelling = false;
  let dropped = 0;
  let told = 0;
  let tell: ((dropped: number) => void) | undefined;
  let onEmpty: (() => void)[] = [];

  function write(line: string): void {
    const bytes = Buffer.byteLength(line);
    // What tells of dropped lines is never dropped itself.
    if (!isTelling && waiting.bytes + leavingBytes + bytes > limitBytes) {
      dropped += 1;
      return;
    }
    waiting.text += line;
    waiting.bytes += bytes;
    waiting.lines += 1;
    if (isDue || isLeaving) return;
    isDue = true;
    setImmediate(send); // one write for all lines of this turn
  }

  function send(): void {
    isDue = false;
    if (isLeaving || waiting.lines === 0) return;
    const { text, lines } = waiting;
    isLeaving = true;
    leavingBytes = waiting.bytes;
    Object.assign(waiting, { text: '', bytes: 0, lines: 0 });
    writeText(text, (error) => sent(lines, error));
  }

  function sent(lines: number, error: Error | null | undefined): void {
    isLeaving = false;
    leavingBytes = 0;
    // A full disk, or a reader that is gone for good: it is tried again with the next lines.
    if (error) dropped += lines;
    else tellDropped();
    if (waiting.lines > 0) return send();
    for (const done of onEmpty) done();
    onEmpty = [];
  }

  /** Behind the lines that still had room, where those that had none are missing. */
  function tellDropped(): void {
    if (dropped === told) return;
    const count = dropped - told;
    told = dropped;
    isTelling = true;
    tell?.(count);
    isTelling = false;
  }

  return {
    write,
    flushSync: send,
    flush: (done) => {
      send();
      if (isLeaving) onEmpty.push(done);
      else done();
    },
    dropped: () => dropped,
    onFlowing: (listener) => {
      tell = listener;
    },
  };
}

/**
 * A pipe, a socket or a terminal as Node has them: a pipe and a socket take what there is room for and let us go on. Node
 * would write to a file on the event loop, which a busy disk stops; so that is done beside it.
 */
function toStandardOutput(): WriteText {
  if (fstatSync(STDOUT).isFile()) return (text, done) => writeFile(STDOUT, text, done);
  const { stdout } = process;
  stdout.on('error', () => {}); // told to each write, too; without a listener it would end the process
  return (text, done) => void stdout.write(text, done);
}
