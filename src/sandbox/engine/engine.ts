// What the jobs know of converting. Two engines answer to it: ffmpeg.ts converts, simulated.ts only pretends.

export type Conversion = {
  readonly outputBytes: number;
  /** How long the output plays. */
  readonly mediaSeconds: number;
};

export type ConversionOrder = {
  readonly inputUrl: string;
  readonly outputUrl: string;
  readonly inputFormat: string;
  readonly outputFormat: string;
  /** Cancels the conversion, as on shutdown. */
  readonly signal: AbortSignal;
  /** 0 ≤ percentage < 100, never falling; `remainingMs` undefined while unknown. */
  readonly onProgress: (percentage: number, remainingMs: number | undefined) => void;
};

export type Engine = {
  readonly kind: 'ffmpeg' | 'simulated';
  readonly version: string;
  /**
   * Fetches the input, converts it and puts the result to its address. Leaves no file and no process behind, however
   * it ends. May be called again for the same order: the output is then replaced.
   * @throws ConversionError for what is the job's own fault or a limit; the signal's reason once it is aborted;
   * anything else is a bug.
   */
  readonly convert: (order: ConversionOrder) => Promise<Conversion>;
};

export type EngineLimits = {
  readonly inputBytes: number;
  readonly mediaSeconds: number;
  /** For looking into the input and converting it. */
  readonly runMs: number;
  /** For the whole input to arrive. */
  readonly fetchMs: number;
  /** For the whole output to be taken. */
  readonly uploadMs: number;
};

/** Made for clips on a developer's machine: enough for any of those, and no job holds a place for long. */
export const DEFAULT_ENGINE_LIMITS: EngineLimits = {
  inputBytes: 256 * 1024 * 1024,
  mediaSeconds: 30 * 60,
  runMs: 10 * 60_000,
  fetchMs: 2 * 60_000,
  uploadMs: 2 * 60_000,
};
