// `npm run bench`: measures Tallyhook and the alternatives to it in one run on private services, and writes
// bench/results/<date>.json and docs/performance.md.
// Its options are in usage/bench.txt. `--render` takes the results of one run, or of several that measured different cases.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { AUDIT_FULL, AUDIT_QUICK, measureAudit } from '../bench/audit.ts';
import { renderAudit, writeMedians } from '../bench/audit-report.ts';
import { measureScaleOut, SCALE_OUT_FULL, SCALE_OUT_POSTGRES, SCALE_OUT_QUICK } from '../bench/scale-out.ts';
import { scaleOutSections, writeScaleOut } from '../bench/scale-out-report.ts';
import { LOOKS_FULL, LOOKS_QUICK, measureLooks, renderLooks } from '../bench/looks.ts';
import { CASE_WORK } from '../bench/cases.ts';
import { renderDocument } from '../bench/document.ts';
import { CASES, type Case, joinResults, type Results, type Run, SCHEMA } from '../bench/results.ts';
import type { Bench } from '../bench/runs.ts';
import { FULL, QUICK, type Scale } from '../bench/scale.ts';
import { setStage } from '../bench/stage.ts';
import { commit, hardware, settings, versions } from '../bench/surroundings.ts';
import { targetsOf } from '../bench/targets.ts';
import { runGuarded } from './guarded.ts';
import { complain, createProgress, explain, paint, say, seconds } from './output.ts';
import { ROOT } from './relay.ts';
import { makeThrowAwayFolder } from './services/folders.ts';
import type { Guard } from './services/guard.ts';

type Options = {
  readonly cases: readonly Case[];
  readonly isQuick: boolean;
  readonly profile: boolean;
  /** To print, instead of a run. */
  readonly render: Results | undefined;
  readonly writeDocs: boolean;
  readonly isAudit: boolean;
  readonly isLooks: boolean;
  readonly isScaleOut: boolean;
  readonly command: string;
};

const RESULTS = join(ROOT, 'bench/results');
/** For incomplete runs, which are no results. */
const PARTIAL = join(ROOT, '.local/bench');
const ABORTED = 'asked to end';

async function main(guard: Guard, options: Options, isAskedToEnd: () => boolean): Promise<number> {
  if (options.isScaleOut) return await runScaleOut(guard, options, isAskedToEnd);
  if (options.render !== undefined) {
    say(renderDocument(options.render).join('\n'));
    return 0;
  }
  if (options.isAudit) {
    await runAudit(guard, options);
    return 0;
  }
  if (options.isLooks) {
    await runLooks(guard, options);
    return 0;
  }
  const results = await run(guard, options, isAskedToEnd);
  keep(results, options, isAskedToEnd());
  if (isAskedToEnd()) throw new Error(ABORTED);
  return results.failures.length === 0 ? 0 : 1;
}

/** @throws Error with what is wrong with them */
function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      profile: { type: 'boolean', default: false },
      'write-docs': { type: 'boolean', default: false },
      render: { type: 'string' },
      audit: { type: 'boolean', default: false },
      looks: { type: 'boolean', default: false },
      'scale-out': { type: 'boolean', default: false },
    },
  });
  const wanted = values.only?.split(',') ?? [...CASES];
  const cases = CASES.filter((name) => wanted.includes(name));
  const unknown = wanted.filter((name) => !(CASES as readonly string[]).includes(name));
  if (unknown.length > 0)
    throw new Error(`there is no case ${unknown.join(', ')}. There are: ${CASES.join(', ')}`);
  const isWhole = !values.quick && values.only === undefined && !values.profile;
  return {
    cases,
    isQuick: values.quick,
    profile: values.profile,
    render: values.render === undefined ? undefined : readResults(values.render),
    writeDocs: isWhole || values['write-docs'],
    isAudit: values.audit,
    isLooks: values.looks,
    isScaleOut: values['scale-out'],
    command: ['npm run bench', ...(args.length > 0 ? ['--', ...args] : [])].join(' '),
  };
}

/** Reads several files as one run, the oldest first: hardware and versions are its own, times and commands each one's. @throws Error */
function readResults(files: string): Results {
  const [first, ...others] = files.split(',').map((file) => {
    const results = JSON.parse(readFileSync(file, 'utf8')) as Results;
    if ((results.schema as number) !== SCHEMA) throw new Error(`${file} has another form than ours`);
    return results;
  });
  if (first === undefined) throw new Error('name a file');
  return joinResults([first, ...others]);
}

async function runAudit(guard: Guard, { isQuick, writeDocs }: Options): Promise<void> {
  const progress = createProgress();
  const stage = await setStage(guard, makeThrowAwayFolder(guard), progress);
  const report = await measureAudit(stage, isQuick ? AUDIT_QUICK : AUDIT_FULL, progress);
  await stage.parts.close();
  const text = renderAudit(report);
  say(text);
  if (writeDocs || !isQuick) writeMedians(text);
}

async function runLooks(guard: Guard, { isQuick }: Options): Promise<void> {
  const progress = createProgress();
  const stage = await setStage(guard, makeThrowAwayFolder(guard), progress);
  const report = await measureLooks(stage, isQuick ? LOOKS_QUICK : LOOKS_FULL, progress);
  await stage.parts.close();
  say(renderLooks(report));
}

async function runScaleOut(guard: Guard, options: Options, isAsked: () => boolean): Promise<number> {
  const { render, isQuick, writeDocs } = options;
  const scale = isQuick ? SCALE_OUT_QUICK : SCALE_OUT_FULL;
  const work = (bench: Bench) => measureScaleOut(bench, scale);
  const how = { scale: scale.bench, postgres: SCALE_OUT_POSTGRES, isAsked };
  const results = render ?? (await record(guard, options, { ...how, work }));
  if (render === undefined) store(results, isQuick || isAsked() ? PARTIAL : RESULTS, 'scale-out');
  if (isAsked()) throw new Error(ABORTED);
  const sections = scaleOutSections(results);
  for (const { text } of sections) say(`\n${text}`);
  if (writeDocs || render !== undefined) say(`\n${writeScaleOut(sections)}`);
  for (const failure of results.failures) complain(paint('red', failure));
  return results.failures.length === 0 ? 0 : 1;
}

async function run(guard: Guard, options: Options, isAsked: () => boolean): Promise<Results> {
  const scale = options.isQuick ? QUICK : FULL;
  return await record(guard, options, {
    scale,
    isAsked,
    work: async (bench, failures) => {
      for (const name of options.cases) {
        if (isAsked()) break;
        try {
          await CASE_WORK[name](bench);
        } catch (error) {
          if (!isAsked()) failures.push(`${name}: ${explain(error)}`);
        }
      }
    },
  });
}

/** Sets the stage, does the work on it, and gives what was measured. */
async function record(
  guard: Guard,
  options: Options,
  {
    scale,
    postgres,
    isAsked,
    work,
  }: {
    scale: Scale;
    /** Settings. */
    postgres?: Readonly<Record<string, string>>;
    isAsked: () => boolean;
    work: (bench: Bench, failures: string[]) => Promise<void>;
  },
): Promise<Results> {
  const startedAt = new Date().toISOString();
  const startedMs = performance.now();
  const folder = makeThrowAwayFolder(guard);
  const progress = createProgress();
  const stage = await setStage(guard, folder, progress, postgres);
  const about = {
    hardware: hardware(folder),
    versions: await versions(stage),
    settings: await settings(stage),
    commit: commit(),
  };
  const [runs, skipped, failures]: [Run[], string[], string[]] = [[], [], []];
  mkdirSync(PARTIAL, { recursive: true });
  const bench: Bench = {
    stage,
    scale,
    runs,
    profileFolder: options.profile ? PARTIAL : undefined,
    skip: (what) => {
      skipped.push(what);
      progress.note(`  ${paint('yellow', 'skipped')} ${what}`);
    },
    measure: async (name, measureRun) => {
      const at = new Date().toISOString();
      const label = `${name.case}: ${name.subject}, ${name.variant}, round ${name.round}`;
      try {
        const figures = await progress.during(label, measureRun);
        runs.push({ ...name, startedAt: at, figures });
        progress.note(`    ${summaryOf(figures)}`);
      } catch (error) {
        if (isAsked()) throw error;
        failures.push(`${label}: ${explain(error)}`);
        complain(paint('red', `    ${explain(error)}`));
      }
    },
  };
  try {
    await work(bench, failures);
  } catch (error) {
    if (!isAsked()) failures.push(explain(error));
  }
  await stage.parts.close();
  say(`\n${runs.length} runs in ${seconds(startedMs)}`);
  return {
    schema: SCHEMA,
    startedAt,
    endedAt: new Date().toISOString(),
    command: options.command,
    isQuick: options.isQuick,
    ...about,
    runs,
    skipped,
    failures,
  };
}

function summaryOf(figures: Run['figures']): string {
  const { acksPerS, confirmedPerS, answer, receipt, drainedPerS, pool } = figures;
  const { kept, fresh, livez, rssGrowthMiB } = figures;
  return [
    ...(pool === undefined ? [] : [`pool of ${pool}`]),
    ...rate('acks', acksPerS),
    ...rate('confirmed', confirmedPerS),
    ...rate('drained', drainedPerS),
    ...time('p50', answer?.p50Ms),
    ...time('p99', answer?.p99Ms),
    ...time('p50 to the subscriber', receipt?.p50Ms),
    ...time('worst on a kept connection', kept?.latency.maxMs),
    ...time('on new ones', fresh?.latency.maxMs),
    ...time('of /livez', livez?.latency.maxMs),
    ...(rssGrowthMiB === undefined ? [] : [`RSS +${rssGrowthMiB.toFixed(0)} MiB`]),
  ].join(', ');
}

function rate(name: string, value: number | undefined): string[] {
  return value === undefined ? [] : [`${name} ${Math.round(value).toLocaleString('en')}/s`];
}

function time(name: string, value: number | undefined): string[] {
  return value === undefined || Number.isNaN(value) ? [] : [`${name} ${value.toFixed(1)} ms`];
}

const MARKS = {
  'target met': paint('green', '✓'),
  'floor met': paint('yellow', '~'),
  missed: paint('red', '✗'),
} as const;

/** Writes the results. Those of a run that was interrupted go into the folder for incomplete runs. */
function keep(results: Results, { isQuick, cases, writeDocs }: Options, isCut: boolean): void {
  for (const { name, floor, target, found, verdict, from } of targetsOf(results.runs)) {
    if (verdict === undefined) continue;
    say(`${MARKS[verdict]} ${name}: ${found} (floor ${floor}, target ${target}; ${from})`);
  }
  const isWhole = !isQuick && !isCut && cases.length === CASES.length;
  store(results, isWhole ? RESULTS : PARTIAL);
  if (writeDocs && !isCut) say(renderDocument(results).join('\n'));
  for (const failure of results.failures) complain(paint('red', failure));
}

function store(results: Results, folder: string, ...suffixes: readonly string[]): void {
  mkdirSync(folder, { recursive: true });
  const at = results.startedAt.slice(0, 16).replaceAll(':', '');
  const name = [at, ...suffixes, ...(results.isQuick ? ['quick'] : [])].join('-');
  const path = join(folder, `${name}.json`);
  writeFileSync(path, `${JSON.stringify(results, undefined, 1)}\n`);
  say(`\n${relative(ROOT, path)}`);
}

process.exit(await runGuarded('npm run bench', () => readOptions(process.argv.slice(2)), main));
