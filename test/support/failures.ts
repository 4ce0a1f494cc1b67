// A test that fails shows the last lines that its services logged meanwhile, below what was expected and what came. vitest runs this
// before each file. The lines are those that the service wrote, without secrets (test/service/secrecy.test.ts).

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, beforeEach } from 'vitest';
import { type LogLines, LOGS } from './starts.ts';

/** Enough for what led to a failure, and little enough to be read. */
const LINES = 20;
/** Of lines that say the same, as a load's hundreds of accepted deliveries do. */
const ALIKE = 3;
/** A line with a body in it would hide the others. */
const LINE_LENGTH = 500;

/** A test that waits polls a page or the API: twenty of these would say nothing. */
const isPoll = ({ msg, status }: LogLines[number]): boolean =>
  (msg === 'operators request' || msg === 'console request') && Number(status) < 400;

/** Of each log the lines from a given one on. Empty if there are none. */
export function lastLines(logs: readonly { readonly lines: LogLines; readonly from: number }[]): string {
  return logs
    .map(({ lines, from }) => lastAlike(lines.slice(from).filter((line) => !isPoll(line))).slice(-LINES))
    .filter((lines) => lines.length > 0)
    .map((lines) => `the last lines of the log:\n${lines.map(shortened).join('\n')}`)
    .join('\n\n');
}

/** Leaves out all but the last ones of lines that say the same. */
function lastAlike(lines: LogLines): LogLines {
  const seen = new Map<string, number>();
  const isShown = ({ msg, outcome }: LogLines[number]) => {
    const alike = `${String(msg)} ${String(outcome)}`;
    const count = (seen.get(alike) ?? 0) + 1;
    seen.set(alike, count);
    return msg === undefined || count <= ALIKE;
  };
  return lines.toReversed().filter(isShown).toReversed();
}

function shortened(line: LogLines[number]): string {
  const text = JSON.stringify(line);
  return text.length > LINE_LENGTH ? `${text.slice(0, LINE_LENGTH)}…` : text;
}

const logs: LogLines[] = [];
const onLog = (lines: unknown) => void logs.push(lines as LogLines);

subscribe(LOGS, onLog);
afterAll(() => void unsubscribe(LOGS, onLog));

beforeEach(({ task, onTestFailed }) => {
  const before = new Map(logs.map((lines) => [lines, lines.length]));
  onTestFailed(() => {
    const shown = lastLines(logs.map((lines) => ({ lines, from: before.get(lines) ?? 0 })));
    const [error] = task.result?.errors ?? [];
    if (error !== undefined && shown !== '') error.message += `\n\n${shown}`;
  });
});
