// Reads ffmpeg's own progress (`-progress`): blocks of `key=value` lines, of which `out_time_us` says how much of the
// output is written. What it makes of that never falls and stays below 100: a job is done when its output is put.

export type ProgressReader = {
  readonly read: (line: string) => void;
  /** Of the output, as far as it was told. */
  readonly seconds: () => number;
};

const LAST_PERCENT = 99;
/** An estimate from less than this of the work says nothing. */
const FIRST_ESTIMATE = 0.02;

/** `totalSeconds`: how long the output will be, if that is known. */
export function createProgressReader(options: {
  totalSeconds: number | undefined;
  onProgress: (percentage: number, remainingMs: number | undefined) => void;
  now: () => number;
}): ProgressReader {
  const { totalSeconds, onProgress, now } = options;
  const startedMs = now();
  let seconds = 0;
  let percentage = 0;

  function read(line: string): void {
    // `N/A` and times below zero come before the first frame.
    const microseconds = /^out_time_us=(\d+)$/.exec(line)?.[1];
    if (microseconds === undefined) return;
    seconds = Math.max(seconds, Number(microseconds) / 1_000_000);
    if (totalSeconds === undefined) return;
    const done = Math.min(1, seconds / totalSeconds);
    percentage = Math.min(LAST_PERCENT, Math.max(percentage, Math.floor(done * 100)));
    const elapsedMs = now() - startedMs;
    const remainingMs = done < FIRST_ESTIMATE ? undefined : Math.round((elapsedMs * (1 - done)) / done);
    onProgress(percentage, remainingMs);
  }

  return { read, seconds: () => seconds };
}
