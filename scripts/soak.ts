// `npm run soak`: an hour of load with occasional faults on two replicas of its own, to see whether anything grows. `--from`
// evaluates a record again without a run. Exit code 1 if something grows without bound, if an acknowledged event is not on the
// bus, or if anything is left in the outbox.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { plotsOf } from '../test/soak/plots.ts';
import { openRecord, readRecord, type SoakRecord } from '../test/soak/record.ts';
import { runSoak, type SoakOptions } from '../test/soak/run.ts';
import { sectionOf, withSection } from '../test/soak/section.ts';
import { judge, type Verdict } from '../test/soak/verdict.ts';
import { endOnRequest } from './ending.ts';
import { complain, complainOfUsage, explain, paint, say } from './output.ts';
import { ROOT } from './relay.ts';
import { createGuard } from './services/guard.ts';

type Arguments = Omit<SoakOptions, 'command'> & {
  readonly writesDocs: boolean;
  readonly from: string | undefined;
};

const WRONG_USAGE = 2;
const PAGE = join(ROOT, 'docs/reliability.md');
const PLOTS = join(ROOT, 'docs/plots');

/** @throws Error on an unknown option or a number outside its limits */
function readArguments(args: string[]): Arguments {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '60' },
      rate: { type: 'string', default: '1500' },
      seed: { type: 'string', default: '1' },
      'fault-every': { type: 'string', default: '180' },
      'write-docs': { type: 'boolean', default: false },
      from: { type: 'string' },
    },
  });
  return {
    minutes: numberBetween('--minutes', values.minutes, [1, 24 * 60]),
    ratePerS: numberBetween('--rate', values.rate, [1, 50_000]),
    seed: numberBetween('--seed', values.seed, [0, 2 ** 32 - 1]),
    faultEveryS: numberBetween('--fault-every', values['fault-every'], [20, 3_600]),
    writesDocs: values['write-docs'],
    from: values.from,
  };
}

function numberBetween(name: string, text: string, [least, most]: readonly [number, number]): number {
  const value = Number(text);
  if (text !== '' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw new Error(`${name} takes a whole number from ${least} to ${most}`);
}

async function main(args: string[]): Promise<number> {
  let read: Arguments;
  try {
    read = readArguments(args);
  } catch (error) {
    complainOfUsage('npm run soak', error);
    return WRONG_USAGE;
  }
  try {
    if (read.from !== undefined) return report(readRecord(read.from), read.writesDocs);
    return await soak(read, ['npm run soak', ...(args.length > 0 ? ['--', ...args] : [])].join(' '));
  } catch (error) {
    complain(explain(error));
    return 1;
  }
}

async function soak(read: Arguments, command: string): Promise<number> {
  const guard = createGuard();
  const asked = new AbortController();
  const ending = endOnRequest(guard, () => asked.abort());
  const file = join(
    ROOT,
    '.local/soak',
    `${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.jsonl`,
  );
  say(`the record: ${relative(process.cwd(), file)}`);
  try {
    await runSoak({ ...read, command, guard, signal: asked.signal, write: openRecord(file).write, log: say });
  } catch (error) {
    if (!ending.isAsked()) throw error;
  } finally {
    await guard.close();
  }
  return ending.exitCode() ?? report(readRecord(file), read.writesDocs);
}

function report(record: SoakRecord, writesDocs: boolean): number {
  const verdict = judge(record);
  print(record, verdict);
  if (writesDocs) writeDocs(record, verdict);
  return verdict.passed ? 0 : 1;
}

function print({ end }: SoakRecord, { judgements, checks, passed }: Verdict): void {
  say(paint('bold', '\nGrowth over the second half'));
  for (const { what, unit, level, rise, allowed, verdict } of judgements) {
    const figures = [level, rise, allowed].map((value) => value.toFixed(1).padStart(10)).join(' ');
    const colour = verdict === 'bounded' ? 'green' : 'red';
    say(`  ${what.padEnd(36)} ${figures}  ${unit.padEnd(14)} ${paint(colour, verdict)}`);
  }
  say(paint('bold', '\nAt the end'));
  if (end === undefined) say(paint('red', '  the run did not reach it'));
  for (const { what, value, passed: isSo } of checks)
    say(
      `  ${what.padEnd(46)} ${String(value).padStart(10)}  ${isSo ? '' : paint('red', 'not as promised')}`.trimEnd(),
    );
  for (const [what, count] of Object.entries(end?.errorsLogged ?? {}))
    say(paint('dim', `  logged ${count} × ${what}`));
  say(
    passed
      ? paint('green', '\nNothing grows without bound, and nothing was lost.')
      : paint('red', '\nNot as promised.'),
  );
}

function writeDocs(record: SoakRecord, verdict: Verdict): void {
  mkdirSync(PLOTS, { recursive: true });
  for (const [name, svg] of plotsOf(record)) writeFileSync(join(PLOTS, name), svg);
  const page = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '# Reliability\n';
  writeFileSync(PAGE, withSection(page, sectionOf(record, verdict)));
  say(`written: ${relative(process.cwd(), PAGE)} and ${relative(process.cwd(), PLOTS)}/soak-*.svg`);
}

process.exit(await main(process.argv.slice(2)));
