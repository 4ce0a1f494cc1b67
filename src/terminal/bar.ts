// A progress bar on standard error, if that is a terminal.

import { Presets, SingleBar } from 'cli-progress';
import type { Io } from './io.ts';

export type Bar = {
  readonly update: (value: number, note?: string) => void;
  readonly stop: () => void;
};

const FRAMES_A_SECOND = 5;

/** Without a `total` it shows the count alone. */
export function createBar(io: Io, { total, unit }: { total?: number; unit: string }): Bar {
  if (!io.stderr.isTTY) return { update: () => {}, stop: () => {} };
  const bar = new SingleBar(
    {
      stream: io.stderr,
      format:
        total === undefined
          ? `{value} ${unit}  {note}`
          : `{bar} {percentage} %  {value} of {total} ${unit}  {note}`,
      barsize: 30,
      fps: FRAMES_A_SECOND,
      clearOnComplete: true,
      // The commands handle signals.
      gracefulExit: false,
    },
    Presets.shades_classic,
  );
  bar.start(total ?? 0, 0, { note: '' });
  return {
    update: (value, note = '') => bar.update(value, { note }),
    stop: () => bar.stop(),
  };
}
