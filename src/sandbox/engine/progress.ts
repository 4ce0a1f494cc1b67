// Reads the output of `ffmpeg -progress`: blocks of `key=value` lines, in which `out_time_us` is the duration written so
// far. The percentage never decreases and stays below 100, since a job is complete only after the upload.

export type ProgressReader = {
  readonly read: (line: string) => void;
  /** Duration of the output that ffmpeg has reported. */
  readonly seconds: () => number;
};

const LAST_PERCENT = 99;
/** With less of the work done, an estimate of the rest is useless. */
const FIRST_ESTIMATE = 0.02;

/** `totalSeconds`: the duration of the whole output; undefined if unknown. */
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
    // Before the first frame the value is `N/A` or negative.
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
