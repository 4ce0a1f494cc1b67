// `npm run model`: checks the protocol of the relay, as docs/relay.md tells it, by spin. Exit code 0 if all promises are kept in
// each instance and one breaks without each rule.

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Instance, INSTANCES, SAVING, SWITCHED_OFF, type SwitchedOff } from '../test/model/instances.ts';
import { type Checked, createModel, type Model, type Settings } from '../test/model/spin.ts';
import { runGuarded } from './guarded.ts';
import { complain, paint, say } from './output.ts';
import { makeThrowAwayFolder } from './services/folders.ts';
import { findSpin, WITHOUT_SPIN } from './services/find-spin.ts';
import type { Guard } from './services/guard.ts';

type Options = {
  readonly instances: readonly Instance[];
  readonly rules: readonly SwitchedOff[];
  /** Without which rule a story is told, instead of all that. */
  readonly without: SwitchedOff | undefined;
  readonly memoryMb: number;
  readonly isList: boolean;
};

/** Enough for each instance. */
const MEMORY_MB = '4000';

/** @throws Error on an unknown option, a name that no instance has, or a rule that the model does not switch off */
function readOptions(): Options {
  const { values } = parseArgs({
    args: process.argv.slice(2),
    options: {
      instances: { type: 'boolean', default: false },
      rules: { type: 'boolean', default: false },
      without: { type: 'string' },
      only: { type: 'string' },
      memory: { type: 'string', default: MEMORY_MB },
      list: { type: 'boolean', default: false },
    },
  });
  const { only = '', without } = values;
  const instances = INSTANCES.filter(({ name }) => name.includes(only));
  if (instances.length === 0) throw new Error(`no instance has "${only}" in its name`);
  const memoryMb = Number(values.memory);
  if (!Number.isInteger(memoryMb) || memoryMb < 1)
    throw new Error('--memory takes a whole number of megabytes');
  return {
    instances: values.rules ? [] : instances,
    rules: values.instances || values.only !== undefined ? [] : SWITCHED_OFF,
    without: without === undefined ? undefined : ruleNamed(without),
    memoryMb,
    isList: values.list,
  };
}

function ruleNamed(text: string): SwitchedOff {
  const told = SWITCHED_OFF.filter(({ property }) => property === 'safety');
  const found = told.find(({ rule }) => String(rule) === text);
  if (found !== undefined) return found;
  throw new Error(`--without takes the number of a rule: ${told.map(({ rule }) => rule).join(', ')}`);
}

async function main(guard: Guard, options: Options): Promise<number> {
  if (options.isList) return list(options);
  const folder = makeThrowAwayFolder(guard);
  const spin = await findSpin({ guard, logFile: join(folder, 'install-spin.log'), log: say });
  if (spin === undefined) {
    complain(WITHOUT_SPIN);
    return 1;
  }
  const model = createModel({ guard, spin, folder, memoryMb: options.memoryMb });
  return options.without === undefined ? checkAll(model, options) : tell(model, options.without);
}

function list({ instances, rules }: Options): number {
  for (const { name, settings } of instances) say(`${name.padEnd(52)} ${wordsOf(settings)}`);
  for (const { rule, breaks, settings } of rules)
    say(`without R${rule} a promise breaks: ${breaks}`.padEnd(52) + ` ${wordsOf(settings)}`);
  return 0;
}

async function checkAll(model: Model, { instances, rules }: Options): Promise<number> {
  let failures = 0;
  const judge = (what: string, { violation, states, seconds }: Checked, wanted: string | undefined) => {
    const isAsWanted = violation === wanted;
    if (!isAsWanted) failures += 1;
    const figures = `${states.toLocaleString('en').padStart(12)} states ${seconds.toFixed(1).padStart(7)} s`;
    say(`${what.padEnd(56)} ${figures}  ${paint(isAsWanted ? 'green' : 'red', violation ?? 'kept')}`);
  };
  for (const { name, settings, property } of instances)
    judge(name, await model.check(settings, property), undefined);
  for (const { rule, settings, property, breaks } of rules)
    judge(
      `without R${rule}: ${wordsOf(settings)}`,
      await model.check({ ...settings, without: rule }, property),
      breaks,
    );
  for (const rule of rules.length === 0 ? [] : SAVING)
    for (const { name, settings } of INSTANCES.filter(({ property }) => property === 'safety'))
      judge(`without R${rule}: ${name}`, await model.check({ ...settings, without: rule }), undefined);
  say(
    failures === 0 ? 'All is as docs/relay.md tells it.' : `${failures} are not as docs/relay.md tells it.`,
  );
  return failures === 0 ? 0 : 1;
}

async function tell(model: Model, { rule, settings }: SwitchedOff): Promise<number> {
  const story = await model.story({ ...settings, without: rule });
  for (const line of story ?? [`nothing breaks without R${rule}`]) say(line);
  return story === undefined ? 1 : 0;
}

const wordsOf = (settings: Settings): string =>
  Object.entries(settings)
    .map(([name, value]) => `${value} ${name}`)
    .join(', ');

process.exit(await runGuarded('npm run model', readOptions, main));
