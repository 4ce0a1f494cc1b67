// Writes the log's lines to standard output, whose reader may be slow or stop. Guarantees that the program then neither waits
// nor uses more and more memory: lines wait in a limited buffer, and lines beyond it are dropped and counted. While the reader
// keeps up no line is lost, and each is written in the same turn of the event loop.

import { fstatSync, writeFile } from 'node:fs';

export type LogOutput = {
  /** One or more lines with their line ends. Returns at once. */
  readonly write: (line: string) => void;
  /** Starts to write the buffer at once if no write is under way. pino calls it after a fatal line. */
  readonly flushSync: () => void;
  /** Calls back when all lines so far are written, or lost to an error. Does not call back while nobody reads. */
  readonly flush: (done: () => void) => void;
  /** Number of lines that were dropped, or lost to an error, so far. */
  readonly dropped: () => number;
  /** Calls `listener` with the number of dropped lines when lines are written again. It may write a line itself. */
  readonly onResumed: (listener: (dropped: number) => void) => void;
};

/** Writes all of the text, then calls back. */
export type WriteText = (text: string, done: (error?: Error | null) => void) => void;

/** Lines of about 3,000 deliveries: the reader may pause for a second at the peak, or ten on an ordinary day. */
const LIMIT_BYTES = 1024 * 1024;

export function createLogOutput(
  writeText: WriteText = writerOf(process.stdout),
  limitBytes: number = LIMIT_BYTES,
): LogOutput {
  const buffer = { text: '', bytes: 0, lines: 0 };
  let writingBytes = 0; // passed to `writeText`, which has not called back yet
  let isWriting = false;
  let isScheduled = false;
  let isReporting = false;
  let dropped = 0;
  let reported = 0;
  let onResumed: ((dropped: number) => void) | undefined;
  let onEmpty: (() => void)[] = [];

  function write(line: string): void {
    const bytes = Buffer.byteLength(line);
    // The line that reports dropped lines is never dropped.
    if (!isReporting && buffer.bytes + writingBytes + bytes > limitBytes) {
      dropped += 1;
      return;
    }
    buffer.text += line;
    buffer.bytes += bytes;
    buffer.lines += 1;
    if (isScheduled || isWriting) return;
    isScheduled = true;
    setImmediate(writeBuffer); // one write for all lines of this turn
  }

  function writeBuffer(): void {
    isScheduled = false;
    if (isWriting || buffer.lines === 0) return;
    const { text, lines } = buffer;
    isWriting = true;
    writingBytes = buffer.bytes;
    Object.assign(buffer, { text: '', bytes: 0, lines: 0 });
    writeText(text, (error) => onWritten(lines, error));
  }

  function onWritten(lines: number, error: Error | null | undefined): void {
    isWriting = false;
    writingBytes = 0;
    // The disk is full, or the reader is gone. The next lines are tried again.
    if (error) dropped += lines;
    else reportDropped();
    if (buffer.lines > 0) return writeBuffer();
    for (const done of onEmpty) done();
    onEmpty = [];
  }

  /** Called after the buffered lines are written: the report stands where the dropped lines are missing. */
  function reportDropped(): void {
    if (dropped === reported) return;
    const count = dropped - reported;
    reported = dropped;
    isReporting = true;
    onResumed?.(count);
    isReporting = false;
  }

  return {
    write,
    flushSync: writeBuffer,
    flush: (done) => {
      writeBuffer();
      if (isWriting) onEmpty.push(done);
      else done();
    },
    dropped: () => dropped,
    onResumed: (listener) => {
      onResumed = listener;
    },
  };
}

/**
 * To a stream, such as standard output. Pipes, sockets and terminals are left to Node: a pipe and a socket take what they have
 * room for, and do not block. Node would write to a file synchronously, and a busy disk would block the event loop: so a file is
 * written to asynchronously.
 */
export function writerOf(stream: NodeJS.WritableStream & { readonly fd?: number }): WriteText {
  const { fd } = stream;
  if (fd !== undefined && fstatSync(fd).isFile()) return (text, done) => writeFile(fd, text, done);
  stream.on('error', () => {}); // each write gets the error, too; without a listener it would end the process
  return (text, done) => void stream.write(text, done);
}
