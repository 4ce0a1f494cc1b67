// Installs Debian packages for their programs, if we have the rights, or unpacks them into a folder of ours. Leaves no system-wide
// service running that did not run before.

import { spawnSync } from 'node:child_process';
import { accessSync, closeSync, constants, openSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { lastLines } from './folders.ts';
import type { Guard } from './guard.ts';

// One script, since it runs under sudo as a whole. policy-rc.d is Debian's own way to keep an installation from starting
// services. The script removes ours however it ends.
const INSTALL = readFileSync(new URL('install-packages.sh', import.meta.url), 'utf8');

const UNPACK = readFileSync(new URL('unpack-packages.sh', import.meta.url), 'utf8');

const LOG_LINES = 12;
/** Does not ask for a password. */
const SUDO_ARGS = ['-n'];

/** With apt-get, as root or by sudo without a password. */
export function mayInstall(): boolean {
  const isAllowed = isRoot() || spawnSync('sudo', [...SUDO_ARGS, 'true'], { stdio: 'ignore' }).status === 0;
  return isAllowed && isOnPath('apt-get');
}

type Output = { readonly guard: Guard; readonly logFile: string };

/** The installation's output goes to `logFile`. @throws Error with the end of that */
export async function installPackages(names: readonly string[], output: Output): Promise<void> {
  const script = ['-c', INSTALL, 'install', ...names];
  const [command, args] = isRoot() ? ['/bin/sh', script] : ['sudo', [...SUDO_ARGS, '/bin/sh', ...script]];
  await runScript(command, args, `apt-get could not install ${names.join(' ')}`, output);
}

/** For programs that run wherever they are. `folder` is made, and has `usr/bin` then. @throws Error with the end of the output */
export async function unpackPackages(
  names: readonly string[],
  folder: string,
  output: Output,
): Promise<void> {
  const script = ['-c', UNPACK, 'unpack', folder, ...names];
  await runScript('/bin/sh', script, `${names.join(' ')} could not be unpacked`, output);
}

async function runScript(
  command: string,
  args: readonly string[],
  failure: string,
  { guard, logFile }: Output,
): Promise<void> {
  const output = openSync(logFile, 'w', 0o600);
  const installer = guard.spawn(command, args, {
    cwd: '/',
    env: process.env,
    // Much time, since a package manager that is killed leaves packages half installed.
    ending: { signal: 'SIGTERM', graceMs: 120_000 },
    output,
  });
  closeSync(output);
  const { code } = await installer.exited;
  if (code !== 0) throw new Error(`${failure}:\n${lastLines(logFile, LOG_LINES)}`);
}

export function isOnPath(program: string): boolean {
  return pathFolders().some((folder) => isProgram(join(folder, program)));
}

/** Where a program of this name would be, in the order of the PATH. */
export const onPath = (name: string): string[] => pathFolders().map((folder) => join(folder, name));

export function pathFolders(): string[] {
  return (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
}

export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const isRoot = () => process.getuid?.() === 0;
