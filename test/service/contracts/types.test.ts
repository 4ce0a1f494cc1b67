// What a team has that uses the types for others: every released version of the TypeScript declarations compiles against all
// examples, and the Python module is imported and describes them.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { CONTRACTS } from '../../../scripts/contracts/documents.ts';
import { keptTypes } from '../../../scripts/contracts/kept-types.ts';
import { createFolder } from '../../support/folder.ts';

const TSC = fileURLToPath(new URL('../../../node_modules/.bin/tsc', import.meta.url));
const EXAMPLES = join(CONTRACTS, 'examples/events');

const TSCONFIG = {
  compilerOptions: {
    target: 'es2024',
    module: 'nodenext',
    types: [],
    noEmit: true,
    allowImportingTsExtensions: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noPropertyAccessFromIndexSignature: true,
  },
  include: ['*.ts'],
};

/** The code of a subscriber: it tells the kinds apart, reads fields, and cannot read one that does not exist. */
const CONSUMER = `
export function read(event: ConversionEvent): string {
  if (event.late === true) return event.subject;
  switch (event.type) {
    case 'conversion.job.completed':
      return String(event.data.cost_cents + event.data.output_size_bytes) + event.data.completed_at;
    case 'conversion.job.failed':
      // @ts-expect-error -- there is no such field
      return event.data.error_message + event.data.error_kode;
    case 'conversion.job.progress':
      return event.data.estimated_completion ?? event.time;
  }
}
// @ts-expect-error -- no event is as empty
export const none: ConversionEvent = { type: 'conversion.job.progress', data: { job_id: 'job_1' } };
`;

const examples = () => readdirSync(EXAMPLES).map((name) => readFileSync(join(EXAMPLES, name), 'utf8'));

function consumerOf(types: string): string {
  const events = examples().map(
    (text, index) => `export const event${index}: ConversionEvent = ${text.trim()};`,
  );
  return `import type { ConversionEvent } from '${types}';\n${CONSUMER}${events.join('\n')}\n`;
}

test('every version of the TypeScript types compiles against all examples, under the strictest options', async () => {
  await using folder = await createFolder();
  const versions = ['events.ts', ...keptTypes(CONTRACTS).map((name) => `released/${name}`)];
  expect(versions.length).toBeGreaterThan(1);
  await folder.write('tsconfig.json', JSON.stringify(TSCONFIG));
  await folder.write('package.json', JSON.stringify({ type: 'module' }));
  await Promise.all(
    versions.map((name, index) =>
      folder.write(`consumer-${index}.ts`, consumerOf(join(CONTRACTS, 'types', name))),
    ),
  );

  const { status, stdout } = spawnSync(TSC, ['-p', folder.path('.')], { encoding: 'utf8' });

  expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
});

/** Holds each example against the class of its type: all keys that it must have, and the values of its literals. */
const PYTHON = `
import json, pathlib, sys, typing
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import tallyhook_events as types

def fits(value, form):
    if typing.is_typeddict(form):
        hints = typing.get_type_hints(form)
        return form.__required_keys__ <= value.keys() and all(
            fits(value[key], hint) for key, hint in hints.items() if key in value)
    origin, parts = typing.get_origin(form), typing.get_args(form)
    if origin is typing.Literal:
        return value in parts
    if origin is typing.Union:
        return any(fits(value, part) for part in parts)
    if origin is list:
        return isinstance(value, list) and all(fits(one, parts[0]) for one in value)
    if form is typing.Any:
        return True
    return isinstance(value, (int, float) if form is float else origin or form)

for path in sorted(pathlib.Path(sys.argv[2]).iterdir()):
    event = json.loads(path.read_text("utf-8"))
    print(path.name, sum(fits(event, form) for form in typing.get_args(types.ConversionEvent)))
`;

const python = spawnSync('python3', ['-c', 'from typing import NotRequired'], { encoding: 'utf8' });

test.skipIf(python.status !== 0)(
  'the Python types describe every example, each as one kind of event (needs Python 3.11)',
  () => {
    const { stdout, stderr } = spawnSync('python3', ['-c', PYTHON, join(CONTRACTS, 'types'), EXAMPLES], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(stdout).toBe(
      readdirSync(EXAMPLES)
        .toSorted((one, other) => (one < other ? -1 : 1))
        .map((name) => `${name} 1\n`)
        .join(''),
    );
  },
);
