// Says when a subject has warmed up: V8 compiles and collects for seconds after a start, and meanwhile an event costs more CPU
// time than later. A subject is steady when two neighbouring windows cost the same.

/** Long enough that the ticks of /proc and one garbage collection make no difference. */
const WINDOW_S = 2;
/** Less than the differences between rounds. */
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
  let costBefore: number | undefined;
  let isSteady = false;
  return (second) => {
    // The first second only begins a window: it includes the subject's start.
    if (begin === undefined) {
      begin = second;
      return false;
    }
    seconds += 1;
    answers += second.answers;
    if (isSteady || seconds < WINDOW_S || answers === 0) return isSteady;
    const cost = (second.cpuS - begin.cpuS) / answers;
    isSteady = costBefore !== undefined && Math.abs(cost - costBefore) <= TOLERANCE * costBefore;
    costBefore = cost;
    begin = second;
    [seconds, answers] = [0, 0];
    return isSteady;
  };
}
