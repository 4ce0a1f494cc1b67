// The plan of `tallyhook migrate --plan`, for a person and as JSON.

import type { Plan, PlannedLock } from '../ledger/index.ts';
import type { Paint } from '../terminal/io.ts';
import { bytes, counted } from '../terminal/readable.ts';
import { type Column, renderTable } from '../terminal/table.ts';

export function planAsJson(plan: Plan): unknown {
  const { pending, newer, oldestProgram, mayReplicasStay, obstacle, rights } = plan;
  return {
    pending: pending.map(({ name, lockTimeout, locks }) => ({
      migration: name,
      lock_timeout: lockTimeout,
      locks: locks.map(({ whoWaits, ...lock }) => ({ ...lock, who_waits: whoWaits })),
    })),
    newer,
    oldest_program: oldestProgram,
    replicas_may_stay: mayReplicasStay,
    may_migrate: obstacle === undefined,
    obstacle: obstacle ?? null,
    rights: rights ?? null,
  };
}

type Row = { readonly migration: string } & Partial<PlannedLock>;

const COLUMNS: readonly Column<Row>[] = [
  { head: 'migration', text: ({ migration }) => migration },
  { head: 'locks', text: ({ table }) => table ?? 'nothing that is there now' },
  { head: 'mode', text: ({ mode }) => mode },
  { head: 'who waits', text: ({ whoWaits }) => whoWaits },
  { head: 'how long', text: ({ work }) => work },
  { head: 'size', text: (row) => (row.bytes === undefined ? undefined : bytes(row.bytes)), right: true },
  { head: 'when', text: ({ when }) => when },
];

type Terminal = { readonly paint: Paint; readonly width: number };

export function planAsText(plan: Plan, terminal: Terminal): string {
  return [...migrationLines(plan, terminal), ...rightLines(plan.rights)].join('\n');
}

function migrationLines(
  { pending, newer, oldestProgram, mayReplicasStay, obstacle }: Plan,
  terminal: Terminal,
): string[] {
  if (newer.length > 0) {
    return [
      `the schema has ${newer.join(', ')}, and this older program may run on it: nothing would be changed`,
    ];
  }
  if (pending.length === 0) return ['the schema is up to date'];
  return [
    `${counted(pending.length, 'migration')} would run, in one transaction:`,
    renderTable(pending.flatMap(rowsOf), COLUMNS, terminal),
    ...pending.filter(({ locks }) => locks.length > 0).map(waitOf),
    `the oldest program that may run afterwards is the one that knows ${oldestProgram}`,
    mayReplicasStay
      ? 'replicas that run now may go on, and restart'
      : 'replicas that run now have to be stopped first',
    ...(obstacle === undefined ? [] : [obstacle]),
  ];
}

const rowsOf = ({ name, locks }: Plan['pending'][number]): Row[] =>
  locks.length === 0 ? [{ migration: name }] : locks.map((lock) => ({ migration: name, ...lock }));

function waitOf({ name, lockTimeout }: Plan['pending'][number]): string {
  const limit =
    lockTimeout === '0' ? 'without limit' : `for at most ${lockTimeout}, and is undone if that is too short`;
  return `in the transaction ${name} waits for each lock ${limit}`;
}

function rightLines(rights: Plan['rights']): string[] {
  if (rights === undefined) return [];
  const { role, granted, revoked } = rights;
  if (granted.length + revoked.length === 0) return [`"${role}" has the rights that it needs`];
  return [
    ...granted.map((right) => `"${role}" would get ${right}`),
    ...revoked.map((right) => `"${role}" would lose ${right}`),
  ];
}
