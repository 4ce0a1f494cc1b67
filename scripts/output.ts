// Prints lines, and the progress of what a script waits for: as one animated line on a terminal, as plain lines elsewhere.

import { styleText } from 'node:util';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME_MS = 100;
const CLEAR_LINE = '\r\u001b[2K';

export type Progress = {
  /** Runs something that takes a while, also several at once. Prints the time that it took, or that it failed. */
  readonly during: <T>(label: string, work: () => Promise<T>) => Promise<T>;
  /** Prints a line while something runs. */
  readonly note: (line: string) => void;
};

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function complain(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Wrong usage of an npm command. `run.mjs` answers its `--help`. */
export function complainOfUsage(command: string, error: unknown): void {
  complain(`${error instanceof Error ? error.message : String(error)}\nTry "${command} -- --help".`);
}

/** For a person: the error's message, and its cause's if it is not part of that. */
export function explain(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(explain).join('\n\n');
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? explain(error.cause) : '';
  return cause === '' || error.message.includes(cause) ? error.message : `${error.message} (${cause})`;
}

type Format = Parameters<typeof styleText>[0];

/** Without colours if standard output is no terminal or NO_COLOR is set. */
export function paint(format: Format, text: string): string {
  return styleText(format, text, { stream: process.stdout });
}

export function seconds(fromMs: number): string {
  return `${((performance.now() - fromMs) / 1_000).toFixed(1)} s`;
}

export function createProgress(): Progress {
  const { isTTY } = process.stdout;
  const active = new Map<string, number>();
  let frame = 0;
  let timer: NodeJS.Timeout | undefined;

  function draw(): void {
    if (!isTTY) return;
    frame += 1;
    const waiting = [...active].map(([label, sinceMs]) => `${label} ${paint('dim', seconds(sinceMs))}`);
    process.stdout.write(
      `${CLEAR_LINE}${paint('cyan', FRAMES[frame % FRAMES.length] ?? '')} ${waiting.join('  ')}`,
    );
  }

  function note(line: string): void {
    say(`${isTTY && active.size > 0 ? CLEAR_LINE : ''}${line}`);
    if (active.size > 0) draw();
  }

  function finish(label: string, mark: string): void {
    const sinceMs = active.get(label) ?? performance.now();
    active.delete(label);
    if (active.size === 0) clearInterval(timer);
    say(`${isTTY ? CLEAR_LINE : ''}${mark} ${label} ${paint('dim', `(${seconds(sinceMs)})`)}`);
    if (active.size > 0) draw();
  }

  async function during<T>(label: string, work: () => Promise<T>): Promise<T> {
    if (active.size === 0 && isTTY) timer = setInterval(draw, FRAME_MS);
    active.set(label, performance.now());
    if (isTTY) draw();
    else say(`  ${label} …`);
    try {
      const result = await work();
      finish(label, paint('green', '✓'));
      return result;
    } catch (error) {
      finish(label, paint('red', '✗'));
      throw error;
    }
  }

  return { during, note };
}
