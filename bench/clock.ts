// The one clock that all parts share: the machine's monotonic one. `performance.now()` counts from each process's
// own start, and the wall clock may jump.

/** Microseconds since some moment of this machine's, the same for every process on it. */
export function monotonicUs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000_000 + Math.round(nanoseconds / 1_000);
}
