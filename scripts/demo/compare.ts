// Compares the answers and the received events with what is promised. Each difference is a line for a person.

import { isDeepStrictEqual } from 'node:util';
import type { Answer, ExpectedEvent, Step } from './story.ts';

export type Received = {
  readonly routingKey: string;
  readonly messageId: string | undefined;
  readonly contentType: string | undefined;
  readonly redelivered: boolean;
  readonly event: unknown;
};

export function differences(
  steps: readonly Step[],
  answers: readonly Answer[],
  received: readonly Received[],
): string[] {
  const events = steps.flatMap(({ event }) => event ?? []);
  return [
    ...steps.flatMap((step, index) => compareAnswer(step, index, answers[index])),
    ...compareIds(events, received),
    ...received.flatMap((message) => compareMessage(message, events)),
    ...compareOrder(events, received),
  ];
}

function compareAnswer({ what, expected }: Step, index: number, answer: Answer | undefined): string[] {
  const { status, outcome, eventId } = answer ?? {};
  const found = { status, outcome, eventId };
  return isDeepStrictEqual(found, expected)
    ? []
    : [`delivery ${index + 1} (${what}) was answered ${show(found)}, not ${show(expected)}`];
}

/** Each expected event came once, and no other. */
function compareIds(events: readonly ExpectedEvent[], received: readonly Received[]): string[] {
  const count = (id: string | undefined) => received.filter(({ messageId }) => messageId === id).length;
  const wanted = new Set<string | undefined>(events.map(({ id }) => id));
  const surplus = new Set(received.map(({ messageId }) => messageId).filter((id) => !wanted.has(id)));
  return [
    ...events
      .filter(({ id }) => count(id) !== 1)
      .map(({ id }) => `${id} was received ${count(id)} times, not once`),
    ...Array.from(surplus, (id) => `${id} was received and must not have been`),
  ];
}

function compareMessage(message: Received, events: readonly ExpectedEvent[]): string[] {
  const wanted = events.find(({ id }) => id === message.messageId);
  if (wanted === undefined) return [];
  const { id, kind, source, late, data } = wanted;
  const event = (message.event ?? {}) as Record<string, unknown>;
  const expected = {
    routingKey: `job.${kind}.${source}`,
    contentType: 'application/cloudevents+json',
    redelivered: false,
    specversion: '1.0',
    id,
    type: `conversion.job.${kind}`,
    source: `/sources/${source}`,
    subject: data.job_id,
    late,
    data,
  };
  const found: typeof expected = {
    routingKey: message.routingKey,
    contentType: message.contentType ?? '',
    redelivered: message.redelivered,
    specversion: event['specversion'] as string,
    id: event['id'] as string,
    type: event['type'] as string,
    source: event['source'] as string,
    subject: event['subject'] as string,
    late: event['late'] === true,
    data: event['data'] as typeof data,
  };
  return (Object.keys(expected) as (keyof typeof expected)[])
    .filter((field) => !isDeepStrictEqual(found[field], expected[field]))
    .map((field) => `${id}: ${field} is ${show(found[field])}, not ${show(expected[field])}`);
}

/** Order is guaranteed within a job of a source; between jobs there is none. */
function compareOrder(events: readonly ExpectedEvent[], received: readonly Received[]): string[] {
  const jobs = Map.groupBy(events, ({ source, data }) => `${source}:${data.job_id}`);
  return Array.from(jobs).flatMap(([job, ofJob]) => {
    const wanted = ofJob.map(({ id }) => id);
    const found = received.flatMap(({ messageId = '' }) => (wanted.includes(messageId) ? [messageId] : []));
    if (isDeepStrictEqual(found, wanted)) return [];
    return [
      `the events of ${job} came as\n    ${found.join('\n    ')}\n  and not as\n    ${wanted.join('\n    ')}`,
    ];
  });
}

function show(value: unknown): string {
  return JSON.stringify(value) ?? 'missing';
}
