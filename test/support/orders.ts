// Orders about one thing, as an operator gives them by its id.

import type { OrderName } from '../../src/operators/orders.contract.ts';
import type { Operators } from './operators.ts';

export type Told = {
  readonly status: number;
  /** Of the whole answer. */
  readonly body: { readonly done?: number; readonly error?: string; readonly message?: string };
  /** What became of it: of an entry or of a delivery. */
  readonly id?: string;
  readonly result?: string;
  readonly event_id?: string | null;
  readonly state?: string | null;
  readonly reason?: string | null;
};

export async function orderOne(
  { post }: Pick<Operators, 'post'>,
  name: OrderName,
  id: string,
  { key, ...more }: { readonly key?: string; readonly note?: string } = {},
): Promise<Told> {
  const order = { ids: [id], ...more };
  const { status, body } = await post<Told['body'] & { items?: Omit<Told, 'status' | 'body'>[] }>(
    `/${name}`,
    order,
    key === undefined ? {} : { key },
  );
  return { status, body, ...body.items?.[0] };
}
