// What each test file costs, for `npm test -- --profile`: vitest runs this before each file. Files share a worker, so it takes the
// difference between the file's beginning and its end. The kernel counts a child once it is waited for, and with it the children
// that it waited for: a process that outlives its file counts for a later one, or for none.

import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, expect } from 'vitest';
import { type FileProfile, secondsOfProcess } from '../../scripts/profile.ts';
import { ROOT } from '../../scripts/relay.ts';
import { STARTS } from './starts.ts';

/** Of Node: each process that is started, though not those of `spawnSync`. */
const SPAWNS = 'tracing:child_process.spawn:start';

const seconds = () => secondsOfProcess(readFileSync('/proc/self/stat', 'utf8'));

/** Counts until it is disposed of. */
function countStarts() {
  const counts = { services: 0, databases: 0, processes: 0, browsers: 0 };
  const onProcess = (event: unknown) => {
    const { process: child } = event as { process: { spawnfile: string } };
    if (child.spawnfile === process.env['TEST_CHROMIUM']) counts.browsers += 1;
    else counts.processes += 1;
  };
  const listeners = [
    [STARTS.service, () => void (counts.services += 1)],
    [STARTS.database, () => void (counts.databases += 1)],
    [SPAWNS, onProcess],
  ] as const;
  for (const [name, listener] of listeners) subscribe(name, listener);
  return {
    counts,
    [Symbol.dispose]: () => {
      for (const [name, listener] of listeners) unsubscribe(name, listener);
    },
  };
}

const profile = process.env['TEST_PROFILE'];

if (profile) {
  const before = seconds();
  const startMs = performance.now();
  const starts = countStarts();
  // What is registered first runs last.
  afterAll(() => {
    starts[Symbol.dispose]();
    const after = seconds();
    const file: FileProfile = {
      file: relative(ROOT, expect.getState().testPath ?? ''),
      own: after.own - before.own,
      children: after.children - before.children,
      taken: (performance.now() - startMs) / 1_000,
      ...starts.counts,
    };
    appendFileSync(profile, `${JSON.stringify(file)}\n`);
  });
}
