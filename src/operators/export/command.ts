// `tallyhook export`: a whole list as NDJSON or CSV, however long. A file gets its name only when it is complete.

import { type FileHandle, open, rename } from 'node:fs/promises';
import { UsageError } from '../../base/errors.ts';
import { escapeInvisible, maskInvisibleInLines } from '../../base/text/invisible-characters.ts';
import type { Env } from '../../config.ts';
import { oneOf, parse } from '../../terminal/arguments.ts';
import { createBar } from '../../terminal/bar.ts';
import type { Command } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { flag, option, optionHelp } from '../../terminal/options.ts';
import { bytes, counted, duration } from '../../terminal/readable.ts';
import { EXPORTED_LISTS, LISTS } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { filterOptions, readFilters } from '../kernel/list/filters.command.ts';

const FORMATS = ['ndjson', 'csv'] as const;
const NEWLINE = 10;
/** The content may be personal. */
const OWNER_ONLY = 0o600;

const OPTIONS = {
  format: option('FORMAT', 'ndjson or csv (ndjson)'),
  bodies: flag('with the bodies of deliveries or the quarantine, as text, or in base64 where one is no text'),
  out: option('FILE', 'to this file; it is named FILE.part until it is complete'),
} as const;

const help = `A whole list of any length. The operator log records it.

  export LIST           ${EXPORTED_LISTS.join(', ')}
${optionHelp(OPTIONS)}
    and the filters of that list: see "tallyhook <list> --help"

Exit code 1 if the export is not complete.`;

async function run(args: string[], env: Env, io: Io): Promise<number> {
  const [word = '', ...rest] = args;
  const list = EXPORTED_LISTS.find((name) => name === word);
  if (list === undefined) {
    if (word.startsWith('-')) parse([word], {}); // --help
    throw new UsageError(
      `export takes one of ${EXPORTED_LISTS.join(', ')}${word === '' ? '' : `, not "${word}"`}`,
    );
  }
  const { filters } = LISTS[list];
  const { values } = parse(rest, { ...filterOptions(filters), ...OPTIONS });
  const { format, out, bodies } = values;
  const query = {
    list,
    format: oneOf('--format', format, 'ndjson', FORMATS),
    ...(bodies && { bodies: 'true' }),
    ...readFilters(filters, values),
  };
  const { client } = openApi(env, io);
  const isForPeople = out === undefined && io.stdout.isTTY;
  const chunks = harmless(client.exportList(query), { format: query.format, isForPeople });
  return out === undefined ? drain(io, chunks, io.putBytes) : writeFile(io, chunks, out);
}

/**
 * Invisible characters are escaped in NDJSON, which changes no value, also in files: these end up on terminals, too. CSV
 * has no escapes, so it is changed for a terminal alone.
 */
async function* harmless(
  chunks: AsyncIterable<Uint8Array>,
  { format, isForPeople }: { format: (typeof FORMATS)[number]; isForPeople: boolean },
): AsyncGenerator<Uint8Array> {
  if (format === 'csv' && !isForPeople) return yield* chunks;
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true });
    yield Buffer.from(
      format === 'csv' ? maskInvisibleInLines(text.replaceAll('\r\n', '\n')) : escapeInvisible(text),
    );
  }
}

async function writeFile(io: Io, chunks: AsyncIterable<Uint8Array>, file: string): Promise<number> {
  const part = `${file}.part`;
  // Opened when the first bytes arrive, so that an error answer leaves no empty file behind.
  let handle: FileHandle | undefined;
  try {
    const code = await drain(io, chunks, async (chunk) => {
      handle ??= await open(part, 'w', OWNER_ONLY);
      await handle.writeFile(chunk);
    });
    handle ??= await open(part, 'w', OWNER_ONLY);
    await handle.sync();
    await rename(part, file);
    return code;
  } finally {
    await handle?.close();
  }
}

async function drain(
  io: Io,
  chunks: AsyncIterable<Uint8Array>,
  write: (chunk: Uint8Array) => Promise<unknown>,
): Promise<number> {
  const startMs = performance.now();
  const bar = createBar(io, { unit: 'lines' });
  let lines = 0;
  let size = 0;
  try {
    for await (const chunk of chunks) {
      await write(chunk);
      size += chunk.length;
      lines += linesOf(chunk);
      bar.update(lines, bytes(size));
    }
  } finally {
    bar.stop();
  }
  if (io.stderr.isTTY) {
    io.complain(`${counted(lines, 'line')}, ${bytes(size)}, in ${duration(performance.now() - startMs)}`);
  }
  return 0;
}

function linesOf(chunk: Uint8Array): number {
  let lines = 0;
  for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines;
}

export const exportCommand: Command = { help, run };
