// What `tallyhook/events` of the package exports: a part of this room's door, since what is public once must stay.

export type * from '../../contracts/types/events.ts';
export { type Kind, KINDS } from './id.ts';
export { CLOUD_EVENT_TYPE, envelope as envelopeSchema } from './envelope.ts';
export { eventSchemas as dataSchemas } from './data-forms.ts';
export { type ParsedEvent, isCompleted, isFailed, isProgress, parseEvent } from './parse-event.ts';
