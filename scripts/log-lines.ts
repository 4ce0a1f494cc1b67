// Reads a log that another process writes, from where the last reading ended.

import { closeSync, openSync, readSync } from 'node:fs';

/** Of one reading. The rest comes with the next one. */
const READ_MAX_BYTES = 256 * 1024;

/**
 * @param fromByte where the first reading begins
 * @returns a function that reads the lines that are complete and were not read before
 */
export function createLineReader(path: string, fromByte: number): () => readonly string[] {
  let position = fromByte;
  let rest = Buffer.alloc(0);
  return () => {
    const read = readFrom(path, position);
    position += read.length;
    const text = Buffer.concat([rest, read]);
    const end = text.lastIndexOf('\n') + 1;
    rest = text.subarray(end);
    return text.subarray(0, end).toString('utf8').split('\n').slice(0, -1);
  };
}

function readFrom(path: string, position: number): Buffer {
  const file = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(READ_MAX_BYTES);
    return buffer.subarray(0, readSync(file, buffer, 0, buffer.length, position));
  } finally {
    closeSync(file);
  }
}
