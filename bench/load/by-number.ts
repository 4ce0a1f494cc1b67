// What is known of each notification by its number, in growing arrays without an object each: millions fit.

/** First times by number; 0 where there is none. */
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
    /** Of the numbers below `count`, as 8-byte floats. */
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
