// Reads the body of a message as one of the three kinds of event, and tells them apart. For subscribers: what comes from
// somewhere else, or from a newer Tallyhook, is an outcome and not an exception.

import type {
  ConversionCompleted,
  ConversionEvent,
  ConversionFailed,
  ConversionProgress,
} from '../../contracts/types/events.ts';
import { parseIfJson } from '../base/json/json.ts';
import { eventSchemas } from './data-forms.ts';
import { dataSchema, envelope, eventType } from './envelope.ts';
import { type Kind, KINDS } from './id.ts';
import { reasonOf } from './reasons.ts';

/**
 * `unknown`: a CloudEvent of a type, or with a version of its data, that this package does not know. A queue may carry others.
 * `invalid`: no event at all. The reason names fields, and never quotes a value.
 */
export type ParsedEvent =
  | { readonly outcome: 'event'; readonly kind: Kind; readonly event: ConversionEvent }
  | { readonly outcome: 'unknown'; readonly type: string; readonly dataschema: string }
  | { readonly outcome: 'invalid'; readonly reason: string };

const kindOfType = new Map<string, Kind>(KINDS.map((kind) => [eventType(kind), kind]));

/** Made once: zod compiles a schema at its first use, which takes far longer than to check an event. */
const wholeEvent = {
  completed: envelope.extend({ data: eventSchemas.completed.loose() }),
  failed: envelope.extend({ data: eventSchemas.failed.loose() }),
  progress: envelope.extend({ data: eventSchemas.progress.loose() }),
} as const satisfies Record<Kind, unknown>;

/**
 * Never throws. Fields that are not in the schemas pass through. A number that a double cannot hold is rounded, as by JSON.parse;
 * the schemas' own fields are never that large.
 * @param body the message's content, or the CloudEvent that you have parsed already
 */
export function parseEvent(body: string | Uint8Array | object): ParsedEvent {
  const found = parsed(body);
  if (typeof found !== 'object' || found === null) return invalid('the body is not a JSON object');
  const { type, dataschema } = found as Record<string, unknown>;
  if (typeof type !== 'string') return invalid('type is not a string');
  const kind = kindOfType.get(type);
  if (kind === undefined || (typeof dataschema === 'string' && dataschema !== dataSchema(kind)))
    return { outcome: 'unknown', type, dataschema: typeof dataschema === 'string' ? dataschema : '' };
  const checked = wholeEvent[kind].safeParse(found);
  if (!checked.success) return invalid(reasonOf(checked.error));
  return { outcome: 'event', kind, event: found as ConversionEvent };
}

/** Whether the job ended well. */
export const isCompleted = (event: ConversionEvent): event is ConversionCompleted =>
  event.type === eventType('completed');

/** Whether the job ended without a result. */
export const isFailed = (event: ConversionEvent): event is ConversionFailed =>
  event.type === eventType('failed');

/** Whether the job runs, and told how far it is. */
export const isProgress = (event: ConversionEvent): event is ConversionProgress =>
  event.type === eventType('progress');

const decoder = new TextDecoder();

function parsed(body: string | Uint8Array | object): unknown {
  if (typeof body === 'string') return parseIfJson(body);
  return body instanceof Uint8Array ? parseIfJson(decoder.decode(body)) : body;
}

const invalid = (reason: string): ParsedEvent => ({ outcome: 'invalid', reason });
