// Runs the sandbox and its file server in a process of their own, as a team would, and waits until both answer.

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CORRUPT_CLIP } from '../src/cli/sandbox-clips.ts';
import { MAIN, type Program, startProgram } from './program.ts';
import type { SandboxEngine } from './services/find-ffmpeg.ts';
import type { Guard } from './services/guard.ts';

export type Sandbox = Program & {
  /** The interface's `{base_url}`. */
  readonly baseUrl: string;
  readonly filesUrl: string;
  /** For its API. */
  readonly token: string;
};

type SandboxOptions = {
  /** For `sandbox.db`, `sandbox-files` and `sandbox-token`. The commands look for them in `.local`. */
  readonly folder: string;
  readonly logFile: string;
  readonly engine: SandboxEngine;
  /** It signs webhooks with this; the relay has to know it. */
  readonly signingSecret: string;
  readonly port: number;
  readonly filesPort: number;
};

export const TOKEN_FILE = 'sandbox-token';

/** It generates its clips first. */
const READY_TIMEOUT_MS = 60_000;
const COMMAND_TIMEOUT_MS = 20_000;
const END_MS = 15_000;

const runFile = promisify(execFile);

/** Resolves when it is ready. @throws Error with the end of its log */
export async function startSandbox(guard: Guard, options: SandboxOptions): Promise<Sandbox> {
  const { folder, logFile, engine, port, filesPort } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const data = join(folder, 'sandbox.db');
  const token = await prepareAccount(data, options);
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  const filesUrl = `http://127.0.0.1:${filesPort}`;
  const ports = ['--port', String(port), '--files-port', String(filesPort)];
  const files = ['--data', data, '--files', join(folder, 'sandbox-files')];
  const program = await startProgram(guard, {
    name: 'sandbox',
    args: ['sandbox', 'serve', '--allow-local', '--engine', engine, ...ports, ...files],
    cwd: folder,
    env: environment(),
    logFile,
    isReady: async () =>
      (await isThere(`${filesUrl}/${CORRUPT_CLIP}`)) && (await isThere(`${baseUrl}/me`, token)),
    readyTimeoutMs: READY_TIMEOUT_MS,
    endMs: END_MS,
  });
  return { ...program, baseUrl, filesUrl, token };
}

/** Does what a team does in the service's dashboard. @returns the token, which is kept beside the data for the next run */
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
  // If the data is new, a token from before is not valid for it.
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
