// Records about notifications by their numbers, in growing typed arrays instead of objects, so that millions fit in memory.

/** The first time of each number; 0 for none. */
export function createTimes() {
  let times = new Float64Array(1 << 16);
  return {
    /** True the first time. */
    markFirst: (number: number, us: number): boolean => {
      if (number >= times.length) times = enlarged(times, new Float64Array(sizeFor(number, times.length)));
      if (times[number] !== 0) return false;
      times[number] = us;
      return true;
    },
    /** The times of the numbers below `count`, as 8-byte floats. */
    bytes: (count: number) => new Uint8Array(times.buffer, 0, Math.min(count, times.length) * 8),
  };
}

/** Which numbers were seen. */
export function createMarks() {
  let marks = new Uint8Array(1 << 16);
  return {
    /** True the first time. */
    mark: (number: number): boolean => {
      if (number >= marks.length) marks = enlarged(marks, new Uint8Array(sizeFor(number, marks.length)));
      if (marks[number] === 1) return false;
      marks[number] = 1;
      return true;
    },
  };
}

const sizeFor = (number: number, length: number) => Math.max(number + 1, length * 2);

function enlarged<T extends Float64Array | Uint8Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
