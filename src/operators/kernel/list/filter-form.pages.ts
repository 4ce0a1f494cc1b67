// The form of a list's filters, made from the contract: each parameter of the API is a field. A GET form, so the list's state
// is its address. On a narrow screen it is folded (console.css), since it would push the list away.

import { z } from 'zod';
import { type Content, type Html, html } from '../../../web/index.ts';
import type { Query } from '../console/calls.ts';
import type { InputFault } from '../operation/input-faults.ts';
import { hiddenFields } from '../view/act.ts';
import { address } from '../view/links.ts';
import type { Filters } from './filters.contract.ts';

const HINTS = { time: '24h or 2026-01-31', seconds: '15m or 24h' } as const;

export type FilterFormOptions = {
  readonly action: string;
  readonly filters: Filters;
  /** Shown at once; the others below "more", which is open where one of them is set. */
  readonly first: readonly string[];
  readonly values: Readonly<Record<string, string>>;
  readonly sources: readonly string[];
  /** Parameters that are no filters, and stay as they are. */
  readonly kept?: Query;
  /** Each stands beside its field. */
  readonly faults?: readonly InputFault[];
};

export function renderFilterForm(options: FilterFormOptions): Html {
  const { action, filters, first, values, faults = [], kept = {} } = options;
  const names = Object.keys(filters);
  const shown = first.filter((name) => names.includes(name));
  const more = names.filter((name) => !shown.includes(name));
  const isMoreSet = more.some((name) => values[name] !== undefined);
  const set = Object.keys(values).length;
  return html`<details class="fold"${faults.length > 0 && html` open`}><summary>Filters${set > 0 && ` (${set})`}</summary>
<form class="filters" action="${action}" aria-label="Filters" autocomplete="off">${hiddenFields(kept)}
${shown.map((name) => renderField(name, options))}${
  more.length > 0 &&
  html`<details${isMoreSet && html` open`}><summary>More filters</summary><div class="filters">${more.map((name) => renderField(name, options))}</div></details>`
}<span class="actions"><button>Filter</button>${set > 0 && html`<a href="${address(action, kept)}">Clear</a>`}</span>
</form></details>`;
}

export function renderField(
  name: string,
  {
    filters,
    values,
    sources,
    faults = [],
  }: Pick<FilterFormOptions, 'filters' | 'values' | 'sources' | 'faults'>,
): Html {
  const { label = name, unset, converts } = filters[name]?.form ?? {};
  const { marks, said } = marksOf(name, faults);
  const value = values[name] ?? unset ?? '';
  const choices = name === 'source' ? sources : choicesOf(filters[name]);
  if (choices === undefined) {
    const hint = converts && HINTS[converts];
    return html`<label>${label} <input name="${name}" value="${value}" spellcheck="false" autocomplete="off"${hint && html` placeholder="${hint}"`}${marks}>${said}</label>\n`;
  }
  // A value that is no choice any more, such as a source that was removed, still filters.
  const all = value === '' || choices.includes(value) ? choices : [...choices, value];
  return html`<label>${label} <select name="${name}"${marks}>${unset === undefined && html`<option value="">any</option>`}${all.map(
    (choice) => html`<option${choice === value && html` selected`}>${choice}</option>`,
  )}</select>${said}</label>\n`;
}

/** The attributes of a field that is at fault, and what stands behind it. */
export function marksOf(
  name: string,
  faults: readonly InputFault[],
): { readonly marks: Content; readonly said: Content } {
  const fault = faults.find((one) => one.name === name);
  if (fault === undefined) return { marks: undefined, said: undefined };
  return {
    marks: html` aria-invalid="true" aria-describedby="fault-of-${name}"`,
    said: html` <span class="fault" id="fault-of-${name}">${fault.message}</span>`,
  };
}

/** Above a form with such fields. @param noun `filter` or `field` */
export function markedNotice({ length }: readonly InputFault[], noun: string): Html {
  const marked = length === 1 ? `${noun} that is` : `${noun}s that are`;
  return html`<div class="notice bad"><p><strong>The request is not valid:</strong> see the ${marked} marked.</p></div>`;
}

/** The words that a parameter takes; undefined if it takes any text. */
function choicesOf(schema: unknown): readonly string[] | undefined {
  if (schema instanceof z.ZodOptional) return choicesOf(schema.unwrap());
  if (schema instanceof z.ZodPipe) return choicesOf(schema.in);
  return schema instanceof z.ZodEnum ? schema.options.map(String) : undefined;
}

/** What the form of an empty field sent is no filter. */
export function filtersIn(query: URLSearchParams, filters: Filters): Record<string, string> {
  const given = Array.from(query).filter(([name, value]) => name in filters && value.trim() !== '');
  return Object.fromEntries(given.map(([name, value]) => [name, value.trim()]));
}

export const emptyList = (what: string, values: object, otherwise: Content): Content =>
  Object.keys(values).length > 0 ? `No ${what} match these filters.` : otherwise;
