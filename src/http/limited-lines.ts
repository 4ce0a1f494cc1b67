// Log lines that anybody can cause: a few of each kind are written each second, then one line counts the rest. So a flood adds
// few lines to the log, and each is at least counted.

export type LimitedLines = {
  /** Writes the line, or counts it under its kind. Kinds come from a closed set. @returns whether it was written */
  readonly write: (kind: string, line: () => void) => boolean;
  /** Logs the last counts and stops. */
  readonly close: () => void;
};

const INTERVAL_MS = 1_000;
/** Enough to understand the problem. */
const LINES_PER_KIND = 5;

/** `tellRest` gets the kinds that had more lines in a second, with how many more. */
export function createLimitedLines({
  tellRest,
}: {
  tellRest: (counts: Readonly<Record<string, number>>) => void;
}): LimitedLines {
  let written = new Map<string, number>(); // lines of this second by kind

  function write(kind: string, line: () => void): boolean {
    const count = (written.get(kind) ?? 0) + 1;
    written.set(kind, count);
    if (count > LINES_PER_KIND) return false;
    line();
    return true;
  }

  function tell(): void {
    const more = Array.from(written, ([kind, count]) => [kind, count - LINES_PER_KIND] as const);
    const rest = Object.fromEntries(more.filter(([, count]) => count > 0));
    written = new Map();
    if (Object.keys(rest).length > 0) tellRest(rest);
  }

  const timer = setInterval(tell, INTERVAL_MS).unref();
  return {
    write,
    close: () => {
      clearInterval(timer);
      tell();
    },
  };
}
