// Opens one connection to the broker, for the relay and the subscriber. Says why it was refused in one sentence, which amqplib does
// not: of a refusal after the login it keeps neither the code nor the text. Does not open another one: its users do.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Duplex } from 'node:stream';
import { type ChannelModel, connect } from 'amqplib';
import type { Certificates } from '../net/certificates.ts';
import { type Place, refusalOf } from './broker-refusals.ts';
import { brokerUrls } from './broker-urls.ts';

/** A broker's part of the handshake has less than 1 KiB. */
const HEARD_MAX_BYTES = 16 * 1024;
/** Without it the system probes an idle connection for the first time after two hours. */
const KEEP_ALIVE_DELAY_MS = 3_000;
/** Node tells here of each socket that is made. */
const NEW_SOCKET = 'net.client.socket';
const TLS_PORT = '5671';
const PLAIN_PORT = '5672';

/**
 * The model has a listener for errors already, so that none ends the process.
 * @throws BrokerRefusalError if the broker, or another server at its address, does not let us in. Others as they come, if
 * nobody answers
 */
export async function openBrokerConnection(options: {
  readonly url: string;
  /** For `amqps://`. Called for each connection, so that a renewed certificate needs no restart. */
  readonly certificates?: (() => Certificates | Promise<Certificates>) | undefined;
  /** As the broker shows it. */
  readonly name: string;
  readonly heartbeatS: number;
  /** A handshake that hangs must not hold up the next attempt. */
  readonly timeoutMs: number;
}): Promise<ChannelModel> {
  const ear = createEar();
  try {
    const certificates = await options.certificates?.();
    const model = await ear.during(() =>
      connect(withHeartbeat(options.url, options.heartbeatS), {
        ...certificates,
        timeout: options.timeoutMs,
        noDelay: true,
        // For URLs that turn heartbeats off.
        keepAlive: true,
        keepAliveDelay: KEEP_ALIVE_DELAY_MS,
        clientProperties: { connection_name: options.name },
      }),
    );
    model.on('error', () => {});
    return model;
  } catch (error) {
    throw refusalOf(error, ear.heard(), placeOf(options.url)) ?? error;
  } finally {
    ear.close();
  }
}

/** Hears what the server says on the socket that amqplib makes, and keeps to itself. */
function createEar() {
  let heard = Buffer.alloc(0);
  let socket: Duplex | undefined;

  function listenTo(made: Duplex): void {
    socket = made;
    const read = made.read.bind(made);
    made.read = (size?: number) => {
      const chunk: unknown = read(size);
      if (Buffer.isBuffer(chunk) && heard.length < HEARD_MAX_BYTES) heard = Buffer.concat([heard, chunk]);
      return chunk;
    };
  }

  const onSocket = (message: unknown) => listenTo((message as { socket: Duplex }).socket);

  return {
    /** `open` makes the socket before it returns. */
    during: <Opening>(open: () => Opening): Opening => {
      subscribe(NEW_SOCKET, onSocket);
      try {
        return open();
      } finally {
        unsubscribe(NEW_SOCKET, onSocket);
      }
    },
    heard: () => heard,
    close: () => {
      // The stream's own method again.
      if (socket !== undefined) Reflect.deleteProperty(socket, 'read');
    },
  };
}

/**
 * amqplib reads the heartbeat only from the URL. With its default of 60 s a lost connection is noticed after minutes. The
 * heartbeats go both ways: so the kernel's keep-alives would find nothing that they do not find sooner.
 */
function withHeartbeat(url: string, seconds: number): string {
  const parsed = new URL(url);
  if (!parsed.searchParams.has('heartbeat')) parsed.searchParams.set('heartbeat', String(seconds));
  return parsed.href;
}

function placeOf(url: string): Place {
  return { address: addressOf(url), ...accountOf(url) };
}

/** `host:port` */
export function addressOf(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  const usual = protocol === 'amqps:' ? TLS_PORT : PLAIN_PORT;
  return `${hostname}:${port || usual}`;
}

/** Of the broker's URL, or the first of them, for messages to people. */
export function accountOf(urls: string): { user: string; virtualHost: string } {
  const { username, pathname } = new URL(brokerUrls(urls)[0] ?? urls);
  return { user: decoded(username) || 'guest', virtualHost: decoded(pathname.slice(1)) || '/' };
}

/** As it stands if it is not well-formed: it is shown to people only. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
