// The clock that all processes of the benchmark share: the machine's monotonic one. `performance.now()` counts from the start
// of each process, and the wall clock may jump.

/** Microseconds since an arbitrary moment, which is the same for every process of this machine. */
export function monotonicUs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000_000 + Math.round(nanoseconds / 1_000);
}
