// The operator log as a list: who looked at what, and who changed what.

import { sql } from 'kysely';
import type { z } from 'zod';
import { parseJson } from '../../base/json/json.ts';
import { byColumn, type FilterTable } from '../kernel/list/filters.queries.ts';
import { createList, type List, questionOf } from '../kernel/list/list.queries.ts';
import type { ListSpec } from '../kernel/list/range.queries.ts';
import { shownColumns } from '../kernel/list/shown-columns.queries.ts';
import type { LogLine, logFilters } from './contract.ts';

type LogFilters = z.output<z.ZodObject<typeof logFilters>>;
type Line = z.output<typeof LogLine>;
type LogRow = Omit<Line, 'detail'> & { detail: string | null };

const spec: ListSpec<LogRow> = {
  table: 'operator_log',
  row: sql`t.*`,
  columns: shownColumns<LogRow>({
    id: 'column',
    at: 'time',
    actor: 'column',
    token_id: 'column',
    role: 'column',
    action: 'column',
    source: 'column',
    subject: 'column',
    detail: 'column',
    remote_address: 'column',
  }),
  time: 'at',
  ties: [{ column: 'id', type: 'bigint' }],
};

/** Where the filters of `operator-log` become SQL. Each has an index: operator_log_subject, operator_log_token, … */
const logTable: FilterTable<LogFilters> = {
  subject: (subject) => byColumn('subject', subject),
  token_id: (id) => byColumn('token_id', id),
  actor: (actor) => byColumn('actor', actor),
  action: (action) => byColumn('action', action),
  source: (source) => byColumn('source', source),
};

export const operatorLog: List<LogFilters, Line> = createList(spec, {
  toQuestion: questionOf(logTable),
  toItem: ({ detail, ...line }) => ({
    ...line,
    detail: detail === null ? null : (parseJson(detail) as Record<string, unknown>),
  }),
});
