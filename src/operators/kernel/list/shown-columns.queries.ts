// What is shown of the rows of a list, as SQL: each field by its name, so that one that is forgotten does not compile.

import { type RawBuilder, sql } from 'kysely';
import { timeText } from '../../../ledger/index.ts';

/** `column`: as the row has it. `time`: the same, as text. Or SQL over the row. */
type Field = 'column' | 'time' | RawBuilder<unknown>;

/** The fields of `Shown`, of a row of this name. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- it says which fields there must be
export function shownColumns<Shown>(
  fields: { readonly [K in keyof Shown]-?: Field },
  row = 't',
): RawBuilder<unknown> {
  const sqlOf = (name: string, field: Field) => {
    if (field === 'time') return timeText(`${row}.${name}`);
    return field === 'column' ? sql.ref(`${row}.${name}`) : field;
  };
  return sql.join(
    Object.entries<Field>(fields).map(([name, field]) => sql`${sqlOf(name, field)} as ${sql.ref(name)}`),
  );
}
