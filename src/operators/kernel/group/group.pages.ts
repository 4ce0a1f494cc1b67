// How much waits of each kind, above the list of it: by reason, queue or source, with what can be done to a whole group.

import { type Content, html } from '../../../web/index.ts';
import { address } from '../view/links.ts';
import { exact } from '../view/numbers.ts';
import { type Column, renderTable } from '../view/table.ts';
import { explained } from '../view/texts.ts';
import { utc } from '../view/times.ts';

export type Group = {
  readonly value: string | null;
  readonly count: number;
  readonly count_is_exact: boolean;
  readonly oldest_at: string;
};

type Options<G extends Group> = {
  /** Of the list. */
  readonly path: string;
  readonly by: string;
  readonly choices: readonly string[];
  readonly filters: Readonly<Record<string, string>>;
  readonly found: { readonly items: readonly G[]; readonly has_more: boolean; readonly complete: boolean };
  /** The filters of the list that show the group alone. */
  readonly filterOf: (group: G) => Readonly<Record<string, string>>;
  readonly before?: readonly Column<G>[];
  readonly actions?: ((group: G) => Content) | undefined;
  /** The group of those without such a value. */
  readonly none?: string;
};

/** As many fit above a list. */
const SHOWN_MAX = 12;

export function renderGroups<G extends Group>(options: Options<G>): Content {
  const { path, by, choices, filters, found, filterOf, before = [], actions, none = 'none' } = options;
  if (found.items.length === 0) return undefined;
  const columns: readonly Column<G>[] = [
    {
      head: 'Count',
      cell: ({ count, count_is_exact: isExact }) => `${exact(count)}${isExact ? '' : '+'}`,
      form: 'number',
    },
    ...before,
    {
      head: `${by.charAt(0).toUpperCase()}${by.slice(1)}`,
      cell: (group) =>
        html`<a href="${address(path, { ...filters, ...filterOf(group) })}">${explained(group.value) ?? none}</a>`,
      form: 'text',
    },
    { head: 'Oldest (UTC)', cell: (group) => utc(group.oldest_at), form: 'brief' },
    ...(actions === undefined ? [] : [{ head: 'Actions', cell: actions, form: 'act' as const }]),
  ];
  const more = found.items.length - SHOWN_MAX;
  return html`<section class="groups"><div class="groups-head"><h2>Groups</h2><p>by ${choices.map((choice, index) => html`${index > 0 && ' · '}${choice === by ? html`<b>${choice}</b>` : html`<a href="${address(path, { ...filters, by: choice })}">${choice}</a>`}`)}</p></div>
${renderTable({ caption: `What is waiting, by ${by}`, columns, items: found.items.slice(0, SHOWN_MAX), empty: '' })}
${(more > 0 || found.has_more || !found.complete) && html`<p class="hint">There are more: these are the largest${!found.complete && ' among the oldest entries'}.</p>`}</section>`;
}

/** What the address says, or the first choice. */
export function byIn<T extends string>(query: URLSearchParams, choices: readonly [T, ...T[]]): T {
  return choices.find((choice) => choice === query.get('by')) ?? choices[0];
}
