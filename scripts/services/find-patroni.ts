// Finds what a Postgres cluster of Patroni's needs: Patroni itself, an etcd, and the programs of a Postgres server that it calls. Installs
// Debian's if it can.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { onPath } from './debian.ts';
import { findProgram, TRIAL_TIMEOUT_MS } from './find-program.ts';

type Options = Parameters<typeof findProgram>[1];

/** Debian has each version's programs in a folder of its own, and none of the server's on the PATH. */
const POSTGRES = '/usr/lib/postgresql';

/** pg_rewind, beside which all others are: our own Postgres comes without it. The newest version first. */
function rewindPrograms(): string[] {
  return [
    ...versionsIn(POSTGRES).map((version) => join(POSTGRES, version, 'bin/pg_rewind')),
    ...onPath('pg_rewind'),
  ];
}

function versionsIn(folder: string): string[] {
  try {
    return readdirSync(folder).toSorted((a, b) => Number(b) - Number(a));
  } catch {
    return []; // there is none
  }
}

const PROGRAMS = [
  { name: 'patroni', candidates: () => onPath('patroni'), packages: ['patroni'] },
  { name: 'etcd', candidates: () => onPath('etcd'), packages: ['etcd-server'] },
  { name: 'pg_rewind', candidates: rewindPrograms, packages: ['postgresql'] },
] as const;

/** For each program: the variable that names it, how to find it, and what is said at the end of a run without it. */
export const PATRONI_PROGRAMS = PROGRAMS.map(({ name, candidates, packages }) => {
  const variable = `TEST_${name.toUpperCase()}`;
  return {
    name,
    variable,
    without: `The tests of a Postgres cluster did not run, since there is no ${name} here: install it \
(Debian: sudo apt-get install --no-install-recommends ${packages.join(' ')}), or name another by ${variable}=/path/to/${name}.`,
    find: (options: Options) =>
      findProgram(
        {
          variable,
          candidates,
          works: (path) =>
            spawnSync(path, ['--version'], { stdio: 'ignore', timeout: TRIAL_TIMEOUT_MS }).status === 0,
          packages,
          news: `${name} is missing: installing Debian’s ${packages.join(' ')} with apt-get (once; some seconds)`,
        },
        options,
      ),
  };
});
