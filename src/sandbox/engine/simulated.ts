// The engine for machines without ffmpeg: it fetches the input, lets time pass, and puts it to the output unchanged.
// All that surrounds a conversion is real, the conversion is not; whoever starts it must say so.

import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { setTimeout as pass } from 'node:timers/promises';
import type { Addresses } from '../addresses/addresses.ts';
import { inWords, withDeadline } from '../addresses/deadline.ts';
import { beginsLikeMedia, SIGNATURE_BYTES } from './containers.ts';
import type { Conversion, ConversionOrder, Engine, EngineLimits } from './engine.ts';
import { ConversionError } from './errors.ts';
import { createTransfers, formatsOf } from './transfers.ts';
import { withWorkFolder } from './work-folder.ts';

const STEPS = 10;
/** It cannot tell how long a clip is: as if each had 1 Mbit/s. */
const BYTES_PER_SECOND = 125_000;

/**
 * `stepMs`: for each of ten steps. `now`: in milliseconds, from any start. `folder`: where each conversion makes its
 * own; the system's for temporary files if there is none.
 */
export function createSimulatedEngine(options: {
  addresses: Addresses;
  limits: EngineLimits;
  stepMs: number;
  now?: () => number;
  folder?: string;
}): Engine {
  const { limits, stepMs, now = () => performance.now(), folder: parent = tmpdir() } = options;
  const transfers = createTransfers(options);
  const late = () =>
    new ConversionError('TIMED_OUT', `the conversion took longer than ${inWords(limits.runMs)}`);

  async function pretend({ onProgress }: ConversionOrder, signal: AbortSignal): Promise<void> {
    const endsAtMs = now() + STEPS * stepMs;
    for (let step = 0; step < STEPS; step++) {
      onProgress((step * 100) / STEPS, Math.max(0, Math.round(endsAtMs - now())));
      await pass(stepMs, undefined, { signal });
    }
  }

  async function convert(order: ConversionOrder): Promise<Conversion> {
    const { to } = formatsOf(order);
    return withWorkFolder(parent, async (folder) => {
      const { file, bytes } = await transfers.fetchInput(order, folder);
      if (!beginsLikeMedia(await headOf(file)))
        throw new ConversionError('INVALID_INPUT', 'the input cannot be read: it is no media file');
      await withDeadline({ signal: order.signal, timeoutMs: limits.runMs, late }, (signal) =>
        pretend(order, signal),
      );
      const outputBytes = await transfers.putOutput(order, file, to.mediaType);
      return { outputBytes, mediaSeconds: Math.max(1, bytes / BYTES_PER_SECOND) };
    });
  }

  return { kind: 'simulated', version: 'none', convert };
}

async function headOf(path: string): Promise<Uint8Array> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SIGNATURE_BYTES), 0, SIGNATURE_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
