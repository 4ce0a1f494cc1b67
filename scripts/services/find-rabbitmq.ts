// Finds RabbitMQ's own scripts on this machine. Where they are missing, installs Debian's package if we may, and
// otherwise says exactly what to do. Never leaves a system-wide broker running that was not there before.

import { spawnSync } from 'node:child_process';
import { accessSync, closeSync, constants, existsSync, openSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { Guard } from './guard.ts';

// Debian's and Fedora's package first: what they put on the PATH is a wrapper that insists on its own account.
// Homebrew's folder is often not on the PATH.
const FOLDERS = ['/usr/lib/rabbitmq/bin', '/opt/homebrew/sbin', '/usr/local/sbin'];

const WHAT_TO_DO = `RabbitMQ is missing, and it cannot be installed from here. Any one of these will do:
  Debian, Ubuntu   sudo apt-get install --no-install-recommends rabbitmq-server
  macOS            brew install rabbitmq
  Docker           docker run --rm -p 127.0.0.1:5672:5672 rabbitmq:4
                   and then, in another terminal, AMQP_URL=amqp://guest:guest@127.0.0.1:5672 npm start`;

// One script, since it runs as a whole under sudo. policy-rc.d is Debian's own way to say that installing a
// package shall start no service; ours is removed on every way out.
const INSTALL = readFileSync(new URL('install-rabbitmq.sh', import.meta.url), 'utf8');

/** The folder with rabbitmq-server and rabbitmqctl. `logFile` gets what the installation prints. */
export async function findRabbitmq(options: {
  guard: Guard;
  logFile: string;
  log: (line: string) => void;
}): Promise<string> {
  const found = installedFolder();
  if (found !== undefined) return found;
  const asRoot = waysToRoot();
  if (asRoot === undefined || !isOnPath('apt-get')) throw new Error(WHAT_TO_DO);
  options.log('RabbitMQ is missing: installing Debian’s rabbitmq-server with apt-get (once; a minute or so)');
  await install(asRoot, options);
  const installed = installedFolder();
  if (installed === undefined) throw new Error(WHAT_TO_DO);
  return installed;
}

function installedFolder(): string | undefined {
  const onPath = (process.env['PATH'] ?? '').split(delimiter);
  return [...FOLDERS, ...onPath].find(
    (folder) => isProgram(join(folder, 'rabbitmq-server')) && isProgram(join(folder, 'rabbitmqctl')),
  );
}

function waysToRoot(): string[] | undefined {
  if (process.getuid?.() === 0) return [];
  const { status } = spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' });
  return status === 0 ? ['sudo', '-n'] : undefined;
}

async function install(
  asRoot: string[],
  { guard, logFile }: { guard: Guard; logFile: string },
): Promise<void> {
  const output = openSync(logFile, 'w', 0o600);
  const [command, ...args] = [...asRoot, '/bin/sh', '-c', INSTALL];
  if (command === undefined) return;
  const installer = guard.spawn(command, args, {
    cwd: '/',
    env: process.env,
    // A package manager that is killed half-way leaves a mess: it gets its time.
    ending: { signal: 'SIGTERM', graceMs: 120_000 },
    output,
  });
  closeSync(output);
  const { code } = await installer.exited;
  if (code === 0) return;
  const lines = existsSync(logFile) ? readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-12) : [];
  throw new Error(`apt-get could not install RabbitMQ:\n  ${lines.join('\n  ')}\n\n${WHAT_TO_DO}`);
}

function isOnPath(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => isProgram(join(folder, program)));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return dirname(path) !== '.';
  } catch {
    return false;
  }
}
