// The one way to a connection and back, for single statements and for Kysely. After any error a connection is not used again:
// what made it fail, such as a session that began on a read-only server, may last as long as the session. A statement that is
// overdue keeps its connection until the server has answered, so that we never have more sessions there than we say.

import type { Pool, PoolClient, QueryConfig, QueryResult, QueryResultRow } from 'pg';
import { SessionError } from '../../base/errors.ts';
import { endSocket, type PreparedClient } from './connecting.ts';
import type { Silence } from './silence.ts';

export type Slot = {
  /** Calls back once, with the rows or after `timeoutMs` with an error. After that no other statement is taken. */
  readonly ask: <Row extends QueryResultRow>(
    query: QueryConfig,
    answer: (error: Error | undefined, result?: QueryResult<Row>) => void,
  ) => void;
  /** Gives the connection back: to be used again, or to be closed after an error, at once or when the answer has come. */
  readonly leave: (isDiscarded?: boolean) => void;
};

export type Slots = {
  /** Fails at once while each connection waits for an overdue answer. */
  readonly take: (taken: (error: Error | undefined, slot?: Slot) => void) => void;
  /** Waits for no overdue answer. */
  readonly close: () => Promise<void>;
};

export function createSlots(options: {
  readonly pool: Pool;
  readonly connections: number;
  readonly timeoutMs: number;
  readonly silence: Silence;
  /** Told before each use of a connection. */
  readonly onUse: () => void;
  /** Told of each error with which the server answers. */
  readonly onError: (error: Error) => void;
}): Slots {
  const { pool, connections, timeoutMs, silence, onUse, onError } = options;
  const overdue = new Set<() => void>(); // each gives its connection up
  let isClosing = false;

  function slotOf(client: PoolClient & PreparedClient, release: (discard?: Error | boolean) => void): Slot {
    let failure: Error | undefined;
    let isDiscarded = client.isForOnce === true;
    let isLeft = false;
    let isFree = false;
    let onAnswer: (() => void) | undefined; // while a statement is overdue

    function free(): void {
      if (isFree) return;
      isFree = true;
      overdue.delete(free);
      onAnswer?.();
      release(failure ?? isDiscarded);
    }

    function ask<Row extends QueryResultRow>(
      query: QueryConfig,
      answer: (error: Error | undefined, result?: QueryResult<Row>) => void,
    ): void {
      if (onAnswer !== undefined) return answer(failure);
      let isOver = false;
      const timer = setTimeout(() => {
        isOver = true;
        failure ??= new Error('Query read timeout');
        overdue.add(free);
        onAnswer = silence.begin(client, () => endSocket(client));
        answer(failure);
      }, timeoutMs);
      client.query<Row>(query, (error: Error | null | undefined, result) => {
        clearTimeout(timer);
        if (error) onError(error);
        const failed = error ?? unreplicated(client);
        failure ??= failed;
        if (!isOver) return failed === undefined ? answer(undefined, result) : answer(failed);
        onAnswer?.();
        overdue.delete(free);
        if (isLeft) free();
      });
    }

    function leave(discard = false): void {
      isLeft = true;
      isDiscarded ||= discard;
      if (!overdue.has(free) || isClosing) free();
    }

    return { ask, leave };
  }

  return {
    take: (taken) => {
      onUse();
      if (overdue.size >= connections) return taken(busy(connections));
      pool.connect((error, client, release) =>
        client === undefined ? taken(error) : taken(undefined, slotOf(client, release)),
      );
    },
    close: async () => {
      isClosing = true;
      for (const free of overdue) free();
      if (!pool.ending) await pool.end();
    },
  };
}

const busy = (connections: number) =>
  new SessionError(
    'unanswered',
    `the database has not answered earlier statements on any of ${connections} connections`,
  );

/** The statement "succeeded", but its commit may be on this server alone. */
function unreplicated(client: PreparedClient): Error | undefined {
  if (client.isUnreplicated !== true) return undefined;
  client.isUnreplicated = false;
  return new SessionError(
    'unreplicated',
    'somebody cancelled the wait for a standby: it may not have the commit',
  );
}
