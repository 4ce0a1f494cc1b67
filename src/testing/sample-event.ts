// An event as subscribers get it. Its attributes are made where the relay's are, and its data is checked by the schemas by which
// deliveries are understood: a test with an event that Tallyhook would never publish proves nothing.

import { attributesOf, eventSchemas, type Kind, reasonOf } from '../event/index.ts';
import { DEFAULT_SOURCE, SOURCE_NAME } from '../base/text/source-name.ts';
import { type EventOf, SAMPLE_END_MS, sampleFields, type SampleOptions } from './sample-notification.ts';

export type SampleEventOptions<K extends Kind = Kind> = SampleOptions<K> & {
  /** Who sent the notification (`default`). */
  readonly source?: string | undefined;
  /** The event's place in the order of all events of the service, from 1 (1). */
  readonly sequence?: number | bigint | undefined;
  /** Whether it was recorded after its job had ended (false). */
  readonly late?: boolean | undefined;
};

/** A quarter of a second after the job told of it, as on a good day. */
const RECORDED_AFTER_MS = 250;

/**
 * An event as `parseEvent` gives it. The same options give the same event.
 * @throws TypeError for a kind, fields or a source with which there can be no event; it names the field
 */
export function sampleEvent<K extends Kind>(options: SampleEventOptions<K>): EventOf<K> {
  const { source = DEFAULT_SOURCE, sequence = 1, late = false, endMs = SAMPLE_END_MS } = options;
  if (!SOURCE_NAME.test(source)) throw new TypeError('source is not a name that a source can have');
  const data = checked(options.kind, sampleFields(options));
  const attributes = attributesOf({
    sequence: String(sequence),
    source,
    jobId: data.job_id,
    status: data.status,
    progress: data.status === 'processing' ? data.progress_percentage : null,
    late,
    occurredAt: endOf(data),
    recordedAt: new Date(endMs + RECORDED_AFTER_MS),
  });
  return { ...attributes, data } as EventOf<K>;
}

function checked(kind: Kind, fields: Record<string, unknown>) {
  const result = eventSchemas[kind].loose().safeParse(fields);
  if (!result.success) throw new TypeError(`there is no such event: ${reasonOf(result.error)}`);
  return result.data;
}

function endOf(data: ReturnType<typeof checked>): string | null {
  if (data.status === 'completed') return data.completed_at;
  return data.status === 'failed' ? data.failed_at : null;
}
