// The engine for machines without ffmpeg. It fetches the input, waits, and uploads the input unchanged: everything is
// real except the conversion. The code that starts it must tell the user.

import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { beginsLikeMedia, SIGNATURE_BYTES } from './containers.ts';
import { createEngine, type EngineOptions } from './create-engine.ts';
import type { Engine } from './engine.ts';
import { ConversionError } from './errors.ts';

const STEPS = 10;
/** It cannot know how long a clip plays, so it assumes 1 Mbit/s. */
const BYTES_PER_SECOND = 125_000;

/** `stepMs`: for each of ten steps. `now`: monotonic milliseconds. */
export function createSimulatedEngine(
  options: EngineOptions & { stepMs: number; now?: () => number },
): Engine {
  const { stepMs, now = () => performance.now() } = options;
  return createEngine(
    { kind: 'simulated', version: 'none' },
    options,
    async ({ order, input, inputBytes, signal }) => {
      if (!beginsLikeMedia(await headOf(input)))
        throw new ConversionError('INVALID_INPUT', 'the input cannot be read: it is no media file');
      const endsAtMs = now() + STEPS * stepMs;
      for (let step = 0; step < STEPS; step++) {
        order.onProgress((step * 100) / STEPS, Math.max(0, Math.round(endsAtMs - now())));
        await sleep(stepMs, undefined, { signal });
      }
      return { output: input, mediaSeconds: Math.max(1, inputBytes / BYTES_PER_SECOND) };
    },
  );
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
