// What `tallyhook forward` prints of each delivery and of what became of it: a line on a terminal, a JSON object where it is
// piped.

import { statusOf } from '../../operators/client/index.ts';
import { colourOf } from '../../operators/kernel/list/looks.command.ts';
import type { Format, Io, Paint } from '../../terminal/io.ts';
import { clean, count, counted, duration, time } from '../../terminal/readable.ts';
import { cut, shorten, widthOf } from '../../terminal/text-width.ts';
import type { Delivery } from './follow-deliveries.ts';
import type { HandlerAnswer } from './handler-post.ts';
import type { SigningSecret } from './secrets.ts';

export type Handed =
  | (HandlerAnswer & Pick<SigningSecret, 'signedAs'>)
  | { readonly result: 'not_forwarded'; readonly reason: string };

const COLOURS = {
  ok: 'green',
  failed: 'red',
  no_answer: 'red',
  not_forwarded: 'dim',
} as const satisfies Record<Handed['result'], Format>;

export type ForwardOutput = {
  /** Shows that the handler has it now, on a terminal alone. */
  readonly start: (delivery: Delivery) => Promise<void>;
  /** `waiting`: how many deliveries are behind it. */
  readonly print: (delivery: Delivery, handed: Handed, waiting: number) => Promise<void>;
  /** A sentence for the user. */
  readonly report: (sentence: string) => void;
};

const CLEAR_LINE = '\r\u001b[2K';

export function createForwardOutput(io: Io): ForwardOutput {
  const { stdout } = io;
  let isStarted = false;

  function clear(): void {
    if (isStarted) stdout.write(CLEAR_LINE);
    isStarted = false;
  }

  return {
    start: async (delivery) => {
      if (!stdout.isTTY) return;
      isStarted = true;
      const line = [...headOf(delivery, io.paint), io.paint('dim', '→ waiting for your handler')].join('  ');
      await io.put(shorten(line, stdout.columns - 1));
    },
    print: async (delivery, handed, waiting) => {
      if (!stdout.isTTY) return io.putJson({ ...toJsonFields(handed), waiting, delivery });
      clear();
      await io.put(`${lineOf(delivery, handed, { waiting, columns: stdout.columns, paint: io.paint })}\n`);
    },
    report: (sentence) => {
      clear();
      io.complain(sentence);
    },
  };
}

function toJsonFields(handed: Handed) {
  const { result } = handed;
  const signed = { signed_as: signedAs(handed) ?? null };
  if (!('status' in handed)) return { result, reason: handed.reason, ...signed, answer: null };
  const { status, durationMs, text } = handed;
  return { result, reason: null, ...signed, answer: { status, duration_ms: durationMs, body: text } };
}

/** Of a time: without the day, which the user knows, and without fractions. */
const CLOCK = { from: 11, to: 19 };
/** Of an answer, however narrow the terminal is. */
const ANSWER_MIN_CHARS = 20;

type Head = Pick<
  Delivery,
  'received_at' | 'source' | 'outcome' | 'job_id' | 'status' | 'progress_percentage'
>;

export function lineOf(
  delivery: Head,
  handed: Handed,
  { waiting, columns, paint }: { waiting: number; columns: number; paint: Paint },
): string {
  const source = signedAs(handed);
  const head = [
    ...headOf(delivery, paint),
    paint(COLOURS[handed.result], saidBy(handed)),
    source === undefined ? '' : paint('yellow', `(signed with the secret of "${clean(source)}")`),
    waiting > 0 ? paint('yellow', `(${count(waiting)} more waiting)`) : '',
  ]
    .filter((part) => part !== '')
    .join('  ');
  if (!('text' in handed)) return head;
  const room = columns - widthOf(head) - 2;
  return `${head}  ${cut(clean(handed.text.trim()), Math.max(ANSWER_MIN_CHARS, room))}`.trimEnd();
}

function headOf(delivery: Head, paint: Paint): readonly string[] {
  const { received_at: at, source, outcome, job_id: job } = delivery;
  return [
    paint('dim', time(at).slice(CLOCK.from, CLOCK.to)),
    paint(colourOf(outcome) ?? 'bold', clean(outcome).padEnd(12)),
    clean(source),
    job ? paint('bold', clean(job)) : '',
    clean(statusOf(delivery)),
  ].filter((part) => part !== '');
}

const signedAs = (handed: Handed) => ('signedAs' in handed ? handed.signedAs : undefined);

function saidBy(handed: Handed): string {
  if (handed.result === 'not_forwarded') return `not forwarded: ${clean(handed.reason)}`;
  if (!('status' in handed)) return `→ ${clean(handed.reason)}`;
  const { status, durationMs } = handed;
  const isRedirect = status >= 300 && status < 400;
  return `→ ${status} in ${duration(durationMs)}${isRedirect ? ', redirect not followed' : ''}`;
}

type Tally = Readonly<Record<Handed['result'] | 'in_progress' | 'waiting', number>>;

export function sumOf({ ok, failed, no_answer, not_forwarded, in_progress, waiting }: Tally): string {
  const bad = failed + no_answer;
  const done = `${counted(ok + bad, 'delivery')} forwarded, ${count(bad)} of them failed; ${count(not_forwarded)} not forwarded`;
  if (in_progress + waiting === 0) return done;
  return `${done}; stopped with ${count(in_progress)} in progress and ${count(waiting)} waiting`;
}
