// What an event is: its kinds, its id, the form of its data, and the CloudEvent that subscribers get. Knows no server and no
// client, so that a subscriber can use it alone: `tallyhook/events` of the package is the part of it in public.ts.
// The door of this room: other rooms import from this file alone.

export type * from '../../contracts/types/events.ts';
export { type Kind, type Status, KINDS, eventId, isStatus, kindOf, parseEventId } from './id.ts';
export {
  CLOUD_EVENT_TYPE,
  SEQUENCE_DIGITS,
  dataSchema,
  envelope,
  eventSource,
  eventType,
  routingKey,
} from './envelope.ts';
export { type RecordedEvent, attributesOf } from './attributes.ts';
export { addressee, eventSchemas } from './data-forms.ts';
export { type Form, addresseeForm, dataForm, envelopeForm, notificationForm, toForm } from './forms.ts';
export { type PlainValue, isUsual } from './usual-data.ts';
export { REASON_MAX_LENGTH, listReasons, reasonOf } from './reasons.ts';
export { type ParsedEvent, isCompleted, isFailed, isProgress, parseEvent } from './parse-event.ts';
