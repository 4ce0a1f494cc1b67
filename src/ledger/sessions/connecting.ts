// Makes the clients of a pool: one connection at a time, and none is handed out before its session is what session.ts says.

import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { callbackify } from 'node:util';
import type { Client, ClientConfig } from 'pg';
import type { Logger } from 'pino';
import { describeError, SchemaError, SessionError } from '../../base/errors.ts';
import { createConnectGate } from './connect-gate.ts';
import { type Ask, agree, type Session, type SessionOptions } from './session.ts';
import type { Identity } from './identity.ts';
import type { Server } from './servers.ts';
import { type Sessions, starved } from './sessions.ts';
import { makeClient, tlsRefusalOf } from './tls.ts';

export type PreparedClient = Client & {
  session?: Session;
  server?: Server;
  /** It is closed after its use: the next one may be writable, or verified. */
  isForOnce?: boolean;
  isUnreplicated?: boolean;
};

/** A wait for a standby that somebody cancelled: the commit is done here, nobody knows whether there. */
const STANDBY_WAIT = 'SyncRepWaitForLSN';

/** A factory, in the form that pg-pool wants for its `Client`. Its timer bounds all that `connect` does. */
export function createClients(options: {
  readonly pool: string;
  readonly session: SessionOptions;
  readonly sessions: Sessions;
  readonly identity?: Pick<Identity, 'verify'> | undefined;
  readonly maxPauseMs: number;
  readonly log: Logger;
}): new (
  config?: string | ClientConfig,
) => Client {
  const { pool, session, sessions, identity, maxPauseMs, log } = options;
  const gate = createConnectGate({ maxPauseMs, now: () => performance.now(), sleep });

  async function prepare(client: PreparedClient, server: Server): Promise<void> {
    const ask: Ask = async <Row>(text: string, values: readonly unknown[]) =>
      (await client.query(text, [...values])).rows as Row[];
    // pg's types do not name it.
    const loginPid = (client as { processID?: number | null }).processID ?? null;
    const wanted = { ...session, loginPid, path: sessions.path() };
    let agreed = await agree(ask, { ...wanted, mayBePooled: false });
    if (!('isReadOnly' in agreed)) {
      await sessions.checkPooler({ ask, pid: agreed.pid, server });
      agreed = await agree(ask, { ...wanted, mayBePooled: true });
    }
    if (!('isReadOnly' in agreed)) throw new SessionError('session_unfit', 'its settings cannot be set');
    client.session = agreed;
    sessions.note(agreed);
    const isVerified = (await identity?.verify(client)) ?? true;
    client.isForOnce = agreed.isReadOnly || !isVerified;
    if (agreed.isReadOnly) sessions.servers.doubt();
  }

  async function connectToPrimary(
    client: PreparedClient,
    connectItself: () => Promise<unknown>,
  ): Promise<Server> {
    const server = await sessions.servers.primary();
    if (isDestroyed(client)) throw tooLate();
    // Before it connects: while that takes its time, another server may become the primary.
    const leave = sessions.servers.connecting(server, () => endSocket(client));
    client.once('end', leave);
    try {
      Object.assign(client, server, { server });
      await connectItself();
      return server;
    } catch (error) {
      leave();
      throw error;
    }
  }

  async function connect(client: PreparedClient, connectItself: () => Promise<unknown>): Promise<void> {
    const leave = await gate.enter(() => isDestroyed(client));
    if (leave === undefined) throw tooLate();
    let isConnected = false;
    try {
      const server = await connectToPrimary(client, connectItself);
      isConnected = true;
      await prepare(client, server);
      leave();
    } catch (error) {
      const failure =
        isConnected && isDestroyed(client)
          ? starved(sessions.max())
          : (tlsRefusalOf(error, client) ?? (error as Error));
      if (failure instanceof SessionError) sessions.refused(pool, failure);
      else sessions.failed(failure);
      sessions.servers.doubt();
      if (failure instanceof SchemaError)
        log.error({ pool, err: describeError(failure) }, 'this server cannot be used');
      client.end().catch(() => {}); // pg-pool takes it for one that was never connected
      leave(failure);
      throw failure;
    }
  }

  function create(config?: string | ClientConfig): PreparedClient {
    const client: PreparedClient = makeClient(config);
    // Without a listener, a server that goes away ends our process. The error object refers to the whole client with its secret
    // key, so only a description of it is logged.
    client.on('error', (error) => {
      if (client.session !== undefined)
        log.warn({ err: describeError(error), pool }, 'database connection lost');
    });
    client.on('notice', ({ routine }) => {
      if (routine === STANDBY_WAIT) client.isUnreplicated = true;
    });
    const connectItself = client.connect.bind(client) as () => Promise<unknown>;
    return Object.assign(client, { connect: callbackify(() => connect(client, connectItself)) });
  }

  return function make(config?: string | ClientConfig) {
    return create(config);
  } as unknown as new (
    config?: string | ClientConfig,
  ) => Client;
}

const tooLate = () => new Error('timeout exceeded when trying to connect');

/** pg-pool destroys the socket when its time for a connection is over. */
const isDestroyed = (client: Client): boolean => socketOf(client)?.destroyed === true;

/** pg offers no way to end a connection whose statement has no answer. */
export const endSocket = (client: Client): void => void socketOf(client)?.destroy();

/** A client that could not be made has none. */
const socketOf = (client: Partial<Client>): Duplex | undefined => client.connection?.stream;
