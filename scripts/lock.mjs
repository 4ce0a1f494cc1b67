// A lock file of one process, which is void once that process is gone, however it ended. Plain JavaScript for any Node from
// 16, since run.mjs needs it before the right Node is installed.

import { spawnSync } from 'node:child_process';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Takes the lock at `path`, unless it belongs to a running process whose command line contains `mark`.
 * @param {string} path in a folder that exists
 * @param {string} mark tells the lock's holder from another process that got the same number later
 * @returns {{ release: () => void } | { holder: number }}
 */
export function takeLock(path, mark) {
  const mine = `${path}.${process.pid}`;
  // A link appears with its content in one step, so nobody reads a lock that is half written.
  writeFileSync(mine, String(process.pid));
  try {
    for (;;) {
      if (link(mine, path)) return { release: () => rmSync(path, { force: true }) };
      const holder = Number(read(path));
      if (holder > 0 && isAlive(holder, mark)) return { holder };
      removeStale(path, holder);
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

/** Another process may have removed the stale lock and taken it since we read it: then that lock is put back. */
function removeStale(path, holder) {
  const aside = `${path}.${process.pid}.stale`;
  try {
    renameSync(path, aside);
  } catch {
    return;
  }
  if (Number(read(aside)) !== holder) link(aside, path);
  rmSync(aside, { force: true });
}

function link(from, to) {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function isAlive(pid, mark) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error.code === 'ESRCH') return false;
  }
  const { status, stdout } = spawnSync('ps', ['-p', String(pid), '-o', 'args='], { encoding: 'utf8' });
  // Without ps, decide by the process number alone.
  return status === null || stdout.includes(mark);
}
