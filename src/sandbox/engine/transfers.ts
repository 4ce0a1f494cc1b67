// Both engines get their input and give their output in the same way, and fail at it in the same words.

import { join } from 'node:path';
import type { Addresses } from '../addresses/addresses.ts';
import { download } from '../addresses/download.ts';
import { TransferError } from '../addresses/transfer-error.ts';
import { upload } from '../addresses/upload.ts';
import type { ConversionOrder, EngineLimits } from './engine.ts';
import { ConversionError, type ConversionErrorCode } from './errors.ts';
import { findFormat, FORMAT_NAMES, type Format } from './formats.ts';

export const INPUT_NAME = 'input';

export type Transfers = {
  /** Into `folder`, as INPUT_NAME. @returns its path and size, which is not 0. */
  readonly fetchInput: (order: ConversionOrder, folder: string) => Promise<{ file: string; bytes: number }>;
  /** @returns the bytes put. */
  readonly putOutput: (order: ConversionOrder, file: string, mediaType: string) => Promise<number>;
};

/** All of it throws ConversionError, or the order's reason once it is cancelled. */
export function createTransfers({
  addresses,
  limits,
}: {
  addresses: Addresses;
  limits: EngineLimits;
}): Transfers {
  return {
    fetchInput: async ({ inputUrl, signal }, folder) => {
      const file = join(folder, INPUT_NAME);
      const bytes = await download({
        url: inputUrl,
        file,
        addresses,
        maxBytes: limits.inputBytes,
        timeoutMs: limits.fetchMs,
        signal,
      }).catch(
        failAs({ unreachable: 'INPUT_UNREACHABLE', too_large: 'INPUT_TOO_LARGE', no_room: 'INTERNAL' }),
      );
      if (bytes === 0) throw new ConversionError('INVALID_INPUT', 'the input is empty');
      return { file, bytes };
    },
    putOutput: async ({ outputUrl, signal }, file, mediaType) =>
      upload({ url: outputUrl, file, mediaType, addresses, timeoutMs: limits.uploadMs, signal }).catch(
        failAs({ unreachable: 'OUTPUT_UNWRITABLE', too_large: 'OUTPUT_UNWRITABLE', no_room: 'INTERNAL' }),
      ),
  };
}

function failAs(codes: Readonly<Record<TransferError['code'], ConversionErrorCode>>) {
  return (error: unknown): never => {
    if (!(error instanceof TransferError)) throw error;
    throw new ConversionError(codes[error.code], error.message, { cause: error });
  };
}

/** @throws ConversionError UNSUPPORTED_FORMAT */
export function formatsOf({ inputFormat, outputFormat }: ConversionOrder): { from: Format; to: Format } {
  return { from: formatOf(inputFormat), to: formatOf(outputFormat) };
}

function formatOf(name: string): Format {
  const format = findFormat(name);
  if (format !== undefined) return format;
  throw new ConversionError(
    'UNSUPPORTED_FORMAT',
    `the supported formats are ${FORMAT_NAMES.join(', ')}, and "${name}" is not among them`,
  );
}
