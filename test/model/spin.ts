// Runs the model of the relay (relay.pml) by spin. Each of its programs is compiled once; how many events there are, which faults
// may happen and which rule is switched off are values that it reads when it starts.

import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Guard } from '../../scripts/services/guard.ts';

/** What may happen, each so often. */
export type Faults = {
  /** A leader's own clock ends its lease: it is frozen, or cut off. */
  readonly leases?: number;
  readonly crashes?: number;
  /** The connection to the broker is lost. */
  readonly connections?: number;
  readonly nacks?: number;
  /** Of the intake, without a known result. */
  readonly writeFailures?: number;
  /** Of results, without a known result. */
  readonly settleFailures?: number;
  readonly parks?: number;
  readonly retries?: number;
  readonly discards?: number;
  /** A load leaves something. */
  readonly bounds?: number;
  /** There is no room for what is handed over. */
  readonly rooms?: number;
};

/** `events`: from 1 to 4. `without`: the number of a rule. */
export type Settings = Faults & { readonly events: number; readonly without?: number };

/**
 * - `safety`: nothing is lost, first copies arrive in order, copies are bounded, a parked event stays away past its limit.
 * - `drained`: nothing waits for ever, once faults end.
 */
export type Property = 'safety' | 'drained';

/** What broke: the promise, in a word. */
export type Violation = 'lost' | 'order' | 'copies' | 'parked' | 'waits';

export type Checked = {
  readonly violation: Violation | undefined;
  readonly states: number;
  readonly seconds: number;
};

export type Model = {
  /** @throws Error if not all could be looked at */
  readonly check: (settings: Settings, property?: Property) => Promise<Checked>;
  /** The shortest way to what breaks, one line a step; undefined if nothing does. */
  readonly story: (settings: Settings) => Promise<string[] | undefined>;
};

type Program = Property | 'story';

const MODEL = fileURLToPath(new URL('relay.pml', import.meta.url));
/** Which programs gcc makes of the same source. Without partial order reduction, which gains nothing here: all is shared. */
const COMMON = ['-w', '-DNOBOUNDCHECK', '-DNOREDUCE'];
const SAFETY = [...COMMON, '-DSAFETY', '-DNOCLAIM', '-DNOFAIR'];
const FLAGS: Readonly<Record<Program, readonly string[]>> = {
  safety: [...SAFETY, '-O1'],
  drained: [...COMMON, '-O1', '-DNFAIR=3'],
  // Compiled sooner, since it has little to look at.
  story: [...SAFETY, '-O0', '-DREACH'],
};
const ARGUMENTS: Readonly<Record<Program, readonly string[]>> = {
  safety: [],
  // Weak fairness: a process that can always go on does so.
  drained: ['-a', '-f'],
  // The shortest one.
  story: ['-i'],
};
/** Far more than the longest way, which has some 500 steps. If it is reached, not all was looked at. */
const DEPTH_MAX = 20_000;
/** The table of states has this power of two of places at first. It grows. */
const TABLE = 20;
const TRAIL = 'relay.pml.trail';
const ENDING = { signal: 'SIGTERM', graceMs: 1_000 } as const;

/** What pan says of an assertion, by what the model has in it. */
const ASSERTIONS: readonly (readonly [string, Violation])[] = [
  ['acceptance cycle', 'waits'],
  ['pastLimit', 'parked'],
  ['allowed', 'copies'],
  ['batches', 'lost'],
  ['arrived', 'order'],
];

/**
 * @param options.folder for the programs and what they write
 * @param options.memoryMb of one run
 */
export function createModel(options: {
  guard: Guard;
  spin: string;
  folder: string;
  memoryMb: number;
}): Model {
  const { guard, spin, folder, memoryMb } = options;
  const compiled = new Map<Program, Promise<string>>();
  let source: Promise<unknown> | undefined;
  let runs = 0;

  /** @returns what it has printed */
  async function run(
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const file = join(folder, `output-${(runs += 1)}.txt`);
    const output = openSync(file, 'w');
    const child = guard.spawn(command, args, {
      cwd: folder,
      env: { PATH: process.env['PATH'], ...env },
      ending: ENDING,
      output,
    });
    closeSync(output);
    const { code, signal } = await child.exited;
    const text = readFileSync(file, 'utf8');
    if (code !== 0) throw new Error(`${command} ended with ${code ?? signal}:\n${text.slice(0, 2_000)}`);
    return text;
  }

  async function compile(program: Program): Promise<string> {
    await (source ??= run(spin, ['-a', MODEL]));
    const file = join(folder, program);
    await run('gcc', [...FLAGS[program], `-DMEMLIM=${memoryMb}`, '-o', file, 'pan.c']);
    return file;
  }

  function programOf(program: Program): Promise<string> {
    const found = compiled.get(program) ?? compile(program);
    compiled.set(program, found);
    return found;
  }

  async function explore(program: Program, settings: Settings): Promise<Checked> {
    const args = [...ARGUMENTS[program], '-n', `-m${DEPTH_MAX}`, `-w${TABLE}`];
    const text = await run(await programOf(program), args, variablesOf(settings));
    const [, errors] = /errors: (\d+)/.exec(text) ?? [];
    const [said = ''] = /^pan:1: .*$/m.exec(text) ?? [];
    const violation = errors === '0' ? undefined : ASSERTIONS.find(([part]) => said.includes(part))?.[1];
    const isWhole =
      errors === '0' ? !/not completed|too small|out of memory/.test(text) : violation !== undefined;
    if (!isWhole) throw new Error(`the model was not looked at as a whole:\n${text.slice(0, 2_000)}`);
    return {
      violation,
      states: numberIn(text, /(\S+) states, stored/),
      seconds: numberIn(text, /elapsed time (\S+)/),
    };
  }

  return {
    check: (settings, property = 'safety') => explore(property, settings),
    story: async (settings) => {
      const { violation } = await explore('story', settings);
      if (violation === undefined) return undefined;
      const text = await run(await programOf('story'), ['-r', TRAIL, '-S'], variablesOf(settings));
      return storyOf(text);
    },
  };
}

const numberIn = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1]);

/** All replicas receive deliveries of the job. */
const variablesOf = (settings: Settings): Record<string, string> =>
  Object.fromEntries(
    Object.entries({ writers: 2, ...settings }).map(([name, value]) => [name, String(value)]),
  );

/** What the model prints on its way, with sets of events as `1 and 3`. */
function storyOf(text: string): string[] {
  const lines = text
    .slice(0, text.search(/^(?:pan:|spin:|#processes)/m))
    .trimEnd()
    .split('\n');
  return lines.map((line) =>
    line.trim().replaceAll(/\{(\d+)\}/g, (_set, mask: string) => namesOf(Number(mask))),
  );
}

function namesOf(mask: number): string {
  const names = [1, 2, 3, 4].filter((name) => mask & (1 << (name - 1)));
  return names.length === 0 ? 'none' : names.join(' and ');
}
