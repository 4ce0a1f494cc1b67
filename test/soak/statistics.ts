// The statistics of the verdict. They are robust: single samples that a fault has distorted do not change them.

export type Point = readonly [x: number, y: number];

/** NaN for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low, high] = [sorted[middle - 1], sorted[middle]];
  if (high === undefined) return Number.NaN;
  return sorted.length % 2 === 1 || low === undefined ? high : (low + high) / 2;
}

/**
 * The Theil–Sen slope: the median of the slopes between all pairs of points. Up to 29 % of the points may be wrong without
 * effect, while one such point changes a least-squares line. Quadratic time: meant for some hundred points.
 */
export function slopeOf(points: readonly Point[]): number {
  const slopes = points.flatMap(([x, y], index) =>
    points
      .slice(index + 1)
      .flatMap(([otherX, otherY]) => (otherX === x ? [] : [(otherY - y) / (otherX - x)])),
  );
  return median(slopes);
}
