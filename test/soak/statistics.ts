// The few statistics that the verdict is made of. Robust ones: a sample that a fault has spoilt moves none of them.

export type Point = readonly [x: number, y: number];

/** NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low, high] = [sorted[middle - 1], sorted[middle]];
  if (high === undefined) return Number.NaN;
  return sorted.length % 2 === 1 || low === undefined ? high : (low + high) / 2;
}

/**
 * The slope by Theil and Sen: the median of the slopes between all pairs. Up to 29 % of the points may be wrong without
 * an effect, where a least-squares line would follow a single one. Quadratic: for some hundred points.
 */
export function slopeOf(points: readonly Point[]): number {
  const slopes = points.flatMap(([x, y], index) =>
    points
      .slice(index + 1)
      .flatMap(([otherX, otherY]) => (otherX === x ? [] : [(otherY - y) / (otherX - x)])),
  );
  return median(slopes);
}
