// What `tallyhook forward` prints of each delivery and of what became of it: a line on a terminal, a JSON object where it is piped.

import { stripVTControlCharacters } from 'node:util';
import { colourOf, statusOf } from './columns.ts';
import type { Delivery } from './follow-deliveries.ts';
import type { HandlerAnswer } from './handler-post.ts';
import { type Format, paint, put, putJson } from './output.ts';
import { clean, count, counted, duration, time } from './readable.ts';

export type Handed = HandlerAnswer | { readonly result: 'not_forwarded'; readonly reason: string };

const COLOURS = {
  ok: 'green',
  failed: 'red',
  no_answer: 'red',
  not_forwarded: 'dim',
} as const satisfies Record<Handed['result'], Format>;

/** `waiting`: how many deliveries are behind it. */
export function print(delivery: Delivery, handed: Handed, waiting: number): Promise<void> {
  return process.stdout.isTTY
    ? put(`${lineOf(delivery, handed, { waiting, columns: process.stdout.columns })}\n`)
    : putJson({ ...toJsonFields(handed), waiting, delivery });
}

function toJsonFields(handed: Handed) {
  if (!('status' in handed)) return { ...handed, answer: null };
  const { result, status, durationMs, text } = handed;
  return { result, reason: null, answer: { status, duration_ms: durationMs, body: text } };
}

/** Of a time: without the day, which the user knows, and without fractions. */
const CLOCK = { from: 11, to: 19 };
/** Of an answer, however narrow the terminal is. */
const ANSWER_MIN_CHARS = 20;

export function lineOf(
  delivery: Pick<
    Delivery,
    'received_at' | 'source' | 'outcome' | 'job_id' | 'status' | 'progress_percentage'
  >,
  handed: Handed,
  { waiting, columns }: { waiting: number; columns: number },
): string {
  const { received_at: at, source, outcome, job_id: job } = delivery;
  const head = [
    paint('dim', time(at).slice(CLOCK.from, CLOCK.to)),
    paint(colourOf(outcome) ?? 'bold', clean(outcome).padEnd(12)),
    clean(source),
    job ? paint('bold', clean(job)) : '',
    clean(statusOf(delivery)),
    paint(COLOURS[handed.result], saidBy(handed)),
    waiting > 0 ? paint('yellow', `(${count(waiting)} more waiting)`) : '',
  ]
    .filter((part) => part !== '')
    .join('  ');
  if (!('text' in handed)) return head;
  const room = columns - stripVTControlCharacters(head).length - 2;
  return `${head}  ${cut(clean(handed.text.trim()), Math.max(ANSWER_MIN_CHARS, room))}`.trimEnd();
}

function saidBy(handed: Handed): string {
  if (handed.result === 'not_forwarded') return `not forwarded: ${clean(handed.reason)}`;
  return 'status' in handed
    ? `→ ${handed.status} in ${duration(handed.durationMs)}`
    : `→ ${clean(handed.reason)}`;
}

const cut = (text: string, chars: number) => (text.length > chars ? `${text.slice(0, chars - 1)}…` : text);

export function sumOf({ ok, failed, no_answer, not_forwarded }: Record<Handed['result'], number>): string {
  const bad = failed + no_answer;
  return `${counted(ok + bad, 'delivery')} forwarded, ${count(bad)} of them failed; ${count(not_forwarded)} not forwarded`;
}
