// A lock that one process holds and that means nothing once it is gone, however it went. Plain JavaScript for
// any Node from 16, since run.mjs needs it before the right Node is there.

import { spawnSync } from 'node:child_process';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Takes the lock at `path`, unless a living process whose command line contains `mark` holds it.
 * @param {string} path in a folder that exists
 * @param {string} mark tells a holder from a stranger that got its number
 * @returns {{ release: () => void } | { holder: number }}
 */
export function takeLock(path, mark) {
  const mine = `${path}.${process.pid}`;
  // A link appears with its content in one step: nobody ever reads a lock that is half written.
  writeFileSync(mine, String(process.pid));
  try {
    for (;;) {
      if (link(mine, path)) return { release: () => rmSync(path, { force: true }) };
      const holder = Number(read(path));
      if (holder > 0 && isAlive(holder, mark)) return { holder };
      clearAway(path, holder);
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

/** Another one may have cleared it away and locked anew since we looked: then theirs is put back. */
function clearAway(path, holder) {
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
  // Without ps the number must do.
  return status === null || stdout.includes(mark);
}
