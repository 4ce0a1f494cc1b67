// Runs the sandbox as its own process, as a team would, with its file server beside it, and waits until both answer.

import { execFile } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { SandboxEngine } from './services/find-ffmpeg.ts';
import { lastLines } from './services/folders.ts';
import type { Guard, Guarded } from './services/guard.ts';

export type Sandbox = Guarded & {
  /** The interface's `{base_url}`. */
  readonly baseUrl: string;
  readonly filesUrl: string;
  /** For its API. */
  readonly token: string;
  /** The end of what this run of it has logged. */
  readonly lastLog: () => string;
};

export type SandboxOptions = {
  /** Holds `sandbox.db`, `sandbox-files` and `sandbox-token`. As `.local` it is where the commands look for them. */
  readonly folder: string;
  readonly logFile: string;
  readonly engine: SandboxEngine;
  /** What it signs webhooks with: one that the relay knows. */
  readonly signingSecret: string;
  readonly port: number;
  readonly filesPort: number;
};

export const CLIP = 'sample.mp4';
export const CORRUPT_CLIP = 'corrupt.mp4';
export const TOKEN_FILE = 'sandbox-token';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
/** It makes its clips first. */
const READY_TIMEOUT_MS = 60_000;
const COMMAND_TIMEOUT_MS = 20_000;
const POLL_MS = 50;
const END_MS = 15_000;
const LOG_LINES = 15;

const runFile = promisify(execFile);

/** Resolves when it is ready. @throws Error with the end of its log */
export async function startSandbox(guard: Guard, options: SandboxOptions): Promise<Sandbox> {
  const { folder, logFile, engine, port, filesPort } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const data = join(folder, 'sandbox.db');
  const token = await prepareAccount(data, options);
  const output = openSync(logFile, 'a', 0o600);
  const { size: logStart } = fstatSync(output);
  const lastLog = () => lastLines(logFile, LOG_LINES, logStart);
  const ports = ['--port', String(port), '--files-port', String(filesPort)];
  const files = ['--data', data, '--files', join(folder, 'sandbox-files')];
  const sandbox = guard.spawn(
    process.execPath,
    [MAIN, 'sandbox', 'serve', '--allow-local', '--engine', engine, ...ports, ...files],
    { cwd: folder, env: environment(), ending: { signal: 'SIGTERM', graceMs: END_MS }, output },
  );
  closeSync(output);
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  const filesUrl = `http://127.0.0.1:${filesPort}`;
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  while (!(await isThere(`${filesUrl}/${CORRUPT_CLIP}`)) || !(await isThere(`${baseUrl}/me`, token))) {
    if (sandbox.hasExited()) throw new Error(`the sandbox ended:\n${lastLog()}`);
    if (performance.now() > deadlineMs) throw new Error(`the sandbox is not ready:\n${lastLog()}`);
    await sleep(POLL_MS);
  }
  return { ...sandbox, baseUrl, filesUrl, token, lastLog };
}

/** What a team does in the service's dashboard. The token is kept beside the data, for the next run. @returns it */
async function prepareAccount(
  data: string,
  { folder, signingSecret }: Pick<SandboxOptions, 'folder' | 'signingSecret'>,
): Promise<string> {
  const isNew = !existsSync(data);
  const secretFile = join(folder, 'sandbox-secret');
  writeForOwner(secretFile, signingSecret);
  try {
    await command(folder, ['account', 'set', '--data', data, '--secret-file', secretFile]);
  } finally {
    rmSync(secretFile);
  }
  const tokenFile = join(folder, TOKEN_FILE);
  // One of data that somebody has removed since is worth nothing.
  if (!isNew && existsSync(tokenFile)) return readFileSync(tokenFile, 'utf8').trim();
  const token = await command(folder, ['tokens', 'create', '--data', data, '--name', 'local run']);
  writeForOwner(tokenFile, `${token}\n`);
  return token;
}

async function command(folder: string, args: readonly string[]): Promise<string> {
  const { stdout } = await runFile(process.execPath, [MAIN, 'sandbox', ...args], {
    cwd: folder,
    env: environment(),
    timeout: COMMAND_TIMEOUT_MS,
  });
  return stdout.trim();
}

function writeForOwner(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
}

function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], NODE_ENV: 'production' };
}

async function isThere(url: string, token?: string): Promise<boolean> {
  try {
    const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(2_000) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
