// Starts the subjects, each as processes of its own, as in production: Tallyhook, the baseline, and the bare route. Their output
// is discarded (Tallyhook still writes a log line for each delivery).

import { readFileSync } from 'node:fs';
import { NO_LOG, startRelay } from '../scripts/relay.ts';
import { findFreePort } from '../scripts/services/ports.ts';
import type { Stage } from './stage.ts';

export type Subject = {
  readonly ports: readonly number[];
  /** Tallyhook's. The others have none. */
  readonly operatorPorts: readonly number[];
  readonly pids: readonly number[];
  readonly end: () => Promise<void>;
};

const LISTEN_TIMEOUT_MS = 15_000;

export const BASELINE_SCHEMA = readFileSync(new URL('baseline/schema.sql', import.meta.url), 'utf8');

/** With Tallyhook's defaults for all that is not set here. */
export async function startTallyhook(
  stage: Stage,
  options: {
    databaseUrl: string;
    amqpUrl: string;
    exchange: string;
    replicas: number;
    profileFolder?: string | undefined;
    /** For its output, instead of discarding it. */
    logFile?: string | undefined;
  },
): Promise<Subject> {
  const starting = Array.from({ length: options.replicas }, async () => {
    const port = await findFreePort();
    const operatorPort = await findFreePort();
    const env = {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: String(port),
      OPERATOR_PORT: String(operatorPort),
      DATABASE_URL: options.databaseUrl,
      AMQP_URL: options.amqpUrl,
      AMQP_EXCHANGE: options.exchange,
      SIGNING_SECRETS: stage.secret,
      ...(options.profileFolder && {
        NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${options.profileFolder}`,
      }),
    };
    const { logFile = NO_LOG } = options;
    return { port, operatorPort, relay: await startRelay(stage.guard, { env, logFile }) };
  });
  const replicas = await Promise.all(starting);
  return {
    ports: replicas.map(({ port }) => port),
    operatorPorts: replicas.map(({ operatorPort }) => operatorPort),
    pids: replicas.map(({ relay }) => relay.pid),
    end: async () => {
      const exits = await Promise.all(replicas.map(({ relay }) => relay.end()));
      const failed = exits.find(({ code }) => code !== 0);
      if (failed) throw new Error(`a replica ended badly (${failed.signal ?? failed.code})`);
    },
  };
}

/** On a database with `BASELINE_SCHEMA`. */
export function startBaseline(
  stage: Stage,
  options: { databaseUrl: string; databaseConnections: number; amqpUrl: string; exchange: string },
): Promise<Subject> {
  return startListening(stage, 'baseline/server.ts', {
    DATABASE_URL: options.databaseUrl,
    DATABASE_CONNECTIONS: String(options.databaseConnections),
    AMQP_URL: options.amqpUrl,
    EXCHANGE: options.exchange,
    SECRET: stage.secret,
  });
}

export function startVerifyRoute(stage: Stage): Promise<Subject> {
  return startListening(stage, 'rivals/verify-route.ts', { SECRET: stage.secret });
}

export function startResponder(stage: Stage): Promise<Subject> {
  return startListening(stage, 'rivals/responder.ts', {});
}

async function startListening(stage: Stage, script: string, env: NodeJS.ProcessEnv): Promise<Subject> {
  const part = await stage.parts.start(script, env);
  const port = await part.next<number>('listening', LISTEN_TIMEOUT_MS);
  return { ports: [port], operatorPorts: [], pids: [part.pid], end: part.end };
}
