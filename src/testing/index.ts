// Samples of what is sent and published, for tests. This is `tallyhook/testing` of the package.
// The door of this room: other rooms import from this file alone.

export { type SampleOptions, sampleNotification } from './sample-notification.ts';
export { type SignedNotification, signedNotification } from './signed-notification.ts';
export { type EventOf, type SampleEventOptions, sampleEvent } from './sample-event.ts';
export { type MessageOptions, type SampleMessage, messageOf } from './message-of.ts';
