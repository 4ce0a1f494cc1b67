// What both engines share: fetch the input into a folder of its own, work on it within the time limit, upload the
// result, and remove the folder. An engine adds the work itself.

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Addresses } from '../addresses/addresses.ts';
import { inWords, withDeadline } from '../addresses/deadline.ts';
import { download } from '../addresses/download.ts';
import { TransferError } from '../addresses/transfer-error.ts';
import { upload } from '../addresses/upload.ts';
import type { ConversionOrder, Engine, EngineLimits } from './engine.ts';
import { ConversionError, type ConversionErrorCode } from './errors.ts';
import { findFormat, FORMAT_NAMES, type Format } from './formats.ts';

export type EngineOptions = {
  readonly addresses: Addresses;
  readonly limits: EngineLimits;
  /** Each conversion creates a folder of its own in it. Created if missing. */
  readonly folder: string;
};

export type Work = {
  readonly order: ConversionOrder;
  readonly from: Format;
  readonly to: Format;
  /** For this conversion alone. Contains the input, and nothing else at first. */
  readonly folder: string;
  /** The path of the input, which is not empty. */
  readonly input: string;
  readonly inputBytes: number;
  /** Aborted when the order is cancelled or the time is over. */
  readonly signal: AbortSignal;
};

export const INPUT_NAME = 'input';

/** `work` returns the path of the output and how long it plays. It must end soon after its signal is aborted. */
export function createEngine(
  { kind, version }: Pick<Engine, 'kind' | 'version'>,
  { addresses, limits, folder: parent }: EngineOptions,
  work: (work: Work) => Promise<{ output: string; mediaSeconds: number }>,
): Engine {
  const late = () =>
    new ConversionError('TIMED_OUT', `the conversion took longer than ${inWords(limits.runMs)}`);

  async function convert(order: ConversionOrder, folder: string) {
    const { signal } = order;
    const from = formatOf(order.inputFormat);
    const to = formatOf(order.outputFormat);
    const input = join(folder, INPUT_NAME);
    const inputBytes = await fetchInput(order, input);
    const { output, mediaSeconds } = await withDeadline({ signal, timeoutMs: limits.runMs, late }, (until) =>
      work({ order, from, to, folder, input, inputBytes, signal: until }),
    );
    const outputBytes = await upload({
      url: order.outputUrl,
      file: output,
      mediaType: to.mediaType,
      addresses,
      timeoutMs: limits.uploadMs,
      signal,
    }).catch(
      failAs({ unreachable: 'OUTPUT_UNWRITABLE', too_large: 'OUTPUT_UNWRITABLE', no_room: 'INTERNAL' }),
    );
    return { outputBytes, mediaSeconds };
  }

  async function fetchInput({ inputUrl, signal }: ConversionOrder, file: string): Promise<number> {
    const bytes = await download({
      url: inputUrl,
      file,
      addresses,
      maxBytes: limits.inputBytes,
      timeoutMs: limits.fetchMs,
      signal,
    }).catch(failAs({ unreachable: 'INPUT_UNREACHABLE', too_large: 'INPUT_TOO_LARGE', no_room: 'INTERNAL' }));
    if (bytes === 0) throw new ConversionError('INVALID_INPUT', 'the input is empty');
    return bytes;
  }

  return { kind, version, convert: (order) => withFolder(parent, (folder) => convert(order, folder)) };
}

function failAs(codes: Readonly<Record<TransferError['code'], ConversionErrorCode>>) {
  return (error: unknown): never => {
    if (!(error instanceof TransferError)) throw error;
    throw new ConversionError(codes[error.code], error.message, { cause: error });
  };
}

function formatOf(name: string): Format {
  const format = findFormat(name);
  if (format !== undefined) return format;
  throw new ConversionError(
    'UNSUPPORTED_FORMAT',
    `the supported formats are ${FORMAT_NAMES.join(', ')}, and "${name}" is not among them`,
  );
}

/** The folder is readable by this user alone, and removed however `use` ends. */
async function withFolder<T>(parent: string, use: (folder: string) => Promise<T>): Promise<T> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(parent, 'tallyhook-conversion-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
