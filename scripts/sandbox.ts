// Runs the sandbox and its file server in a process of their own, as a team would, and waits until both answer.

import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { CORRUPT_CLIP } from '../src/sandbox/command/clips.ts';
import type { Place } from '../src/sandbox/command/place.ts';
import { MAIN, type Program, startProgram } from './program.ts';
import type { Guard } from './services/guard.ts';

export type Sandbox = Program & {
  /** The interface's `{base_url}`. */
  readonly baseUrl: string;
  readonly filesUrl: string;
  /** Signs in to its dashboard once. */
  readonly signInUrl: string;
  /** For its API. */
  readonly token: string;
};

type SandboxOptions = {
  readonly place: Place;
  readonly logFile: string;
  /** Further arguments of `tallyhook sandbox serve`. */
  readonly args: readonly string[];
  /** It signs webhooks with this; the relay has to know it. */
  readonly signingSecret: string;
  /** The relay's address for webhooks. */
  readonly webhookUrl: string;
  readonly port: number;
  readonly filesPort: number;
};

/** It generates its clips first. */
const READY_TIMEOUT_MS = 60_000;
const COMMAND_TIMEOUT_MS = 20_000;
const END_MS = 15_000;

const runFile = promisify(execFile);

/** Resolves when it is ready. @throws Error with the end of its log */
export async function startSandbox(guard: Guard, options: SandboxOptions): Promise<Sandbox> {
  const { place, logFile, args, port, filesPort, webhookUrl } = options;
  const folder = dirname(place.data);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await setSecret(options);
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  const filesUrl = `http://127.0.0.1:${filesPort}`;
  const ports = ['--port', String(port), '--files-port', String(filesPort)];
  const files = ['--data', place.data, '--files', place.files];
  const program = await startProgram(guard, {
    name: 'sandbox',
    args: ['sandbox', 'serve', '--allow-local', '--receiver', webhookUrl, ...ports, ...files, ...args],
    cwd: folder,
    env: environment(),
    logFile,
    isReady: async () =>
      (await isThere(`${filesUrl}/${CORRUPT_CLIP}`)) && (await isThere(`${baseUrl}/me`, tokenIn(place))),
    readyTimeoutMs: READY_TIMEOUT_MS,
    endMs: END_MS,
  });
  const signInUrl = (await command(folder, ['dashboard', '--data', place.data])).trim();
  return { ...program, baseUrl, filesUrl, signInUrl, token: tokenIn(place) };
}

/** As a team does it in the service's dashboard. */
async function setSecret({
  place: { data },
  signingSecret,
}: Pick<SandboxOptions, 'place' | 'signingSecret'>): Promise<void> {
  const secretFile = `${data}-secret`;
  writeFileSync(secretFile, signingSecret, { mode: 0o600 });
  try {
    await command(dirname(data), ['account', 'set', '--data', data, '--secret-file', secretFile]);
  } finally {
    rmSync(secretFile);
  }
}

/** The sandbox writes it when it is ready. Empty before that. */
function tokenIn({ tokenFile }: Place): string {
  try {
    return tokenFile === undefined ? '' : readFileSync(tokenFile, 'utf8').trim();
  } catch {
    return '';
  }
}

async function command(folder: string, args: readonly string[]): Promise<string> {
  const { stdout } = await runFile(process.execPath, [MAIN, 'sandbox', ...args], {
    cwd: folder,
    env: environment(),
    timeout: COMMAND_TIMEOUT_MS,
  });
  return stdout;
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
