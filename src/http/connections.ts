// The open connections of one server: where each comes from, how long it is idle, and which answers are under way on it.
// When there are too many, it decides which one is ended. Never ends a connection whose whole request has no answer yet,
// unless `endsRequests` says so, and writes at most one log line a second.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Logger } from 'pino';
import type { ConnectionEnd } from '../base/closed-sets.ts';
import { peerAddress } from './address.ts';

export type Connections = {
  /** Takes in a new one, in the place of another if necessary. @returns false when it was rejected and destroyed. */
  readonly admit: (socket: Socket) => boolean;
  /** A request begins. It is under way until its answer is closed. @returns how many are then; 0 for an unknown socket. */
  readonly begin: (response: ServerResponse) => number;
  /** The answers under way, in the order of their requests. */
  readonly underWay: (socket: unknown) => readonly ServerResponse[];
  readonly countUnderWay: (socket: Socket) => number;
  /** The last answer under way on each connection. */
  readonly lastAnswers: () => Iterable<ServerResponse>;
  /** It has brought a verified delivery or an admitted token: it may stay idle for long, and strangers make room first. */
  readonly trust: (response: ServerResponse) => void;
  /** Counts one that was ended elsewhere, or that was dropped before `admit`. */
  readonly note: (end: ConnectionEnd) => void;
  /** Ends those that were idle too long or read no answers, and logs what was ended since. To be called every second. */
  readonly sweep: () => void;
  readonly open: () => number;
  /** `full`: the next one would be rejected. */
  readonly state: () => 'room' | 'full';
};

export type ConnectionLimits = {
  /** In total. */
  readonly connections: number;
  /** Of one IPv4 address, or one /64 of IPv6. */
  readonly perAddress: number;
  /**
   * Whether a stranger's whole request may be ended, too, to make room. For a server where nothing is lost by that. False by
   * default.
   */
  readonly endsRequests?: boolean;
};

/**
 * How long a stranger's connection may be idle between two requests. A sender is no stranger after its first delivery. The
 * `Keep-Alive` header of answers names the server's own time for all, since it must not tell who is trusted.
 */
const STRANGER_KEEP_ALIVE_MS = 5_000;

/** If nothing of an answer is read for this long, the client does not want it: a slow reader reads some of it. */
const TAKEN_WITHIN_MS = 30_000;

type Connection = {
  readonly socket: Socket;
  /** Its address or network, for the limit; undefined for one without that limit. */
  readonly origin: string | undefined;
  isTrusted: boolean;
  hasAsked: boolean;
  idleSinceMs: number;
  readonly answers: ServerResponse[];
  /** Its first answer, once that is complete on our side: how much of it is not read yet, and since when. */
  waiting?:
    | { readonly answer: ServerResponse; readonly untakenBytes: number; readonly sinceMs: number }
    | undefined;
};

export function createConnections(options: {
  /** For the log. */
  name: string;
  limits: ConnectionLimits;
  /** Our own proxies: trusted from the start, and without a limit for their address. */
  isExempt?: (remoteAddress: string) => boolean;
  /** Monotonic. */
  now: () => number;
  log: Logger;
  observe: (end: ConnectionEnd) => void;
}): Connections {
  const { name, limits, isExempt = () => false, now, log, observe } = options;
  const open = new Map<unknown, Connection>();
  const perOrigin = new Map<string, number>();
  // Both in the order in which they came or had their last answer. Since then we wait for the other side, or a whole request
  // is under way.
  const strangers = new Set<Connection>();
  const trusted = new Set<Connection>();
  let unreported = new Map<ConnectionEnd, number>();

  const kindOf = ({ isTrusted }: Connection) => (isTrusted ? trusted : strangers);

  function note(end: ConnectionEnd): void {
    observe(end);
    unreported.set(end, (unreported.get(end) ?? 0) + 1);
  }

  function endOne(connection: Connection, end: ConnectionEnd): void {
    forget(connection); // not at its `close`: its place is needed now
    connection.socket.destroy();
    note(end);
  }

  function forget(connection: Connection): void {
    if (!open.delete(connection.socket)) return;
    kindOf(connection).delete(connection);
    if (connection.origin === undefined) return;
    const left = (perOrigin.get(connection.origin) ?? 0) - 1;
    if (left > 0) perOrigin.set(connection.origin, left);
    else perOrigin.delete(connection.origin);
  }

  /**
   * The one that has kept us waiting for longest. Strangers go first. One that stalls in the middle of a request counts as
   * idle, since an honest request arrives within milliseconds. Trusted ones are ended only if they have no request.
   */
  function nextToLeave(origin?: string): Connection | undefined {
    const isOfOrigin = (connection: Connection) => origin === undefined || connection.origin === origin;
    let busy: Connection | undefined;
    for (const connection of strangers) {
      if (!isOfOrigin(connection)) continue;
      if (!hasWholeRequest(connection)) return connection;
      busy ??= connection;
    }
    if (busy !== undefined && limits.endsRequests === true) return busy;
    for (const connection of trusted) {
      if (isOfOrigin(connection) && connection.answers.length === 0) return connection;
    }
    return undefined;
  }

  /** Makes room for one more of this origin if necessary. @returns why there is none, or undefined. */
  function makeRoom(origin: string | undefined): ConnectionEnd | undefined {
    const isOriginFull = origin !== undefined && (perOrigin.get(origin) ?? 0) >= limits.perAddress;
    if (!isOriginFull && open.size < limits.connections) return undefined;
    const leaving = nextToLeave(isOriginFull ? origin : undefined);
    if (leaving === undefined) return isOriginFull ? 'address' : 'full';
    endOne(leaving, 'room');
    return undefined;
  }

  function admit(socket: Socket): boolean {
    const remoteAddress = peerAddress(socket);
    if (remoteAddress === undefined) return false; // closed already
    const isTrusted = isExempt(remoteAddress);
    const origin = isTrusted ? undefined : originOf(remoteAddress);
    const rejection = makeRoom(origin);
    if (rejection !== undefined) {
      socket.destroy();
      note(rejection);
      return false;
    }
    const connection: Connection = {
      socket,
      origin,
      isTrusted,
      hasAsked: false,
      idleSinceMs: now(),
      answers: [],
    };
    open.set(socket, connection);
    if (origin !== undefined) perOrigin.set(origin, (perOrigin.get(origin) ?? 0) + 1);
    kindOf(connection).add(connection);
    socket.once('close', () => forget(connection));
    return true;
  }

  function begin(response: ServerResponse): number {
    const connection = open.get(response.req.socket);
    if (connection === undefined) return 0;
    const { answers } = connection;
    connection.hasAsked = true;
    answers.push(response);
    response.once('close', () => finish(connection, response));
    return answers.length;
  }

  function finish(connection: Connection, response: ServerResponse): void {
    const { answers, socket } = connection;
    answers.splice(answers.indexOf(response), 1);
    if (connection.waiting?.answer === response) connection.waiting = undefined;
    if (answers.length > 0 || !open.has(socket)) return;
    connection.idleSinceMs = now();
    kindOf(connection).delete(connection); // moves to the end
    kindOf(connection).add(connection);
  }

  function trust(response: ServerResponse): void {
    const connection = open.get(response.req.socket);
    if (connection === undefined || connection.isTrusted) return;
    strangers.delete(connection);
    connection.isTrusted = true;
    trusted.add(connection);
  }

  /** An answer counts as under way until it is read, so a client that reads nothing would keep its place for ever. */
  function endUntaken(): void {
    for (const connection of open.values()) {
      const [answer] = connection.answers;
      if (answer?.writableEnded !== true) continue;
      const { waiting } = connection;
      const untakenBytes = countUntaken(connection.socket);
      if (waiting?.answer !== answer || untakenBytes < waiting.untakenBytes) {
        connection.waiting = { answer, untakenBytes, sinceMs: now() };
      } else if (now() - waiting.sinceMs > TAKEN_WITHIN_MS) endOne(connection, 'untaken');
    }
  }

  function endIdle(): void {
    const overdueMs = now() - STRANGER_KEEP_ALIVE_MS;
    for (const connection of strangers) {
      if (connection.idleSinceMs > overdueMs) break;
      // One that has not asked yet may be in the middle of its first head. Heads and requests have time-outs of their own.
      if (connection.hasAsked && connection.answers.length === 0) endOne(connection, 'idle');
    }
  }

  function sweep(): void {
    endIdle();
    endUntaken();
    const counts = unreported;
    unreported = new Map();
    counts.delete('idle'); // the ordinary end
    if (counts.size === 0) return;
    log.warn(
      { connections: name, open: open.size, origins: perOrigin.size, ended: Object.fromEntries(counts) },
      'connections were turned away or ended to make room',
    );
  }

  return {
    admit,
    begin,
    underWay: (socket) => [...(open.get(socket)?.answers ?? [])],
    countUnderWay: (socket) => open.get(socket)?.answers.length ?? 0,
    lastAnswers: function* () {
      for (const { answers } of open.values()) yield* answers.slice(-1);
    },
    trust,
    note,
    sweep,
    open: () => open.size,
    state: () => (open.size >= limits.connections && nextToLeave() === undefined ? 'full' : 'room'),
  };
}

/**
 * Bytes that the other side has not read yet and the system does not buffer. `writableLength` falls only when a whole write is
 * through, and a long answer is one write. The handle's `writeQueueSize`, which Node's own time-outs use and which is not
 * documented, falls with each part.
 */
function countUntaken(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { _handle?: { writeQueueSize?: number } | null };
  return socket.writableLength + (handle?.writeQueueSize ?? 0);
}

function hasWholeRequest({ answers }: Connection): boolean {
  for (const { req } of answers) if (req.complete) return true;
  return false;
}

/** An IPv4 address as it is; of an IPv6 address its /64, which one customer usually has. */
export function originOf(remoteAddress: string): string {
  if (!remoteAddress.includes(':')) return remoteAddress;
  const address = ipaddr.process(remoteAddress);
  if (address.kind() === 'ipv4') return address.toString();
  return `${(address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}
