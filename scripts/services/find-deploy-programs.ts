// Finds the programs that the tests of deploy/ run: proxies, builders of images, what checks a unit. Installs Debian's if it can.

import { spawnSync } from 'node:child_process';
import { onPath } from './debian.ts';
import { findProgram, TRIAL_TIMEOUT_MS } from './find-program.ts';

type Options = Parameters<typeof findProgram>[1];

/** A program, the argument that makes it say its version, and the packages of Debian that bring it. */
type Program = { readonly name: string; readonly trial: string; readonly packages: readonly string[] };

const PROGRAMS: readonly Program[] = [
  { name: 'nginx', trial: '-v', packages: ['nginx-light'] },
  { name: 'haproxy', trial: '-v', packages: ['haproxy'] },
  { name: 'caddy', trial: 'version', packages: ['caddy'] },
  { name: 'buildah', trial: '--version', packages: ['buildah'] },
  { name: 'podman', trial: '--version', packages: ['podman', 'runc'] },
  { name: 'systemd-analyze', trial: '--version', packages: ['systemd'] },
  { name: 'psql', trial: '--version', packages: ['postgresql-client'] },
  { name: 'strace', trial: '-V', packages: ['strace'] },
];

/** For each program: the variable that names it, how to find it, and what is said at the end of a run without it. */
export const DEPLOY_PROGRAMS = PROGRAMS.map((program) => {
  const { name, trial, packages } = program;
  const variable = `TEST_${name.toUpperCase().replace('-', '_')}`;
  return {
    name,
    variable,
    without: `The tests of deploy/ that need ${name} did not run, since there is none here: install it \
(Debian: sudo apt-get install --no-install-recommends ${packages.join(' ')}), or name another by ${variable}=/path/to/${name}.`,
    find: (options: Options) =>
      findProgram(
        {
          variable,
          // Debian has servers in /usr/sbin, which is not on everybody's PATH.
          candidates: () => [...onPath(name), `/usr/sbin/${name}`],
          works: (path) =>
            spawnSync(path, [trial], { stdio: 'ignore', timeout: TRIAL_TIMEOUT_MS }).status === 0,
          packages,
          news: `${name} is missing: installing Debian’s with apt-get (once; some seconds)`,
        },
        options,
      ),
  };
});
