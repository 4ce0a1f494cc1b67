// What a job needs of an engine. There are two: ffmpeg.ts converts, simulated.ts only pretends to.

export type Conversion = {
  readonly outputBytes: number;
  /** The duration of the output. */
  readonly mediaSeconds: number;
};

export type ConversionOrder = {
  readonly inputUrl: string;
  readonly outputUrl: string;
  readonly inputFormat: string;
  readonly outputFormat: string;
  /** Cancels the conversion, as at shutdown. */
  readonly signal: AbortSignal;
  /** 0 ≤ percentage < 100, never decreasing. `remainingMs` is undefined while unknown. */
  readonly onProgress: (percentage: number, remainingMs: number | undefined) => void;
};

export type Engine = {
  readonly kind: 'ffmpeg' | 'simulated';
  readonly version: string;
  /**
   * Fetches the input, converts it and uploads the output. Leaves no file and no process behind, however it ends. May
   * be called again for the same order; the output is then replaced.
   * @throws ConversionError for faults of the job and for limits; the signal's reason once it is aborted. Anything else
   *   is a bug.
   */
  readonly convert: (order: ConversionOrder) => Promise<Conversion>;
};

export type EngineLimits = {
  readonly inputBytes: number;
  readonly mediaSeconds: number;
  /** For probing and converting. */
  readonly runMs: number;
  /** For the whole download of the input. */
  readonly fetchMs: number;
  /** For the whole upload of the output. */
  readonly uploadMs: number;
};

/** Enough for any clip on a developer's machine, and no job occupies a slot for long. */
export const DEFAULT_ENGINE_LIMITS: EngineLimits = {
  inputBytes: 256 * 1024 * 1024,
  mediaSeconds: 30 * 60,
  runMs: 10 * 60_000,
  fetchMs: 2 * 60_000,
  uploadMs: 2 * 60_000,
};
