// The open connections of one server: whose they are, since when each is idle, and which answers are under way on it.
// Decides who may stay when there are too many. Never ends a connection that has a request without an answer, and writes
// one line a second at most, whatever comes.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Logger } from 'pino';

/** Why a connection was turned away or ended by us. */
export type ConnectionEnd =
  /** Turned away: its address has its share, and a whole request under way on each. */
  | 'address'
  /** Turned away: all are taken, with a whole request under way on each. */
  | 'full'
  /** Was idle for longest when another needed its place, or in the middle of a stranger's request. */
  | 'room'
  /** Was idle, and had not brought what a connection is kept for. */
  | 'idle'
  /** Did not take the answer that it was given. */
  | 'untaken'
  /** Brought more requests at once than are taken. */
  | 'pipelined';

export const CONNECTION_ENDS: readonly ConnectionEnd[] = [
  'address',
  'full',
  'room',
  'idle',
  'untaken',
  'pipelined',
];

export type Connections = {
  /** Takes a new one in, if need be in the place of another. @returns false when it was turned away and destroyed. */
  readonly admit: (socket: Socket) => boolean;
  /** A request begins. It is under way until its answer is closed. @returns how many are, with it; 0: not one of ours. */
  readonly begin: (response: ServerResponse) => number;
  /** The answers under way, in the order of their requests. */
  readonly underWay: (socket: unknown) => readonly ServerResponse[];
  /** How many that are. */
  readonly countUnderWay: (socket: Socket) => number;
  /** The last of each connection. */
  readonly lastAnswers: () => Iterable<ServerResponse>;
  /** It has brought a verified delivery, or an admitted token: it may stay idle for long, and others make room first. */
  readonly trust: (response: ServerResponse) => void;
  /** One was ended elsewhere, or never came here. */
  readonly note: (end: ConnectionEnd) => void;
  /** Ends those that were idle too long or take no answers, and logs what was turned away since. To be called every second. */
  readonly sweep: () => void;
  readonly open: () => number;
  /** `full`: the next one would be turned away. */
  readonly state: () => 'room' | 'full';
};

export type ConnectionLimits = {
  /** In all. */
  readonly connections: number;
  /** Of one IPv4 address, or one /64 of IPv6. */
  readonly perAddress: number;
  /**
   * Whether a stranger's request that is under way may be ended, too, to make room: where it has brought nothing that would be
   * lost. False, if not given.
   */
  readonly endsRequests?: boolean;
};

/**
 * So long a connection may be idle that nobody vouches for. A sender's first delivery comes with its connection, so this is
 * for the pause between two requests of a stranger. The `Keep-Alive` of answers is the server's for all: it must not tell
 * who is trusted.
 */
const STRANGER_KEEP_ALIVE_MS = 5_000;

/** So long nothing of an answer may be taken. Whoever wants it takes some of it, however slowly. */
const TAKEN_WITHIN_MS = 30_000;

type Connection = {
  readonly socket: Socket;
  /** What is counted together; undefined for one that is not counted. */
  readonly origin: string | undefined;
  isTrusted: boolean;
  hasAsked: boolean;
  idleSinceMs: number;
  readonly answers: Set<ServerResponse>;
  /** The first answer, once it was seen to be complete on our side, and since when so much of it is left to take. */
  waiting?:
    | { readonly answer: ServerResponse; readonly untakenBytes: number; readonly sinceMs: number }
    | undefined;
};

export function createConnections(options: {
  /** Whose they are, for the log. */
  name: string;
  limits: ConnectionLimits;
  /** Those of our own proxies: trusted from the start, and without a limit of their address. */
  isExempt?: (remoteAddress: string) => boolean;
  /** Monotonic. */
  now: () => number;
  log: Logger;
  observe: (end: ConnectionEnd) => void;
}): Connections {
  const { name, limits, isExempt = () => false, now, log, observe } = options;
  const open = new Map<unknown, Connection>();
  const perOrigin = new Map<string, number>();
  // In the order in which they came or had their last answer: what they wait for since then is the other side's to do,
  // or a whole request of theirs is under way.
  const strangers = new Set<Connection>();
  const trusted = new Set<Connection>();
  let unreported = new Map<ConnectionEnd, number>();

  const kindOf = ({ isTrusted }: Connection) => (isTrusted ? trusted : strangers);

  function note(end: ConnectionEnd): void {
    observe(end);
    unreported.set(end, (unreported.get(end) ?? 0) + 1);
  }

  function endOne(connection: Connection, end: ConnectionEnd): void {
    forget(connection); // now, and not when its `close` comes: its place is needed at once
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
   * Who makes room: who has kept us waiting for longest. A stranger that stalls in the middle of a request is no better than
   * an idle one, since an honest request is there within milliseconds; of those with a secret only idle ones go, after all
   * strangers.
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
      if (isOfOrigin(connection) && connection.answers.size === 0) return connection;
    }
    return undefined;
  }

  /** Why there is no place for one more of this origin, if there is none and none can be made. */
  function findPlace(origin: string | undefined): ConnectionEnd | undefined {
    const isOriginFull = origin !== undefined && (perOrigin.get(origin) ?? 0) >= limits.perAddress;
    if (!isOriginFull && open.size < limits.connections) return undefined;
    const leaving = nextToLeave(isOriginFull ? origin : undefined);
    if (leaving === undefined) return isOriginFull ? 'address' : 'full';
    endOne(leaving, 'room');
    return undefined;
  }

  function admit(socket: Socket): boolean {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) return false; // gone again
    const isTrusted = isExempt(remoteAddress);
    const origin = isTrusted ? undefined : originOf(remoteAddress);
    const refusal = findPlace(origin);
    if (refusal !== undefined) {
      socket.destroy();
      note(refusal);
      return false;
    }
    const connection: Connection = {
      socket,
      origin,
      isTrusted,
      hasAsked: false,
      idleSinceMs: now(),
      answers: new Set<ServerResponse>(),
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
    answers.add(response);
    response.once('close', () => finish(connection, response));
    return answers.size;
  }

  function finish(connection: Connection, response: ServerResponse): void {
    const { answers, socket } = connection;
    answers.delete(response);
    if (connection.waiting?.answer === response) connection.waiting = undefined;
    if (answers.size > 0 || !open.has(socket)) return;
    connection.idleSinceMs = now();
    kindOf(connection).delete(connection); // to the end
    kindOf(connection).add(connection);
  }

  function trust(response: ServerResponse): void {
    const connection = open.get(response.req.socket);
    if (connection === undefined || connection.isTrusted) return;
    strangers.delete(connection);
    connection.isTrusted = true;
    trusted.add(connection);
  }

  /** Their requests are answered, and still they would count as under way for as long as the other side does not read. */
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
      // One that has not asked yet is in the middle of its first head, as far as we know. That has a time-out of its own,
      // and so has a request.
      if (connection.hasAsked && connection.answers.size === 0) endOne(connection, 'idle');
    }
  }

  function sweep(): void {
    endIdle();
    endUntaken();
    const counts = unreported;
    unreported = new Map();
    counts.delete('idle'); // as it should be
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
    countUnderWay: (socket) => open.get(socket)?.answers.size ?? 0,
    lastAnswers: function* () {
      for (const { answers } of open.values()) yield* [...answers].slice(-1);
    },
    trust,
    note,
    sweep,
    open: () => open.size,
    state: () => (open.size >= limits.connections && nextToLeave() === undefined ? 'full' : 'room'),
  };
}

/**
 * What the system has not taken from us yet, since the other side is slow. `writableLength` falls when all of a write is
 * taken, and a long answer is one; the handle's own number, by which Node itself judges this and which is not documented,
 * falls with each part.
 */
function countUntaken(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { _handle?: { writeQueueSize?: number } | null };
  return socket.writableLength + (handle?.writeQueueSize ?? 0);
}

function hasWholeRequest({ answers }: Connection): boolean {
  for (const { req } of answers) if (req.complete) return true;
  return false;
}

/** An IPv4 address, also one mapped into IPv6, by itself; of IPv6 the /64, which is what one customer is given. */
export function originOf(remoteAddress: string): string {
  if (!remoteAddress.includes(':')) return remoteAddress;
  const address = ipaddr.process(remoteAddress);
  if (address.kind() === 'ipv4') return address.toString();
  return `${(address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}
