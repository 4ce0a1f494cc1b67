// The composition root of the sandbox: builds all parts from the settings, starts them, and stops them in reverse order.

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ConfigError } from '../base/errors.ts';
import type { Logger } from '../base/log/log.ts';
import { type Account, type Accounts, createAccounts } from './accounts/accounts.ts';
import { createLimits } from './accounts/limits.ts';
import { sendingPlan } from './accounts/sending-plan.ts';
import { createSessions } from './accounts/sessions.ts';
import { type Addresses, createAddresses } from './addresses/addresses.ts';
import { createApi } from './api/app.ts';
import { startServer } from './api/server.ts';
import { createDashboard } from './dashboard/dashboard.ts';
import { signInAddress } from './dashboard/session-gate.ts';
import { DASHBOARD_PATH } from './dashboard/site.ts';
import type { Engine } from './engine/engine.ts';
import { createFfmpegEngine, findFfmpeg } from './engine/ffmpeg.ts';
import { createSimulatedEngine } from './engine/simulated.ts';
import { hostInUrl } from '../base/net/host-in-url.ts';
import { createRunner } from './jobs/runner.ts';
import { createJobUpdates } from './jobs/updates.ts';
import type { Settings } from './settings.ts';
import { IN_MEMORY, lockForServing } from './store/database.ts';
import { openStore } from './store/store.ts';
import { createDeliverer } from './webhooks/deliverer.ts';

export type Sandbox = AsyncDisposable & {
  readonly port: number;
  /** The interface's `{base_url}`: with the version, without a slash at its end. */
  readonly url: string;
  readonly engine: Pick<Engine, 'kind' | 'version'>;
  /** What users of the real service do in its dashboard. */
  readonly accounts: Accounts;
  readonly dashboardUrl: string;
  /** An address that signs in to the account's dashboard once, within ten minutes. */
  readonly newSignIn: (account: Account) => string;
  /** Unfinished jobs start again with the next process. Safe to call twice. */
  readonly stop: () => Promise<void>;
};

const now = () => Date.now();

/**
 * Starts the sandbox, and continues with the jobs and webhooks of an earlier run.
 * @throws ConfigError if the data file is in use or the requested engine is missing, SchemaError if the data file is not
 *   usable, and the server's error if the port is taken.
 */
export async function startSandbox(settings: Settings, { log }: { log: Logger }): Promise<Sandbox> {
  const started = new AsyncDisposableStack(); // also stops what runs when a later step fails
  try {
    return await compose(settings, { log, started });
  } catch (error) {
    await started.disposeAsync();
    throw error;
  }
}

type Parts = { readonly log: Logger; readonly started: AsyncDisposableStack };

async function compose(settings: Settings, { log, started }: Parts): Promise<Sandbox> {
  const { data, allowLocal, localOrigins, tiers, webhooks, graceMs } = settings;
  const lock = lockForServing(data);
  if (lock === undefined) throw new ConfigError(['--data is in use by another sandbox']);
  started.use(lock);
  const store = openStore(data);
  started.defer(store.close);
  const accounts = createAccounts({ store: store.accounts, now });
  const addresses = createAddresses({ allowLocal, localOrigins });
  started.defer(addresses.close);
  const engine = await chooseEngine(settings, { addresses, log, started });

  const deliverer = createDeliverer({
    ...webhooks,
    store: store.notifications,
    addresses,
    secretOf: accounts.signingSecret,
    planOf: (accountId) => {
      const account = accounts.find({ id: accountId });
      return account && sendingPlan(account, webhooks);
    },
    now,
    random: Math.random,
    log,
  });
  started.defer(() => deliverer.stop(graceMs));
  const updates = createJobUpdates({ store, accounts, now, onNotification: deliverer.nudge });
  const runner = createRunner({ jobs: store.jobs, updates, engine, limits: settings.jobs, log });
  started.defer(runner.stop);

  const limits = createLimits({ tiers, now });
  const sessions = createSessions({ store: store.sessions, accounts, now });
  const parts = {
    store,
    accounts,
    limits,
    tiers,
    addresses,
    engine,
    runner,
    notifications: store.notifications,
    deliverer,
    keptJobs: settings.jobs.kept,
    now,
    log,
  };
  const { filesUrl, receiverUrl } = settings;
  const dashboard = createDashboard({ ...parts, sessions, webhooks, filesUrl, receiverUrl });
  const app = createApi({ ...parts, dashboard });
  const server = await startServer({ listener: app, limits, host: settings.host, port: settings.port });
  started.defer(() => server.stop(graceMs));
  deliverer.start();
  runner.start();

  const origin = `http://${hostInUrl(settings.host)}:${server.port}`;
  const url = `${origin}/v1`;
  const dashboardUrl = `${origin}${DASHBOARD_PATH}`;
  store.sessions.setDashboardUrl(dashboardUrl);
  const newSignIn = (account: Account) => signInAddress(dashboardUrl, sessions.newCode(account));
  log.info({ port: server.port, url, engine: engine.kind, version: engine.version }, 'listening');
  let stopping: Promise<void> | undefined;
  const stop = () => (stopping ??= started.disposeAsync().then(() => log.info('stopped')));
  return {
    port: server.port,
    url,
    engine,
    accounts,
    dashboardUrl,
    newSignIn,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function chooseEngine(
  settings: Settings,
  { addresses, log, started }: Parts & { addresses: Addresses },
): Promise<Engine> {
  const { engine: choice, engineLimits: limits, simulatedStepMs: stepMs } = settings;
  const programs = choice === 'simulated' ? undefined : await findFfmpeg();
  if (choice === 'ffmpeg' && programs === undefined) {
    throw new ConfigError([
      '--engine ffmpeg: ffmpeg and ffprobe were not found. Install the package "ffmpeg", or take --engine simulated',
    ]);
  }
  const folder = await makeWorkFolder(settings.data);
  started.defer(() => rm(folder, { recursive: true, force: true }));
  if (programs !== undefined) return createFfmpegEngine({ programs, limits, addresses, folder });
  log.warn(
    choice === 'auto'
      ? 'ffmpeg was not found: nothing is really converted. Install the package "ffmpeg" for that'
      : 'nothing is really converted: the engine is simulated',
  );
  return createSimulatedEngine({ addresses, limits, stepMs, folder });
}

/** Next to the data file, so that the next start finds and removes what a crash left. */
async function makeWorkFolder(data: string): Promise<string> {
  if (data === IN_MEMORY) return mkdtemp(join(tmpdir(), 'tallyhook-sandbox-'));
  const folder = resolve(`${data}-work`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}
