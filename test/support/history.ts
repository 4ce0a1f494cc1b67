// A ledger with a month of history, for tests of the operators' reads, and the cost of the statements that a read runs.

import { type Kysely, type RootOperationNode, sql } from 'kysely';
import type { QueryResultRow } from 'pg';
import { seedHistory } from '../../bench/audit-seed.ts';
import { connectDatabase, type DatabaseConnection } from '../../src/ledger/sessions/database.ts';
import type { Database } from '../../src/ledger/schema/tables.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { PUBLICATIONS } from './publications.ts';
import { createTestLog } from './service.ts';
import { openSession } from './transaction.ts';

export type History = AsyncDisposable & {
  readonly database: TestDatabase;
  /** Connected as the operators' API is. */
  readonly connection: DatabaseConnection;
};

/** @param count of deliveries; a multiple of 20 */
export async function createHistory(count: number): Promise<History> {
  const database = await createTestDatabase();
  const run = async <Row extends QueryResultRow>(statements: readonly string[]): Promise<Row[]> => {
    await using session = await openSession(database);
    let rows: Row[] = [];
    for (const statement of statements) ({ rows } = await session.query<Row>(statement));
    return rows;
  };
  try {
    await seedHistory(run, {
      count,
      waiting: Math.min(20_000, count / 4),
      logged: false,
    });
  } catch (error) {
    await database[Symbol.asyncDispose]();
    throw error;
  }
  const connection = connectDatabase({
    url: database.url,
    name: 'operators',
    connections: 4,
    statementTimeoutMs: 20_000,
    lockTimeoutMs: 10_000,
    queryTimeoutMs: 21_000,
    reading: 'planned',
    log: createTestLog().log,
  });
  return {
    database,
    connection,
    [Symbol.asyncDispose]: async () => {
      await connection.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

/** What a statement cost, in counts and not in time. */
type Cost = {
  /** Table rows that were read, whether they matched or not. */
  readonly rows: number;
  /** Pages of 8 KiB that were read, from memory or disk. */
  readonly buffers: number;
  /** Tables of which more than a few rows were read by a sequential scan. */
  readonly scanned: readonly string[];
  readonly text: string;
};

type Plan = {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: Plan[];
};

const FEW = 1_000;

/** Has Postgres run and explain every statement that `ask` makes. */
export async function costOf(
  { db }: DatabaseConnection,
  ask: (db: Kysely<Database>) => Promise<unknown>,
): Promise<Cost[]> {
  const nodes: RootOperationNode[] = [];
  await ask(
    db.withPlugin({
      transformQuery: ({ node }) => {
        nodes.push(node);
        return node;
      },
      transformResult: ({ result }) => Promise.resolve(result),
    }),
  );
  const costs: Cost[] = [];
  for (const node of nodes) {
    const query = db.getExecutor().compileQuery(node, { queryId: 'explained' });
    const explained = { ...query, sql: `explain (analyze, buffers, format json) ${query.sql}` };
    const { rows } = await db.executeQuery<{ 'QUERY PLAN': [{ Plan: Plan }] }>(explained);
    const [first] = rows;
    if (first === undefined) throw new Error('nothing was explained');
    costs.push({ ...costOfPlan(first['QUERY PLAN'][0].Plan), text: query.sql });
  }
  return costs;
}

function costOfPlan(plan: Plan): Omit<Cost, 'text'> {
  const nodes: Plan[] = [];
  const open = [plan];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    nodes.push(next);
    open.push(...(next.Plans ?? []));
  }
  const reads = nodes
    .filter((node) => node['Relation Name'] !== undefined)
    .map((node) => ({
      table: node['Relation Name'] ?? '',
      isScan: node['Node Type'] === 'Seq Scan',
      rows:
        (node['Actual Rows'] +
          (node['Rows Removed by Filter'] ?? 0) +
          (node['Rows Removed by Index Recheck'] ?? 0)) *
        node['Actual Loops'],
    }));
  return {
    rows: reads.reduce((sum, { rows }) => sum + rows, 0),
    buffers: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
    scanned: reads.filter(({ isScan, rows }) => isScan && rows > FEW).map(({ table }) => table),
  };
}

export type ListTable = 'deliveries' | 'events' | 'publications' | 'jobs';

/**
 * The cursor position of a row in the list's order: the row number `offset` from the newest that is older than `before`, or from
 * the newest of all. Postgres sorts many rows for it.
 */
export async function placeAt(
  { db }: DatabaseConnection,
  table: ListTable,
  options: { time: string; ties: readonly string[]; offset?: number; before?: string },
): Promise<string[]> {
  const { time, ties, offset = 0, before } = options;
  const isOlder = before === undefined ? sql`true` : sql`${sql.ref(time)} < ${before}::timestamptz`;
  const { rows } = await sql<Record<string, string>>`
    select to_char(${sql.ref(time)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as place0,
      ${sql.join(ties.map((tie, index) => sql`${sql.ref(tie)}::text as ${sql.ref(`place${index + 1}`)}`))}
    from ${table === 'publications' ? sql.raw(PUBLICATIONS) : sql``} ${sql.table(table)}
    where ${isOlder}
    order by ${sql.join([time, ...ties].map((name) => sql`${sql.ref(name)} desc`))}
    offset ${offset} limit 1`.execute(db);
  return Object.values(rows[0] ?? {});
}
