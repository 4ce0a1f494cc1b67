// A systemd of a test's own (systemd.sh), on which the commands of a page run as on a fresh machine: what they write into /etc, /opt
// and /usr/local is seen in there alone, and is gone after the test.

import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lastLines, makeThrowAwayFolder } from '../../scripts/services/folders.ts';
import { createGuard } from '../../scripts/services/guard.ts';
import { startProgram } from './replica.ts';
import { until } from './until.ts';

const SCRIPT = fileURLToPath(new URL('systemd.sh', import.meta.url));
const BOOT_MS = 20_000;

/** All namespaces but the network's: services are reached on loopback. */
const NAMESPACES = ['--pid', '--fork', '--mount', '--uts', '--ipc', '--cgroup', '--mount-proc'];

export type Systemd = AsyncDisposable & {
  /** Runs lines of a shell in there, as root. */
  readonly shell: (
    lines: string,
    options?: { cwd?: string; env?: Record<string, string> },
  ) => Promise<{ code: number | null; output: string }>;
};

/** Where the machine has cgroups of version 2. */
const cgroups = (): string | undefined =>
  /^\S+ \S+ \S+ \/ (\S+) .* - cgroup2 /m.exec(readFileSync('/proc/self/mountinfo', 'utf8'))?.[1];

/** Only root may boot one, and only where a container does not forbid it. */
export function maySystemdRun(): boolean {
  return (
    process.getuid?.() === 0 &&
    Boolean(process.env['TEST_SYSTEMD_ANALYZE']) &&
    existsSync('/usr/lib/systemd/systemd') &&
    cgroups() !== undefined &&
    /\boverlay$/m.test(readFileSync('/proc/filesystems', 'utf8')) &&
    spawnSync('unshare', [...NAMESPACES, 'true'], { stdio: 'ignore' }).status === 0
  );
}

export async function startSystemd(): Promise<Systemd> {
  const guard = createGuard();
  const folder = makeThrowAwayFolder(guard);
  const cgroup = join(cgroups() as string, folder.split('/').at(-1) as string);
  mkdirSync(cgroup);
  const [inside, log] = [join(folder, 'root'), join(folder, 'log')];
  mkdirSync(inside);
  const output = openSync(log, 'a', 0o600);
  const booted = guard.spawn('/bin/sh', [SCRIPT, inside, cgroup], {
    cwd: '/',
    env: { PATH: process.env['PATH'] },
    ending: { signal: 'SIGKILL', graceMs: 1_000 },
    output,
  });
  closeSync(output);
  const end = async () => {
    await guard.close();
    await until('its processes are gone', () => removed(cgroup), { limitMs: 10_000 });
  };
  try {
    const first = await until('it has a first process', () => childOf(booted.pid), { limitMs: BOOT_MS });
    const enter = (
      program: string,
      args: readonly string[],
      options: Parameters<typeof startProgram>[2] = {},
    ) =>
      startProgram(
        'nsenter',
        ['-t', first, '--mount', '--uts', '--ipc', '--pid', '--cgroup', '--', program, ...args],
        options,
      );
    const shell: Systemd['shell'] = async (lines, { cwd = '/', env = {} } = {}) => {
      await using command = enter('sh', ['-ec', `cd "$0"; exec 2>&1\n${lines}`, cwd], { env });
      return { code: (await command.exited).code, output: command.stdout() + command.stderr() };
    };
    await until(
      'systemd answers',
      async () => {
        if (booted.hasExited()) throw new Error(`systemd did not start:\n${lastLines(log, 10)}`);
        return (await shell('systemctl is-active multi-user.target')).code === 0 ? true : undefined;
      },
      { limitMs: BOOT_MS },
    );
    return { shell, [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}

function childOf(pid: number): string | undefined {
  return /^\d+/.exec(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'))?.[0];
}

/** Removes the folders of a group that has no process any more. */
function removed(cgroup: string): true {
  const inner = readdirSync(cgroup, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const { name } of inner) removed(join(cgroup, name));
  rmdirSync(cgroup);
  return true;
}
