// Finds the programs that the tests of deploy/ run: proxies, builders of images, what checks a unit, Prometheus. Installs Debian's
// if it can.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onPath } from './debian.ts';
import { findProgram, TRIAL_TIMEOUT_MS } from './find-program.ts';

type Options = Parameters<typeof findProgram>[1];

type Program = {
  readonly name: string;
  /** The arguments that make it say its version. */
  readonly trial: string;
  /** Those of Debian that bring it, if they are new enough. */
  readonly packages: readonly string[];
  /** No test of a short run needs it, so it is not installed for one. */
  readonly isOnlyInAll?: true;
  /** It runs wherever it is. So it is not installed, which brings more and needs rights, but unpacked. */
  readonly isUnpacked?: true;
};

const PROGRAMS: readonly Program[] = [
  { name: 'nginx', trial: '-v', packages: ['nginx-light'] },
  { name: 'haproxy', trial: '-v', packages: ['haproxy'] },
  { name: 'caddy', trial: 'version', packages: ['caddy'], isOnlyInAll: true },
  { name: 'buildah', trial: '--version', packages: ['buildah'], isOnlyInAll: true },
  { name: 'podman', trial: '--version', packages: ['podman', 'runc'], isOnlyInAll: true },
  { name: 'docker-compose', trial: 'version', packages: ['docker-compose'], isOnlyInAll: true },
  { name: 'systemd-analyze', trial: '--version', packages: ['systemd'] },
  { name: 'psql', trial: '--version', packages: ['postgresql-client'], isOnlyInAll: true },
  { name: 'strace', trial: '-V', packages: ['strace'], isOnlyInAll: true },
  { name: 'prometheus', trial: '--version', packages: ['prometheus'], isUnpacked: true },
  { name: 'promtool', trial: '--version', packages: ['prometheus'], isUnpacked: true },
  { name: 'kubectl', trial: 'version --client', packages: [] },
];

const UNPACKED = fileURLToPath(new URL('../../node_modules/.cache/tallyhook-debian/', import.meta.url));

const ofDebian = (packages: readonly string[]) =>
  packages.length === 0
    ? ''
    : ` (Debian: sudo apt-get install --no-install-recommends ${packages.join(' ')})`;

/** For each program: the variable that names it, how to find it, and what is said at the end of a run without it. */
export const DEPLOY_PROGRAMS = PROGRAMS.map((program) => {
  const { name, trial, packages, isOnlyInAll = false, isUnpacked = false } = program;
  const unpackInto = isUnpacked ? `${UNPACKED}${packages.join('-')}` : undefined;
  const variable = `TEST_${name.toUpperCase().replace('-', '_')}`;
  return {
    name,
    variable,
    isOnlyInAll,
    without: `The tests of deploy/ that need ${name} did not run, since there is none here: install it${ofDebian(packages)}, \
or name another by ${variable}=/path/to/${name}.`,
    find: (options: Options) =>
      findProgram(
        {
          variable,
          // Debian has servers in /usr/sbin, which is not on everybody's PATH.
          candidates: () => [
            ...onPath(name),
            `/usr/sbin/${name}`,
            ...(unpackInto === undefined ? [] : [`${unpackInto}/usr/bin/${name}`]),
          ],
          works: (path) =>
            spawnSync(path, trial.split(' '), { stdio: 'ignore', timeout: TRIAL_TIMEOUT_MS }).status === 0,
          packages,
          unpackInto,
          news: `${name} is missing: getting Debian’s with apt-get (once; some seconds)`,
        },
        options,
      ),
  };
});
