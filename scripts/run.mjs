// Runs scripts/<name>.ts with the Node from node_modules, and installs the packages first if they are missing or stale. Plain
// JavaScript for any Node from 16, since nothing else may be installed yet.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { takeLock } from './lock.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const packages = join(root, 'node_modules');
const local = join(root, '.local');
const programs = join(packages, '.bin');
const stamp = join(packages, '.tallyhook-stamp');
const SYSTEM = `${process.platform} ${process.arch}\n`;
const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGTERM'];

/** On Ctrl-C the terminal and npm may both send us the signal: the child gets it once. */
const SAME_SIGNAL_MS = 500;
/** The next `npm ci` cleans up what a killed one leaves. */
const NPM_GRACE_MS = 1_000;
const LOCK_POLL_MS = 200;
const PARENT_POLL_MS = 1_000;

const [name = '', ...args] = process.argv.slice(2);
const script = join(root, 'scripts', `${name}.ts`);
const usage = join(root, 'scripts', 'usage', `${name}.txt`);

if (!/^[a-z-]+$/.test(name) || !existsSync(script)) {
  complain(
    'usage: node scripts/run.mjs <start|demo|check|check-fast|bench|torture|alerts|soak|model|pictures|contracts|manifests|pack|image> [arguments]',
  );
  process.exitCode = 2;
} else if (args.includes('--help') || args.includes('-h')) {
  // Before the packages are installed, which may take a minute.
  process.stdout.write(readText(usage));
} else {
  process.exitCode = (await preparePackages()) || (await run(nodeProgram(), [script, ...args]));
  // An open terminal or pipe would keep this process alive.
  process.exit();
}

/** @returns {Promise<number>} an exit code: 0 if the packages are as package-lock.json has them */
async function preparePackages() {
  if (!packagesFit()) {
    const lock = await waitForLock();
    try {
      const code = packagesFit() ? 0 : await install();
      if (code !== 0) return code;
      writeFileSync(stamp, fingerprint());
    } finally {
      lock.release();
    }
  }
  makeCommand();
  if (nodeProgram() !== undefined) return 0;
  complain(
    'npm installed no Node 24, perhaps since it is set to run no install scripts. Try: npm rebuild node',
  );
  return 1;
}

function packagesFit() {
  const found = readText(stamp);
  if (found === fingerprint()) return true;
  // The packages were installed on another system, for example through a folder that a container shares.
  if (found !== '' && !found.endsWith(SYSTEM)) return false;
  if (!isInstalledByHand()) return false;
  writeFileSync(stamp, fingerprint());
  return true;
}

function fingerprint() {
  const lockfile = readText(join(root, 'package-lock.json'));
  return `${createHash('sha256').update(lockfile).digest('hex')} ${SYSTEM}`;
}

/** Whether somebody ran npm themselves, by npm's own record of what it installed. Their packages are kept. */
function isInstalledByHand() {
  const installed = JSON.parse(readText(join(packages, '.package-lock.json')) || '{}').packages;
  const wanted = JSON.parse(readText(join(root, 'package-lock.json'))).packages;
  if (installed === undefined) return false;
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    if (path === '') return true;
    return installed[path] === undefined ? optional === true : installed[path].version === version;
  });
}

async function waitForLock() {
  mkdirSync(local, { recursive: true });
  for (let waits = 0; ; waits++) {
    const lock = takeLock(join(local, 'npm-ci.lock'), 'run.mjs');
    if ('release' in lock) return lock;
    if (waits === 0) complain(`waiting for another npm ci in this folder (process ${lock.holder})`);
    await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS));
  }
}

async function install() {
  complain('installing the packages (npm ci; only when they changed) …');
  const startedMs = Date.now();
  const { npm_execpath: npm = '' } = process.env;
  const [command, ...prefix] = basename(npm) === 'npm-cli.js' ? [process.execPath, npm] : ['npm'];
  let output = '';
  // The Node that we need is a devDependency, which NODE_ENV=production would leave out.
  const code = await run(command, [...prefix, 'ci', '--include=dev', '--no-audit', '--no-fund'], (text) => {
    output += text;
  });
  if (code === 0) complain(`packages installed (${Math.round((Date.now() - startedMs) / 1_000)} s)`);
  else if (code < 128) complain(`${output}\nnpm ci failed (exit code ${code})`);
  return code;
}

/** The command, at the place where an installed package has it. It finds its own Node. */
function makeCommand() {
  const command = join(programs, 'tallyhook');
  if (existsSync(command)) return;
  const text = '#!/bin/sh\nhere=$(dirname "$0")\nexec "$here/node" "$here/../../src/main.ts" "$@"\n';
  writeFileSync(command, text, { mode: 0o755 });
}

function nodeProgram() {
  const brought = join(programs, 'node');
  if (existsSync(brought)) return brought;
  return Number(process.versions.node.split('.')[0]) >= 24 ? process.execPath : undefined;
}

/**
 * Runs the command and resolves with its exit code, or 128 plus the number of the signal that ended it. The child is in a
 * process group of its own, so that only we send it a Ctrl-C. If we are killed, it notices by the closed channel.
 */
function run(command, commandArgs, onOutput) {
  return new Promise((resolve) => {
    const child = spawn(command, commandArgs, {
      cwd: onOutput ? root : process.cwd(),
      detached: true,
      env: { ...process.env, PATH: `${programs}${delimiter}${process.env.PATH || ''}` },
      stdio: onOutput ? ['ignore', 'pipe', 'pipe'] : ['inherit', 'inherit', 'inherit', 'ipc'],
    });
    if (onOutput) for (const stream of [child.stdout, child.stderr]) stream.on('data', onOutput);
    const passing = passOnSignals((signal) => (onOutput ? endGroup(child.pid, signal) : child.kill(signal)));
    child.on('error', (error) => {
      complain(`cannot run ${command}: ${error.message}`);
      passing.stop();
      resolve(127);
    });
    child.on('exit', (code, signal) => {
      passing.stop();
      // npm exits with 1 when it was interrupted, or killed after the grace time.
      const ended = onOutput && code !== 0 ? passing.last() || signal : signal;
      resolve(ended ? 128 + constants.signals[ended] : code);
    });
  });
}

/** An interrupted npm cleans up for many seconds, and the processes that it runs may not get the signal. */
function endGroup(pid, signal) {
  const send = (each) => {
    try {
      process.kill(-pid, each);
    } catch {
      // It ended at this moment.
    }
  };
  send(signal);
  setTimeout(send, NPM_GRACE_MS, 'SIGKILL').unref();
}

function passOnSignals(send) {
  const lastMs = new Map();
  let last;
  const onSignal = (signal) => {
    const nowMs = Date.now();
    if (nowMs - (lastMs.get(signal) || 0) > SAME_SIGNAL_MS) send(signal);
    lastMs.set(signal, nowMs);
    last = signal;
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  // A killed npm cannot pass its signal on: so watch for its end.
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.env.npm_lifecycle_event && process.ppid !== parent) onSignal('SIGTERM');
  }, PARENT_POLL_MS);
  const stop = () => {
    clearInterval(watch);
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
  return { stop, last: () => last };
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function complain(line) {
  process.stderr.write(`${line}\n`);
}
