// Says when a subject has warmed up: V8 compiles and collects for seconds after a start, and meanwhile an event costs more CPU
// time than later. A subject is steady when some windows in a row cost the same. With two of them, a machine that is a little
// faster in the second one would end a warm-up in which an event still becomes a third cheaper.

/** Long enough that the ticks of /proc and one garbage collection make no difference. */
const WINDOW_S = 4;
const WINDOWS = 3;
/** The dearest window against the cheapest. Less than the differences between rounds. */
const TOLERANCE = 0.05;

export type Second = {
  readonly answers: number;
  /** The subject's CPU time since its start. */
  readonly cpuS: number;
};

/** @returns a function that takes each second of the warm-up, and answers whether the subject is steady */
export function createSettling(): (second: Second) => boolean {
  let begin: Second | undefined;
  let seconds = 0;
  let answers = 0;
  let costs: number[] = []; // of the last windows
  return (second) => {
    // The first second only begins a window: it includes the subject's start.
    if (begin === undefined) {
      begin = second;
      return false;
    }
    seconds += 1;
    answers += second.answers;
    if (seconds >= WINDOW_S && answers > 0) {
      costs = [...costs.slice(1 - WINDOWS), (second.cpuS - begin.cpuS) / answers];
      begin = second;
      [seconds, answers] = [0, 0];
    }
    return costs.length === WINDOWS && Math.max(...costs) <= Math.min(...costs) * (1 + TOLERANCE);
  };
}
