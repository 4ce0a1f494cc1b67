// The one way to an operation, for the API and for the console: check the caller's role, then the input, then run it. A read
// answers with JSON or a stream; an action runs in one transaction, with its log lines and its idempotency key.

import type { DatabaseConnection } from '../../../ledger/index.ts';
import { appendToLog, type LogEntry } from '../access/operator-log.queries.ts';
import { mayAct, type TokenRole } from '../access/roles.ts';
import { type Acted, act } from './actions.ts';
import { toJson } from './answers.ts';
import { type Asked, checkInput } from './input.ts';
import { type ApiError, type Caller, forbidden, type Operation, type Reply } from './operation.ts';

/** Who asks: a caller whose role is not checked yet. */
export type Asker = Omit<Caller, 'role'> & { readonly role: TokenRole };

export type Performed = Acted | Extract<Reply, { stream: unknown }>;

export type PerformOptions = {
  readonly caller: Asker;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
  /** False for HEAD: then the operator log records no reading. */
  readonly isShown?: boolean;
};

/** @param ask is called once the role is checked. @throws ApiError, and what the operation throws */
export type Perform = (
  operation: Operation,
  ask: () => Promise<Asked>,
  options: PerformOptions,
) => Promise<Performed>;

export function createPerform({ connection }: { connection: DatabaseConnection }): Perform {
  return async (operation, ask, { caller: asker, signal, isShown = true }) => {
    const caller = admit(operation, asker);
    const asked = await ask();
    const input = checkInput(operation, asked);
    if (operation.method === 'post') {
      return act(connection, { action: operation, input, key: asked.key, context: { caller, signal } });
    }
    const record = async (entry: LogEntry) => {
      if (isShown) await appendToLog(connection.db, caller, entry);
    };
    const reply = await operation.run(input, { caller, signal, record });
    return 'stream' in reply
      ? reply
      : { status: reply.status, json: toJson(operation, reply), isReplayed: false };
  };
}

/** Whether the caller may use the operation at all. What it may be used on, the operation decides. */
export function isAllowed(operation: Operation, asker: Pick<Asker, 'role' | 'sources'>): boolean {
  return refusalOf(operation, asker) === undefined;
}

/** @throws ApiError 403 */
export function admit(operation: Operation, asker: Asker): Caller {
  const refusal = refusalOf(operation, asker);
  if (refusal !== undefined) throw refusal;
  return asker as Caller; // of a role that operations need
}

function refusalOf(
  { role: needed, needsAllSources }: Operation,
  { role, sources }: Pick<Asker, 'role' | 'sources'>,
): ApiError | undefined {
  if (!mayAct(role, needed)) return forbidden(`this needs the role ${needed}`);
  if (needsAllSources && sources !== null) return forbidden();
  return undefined;
}
