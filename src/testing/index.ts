// Samples of what is sent and published, and a subscriber's handlers without a broker, for tests. This is `tallyhook/testing` of
// the package.
// The door of this room: other rooms import from this file alone.

export {
  type EventOf,
  type SampleFields,
  type SampleOptions,
  sampleNotification,
} from './sample-notification.ts';
export { type SignedNotification, signedNotification } from './signed-notification.ts';
export { type SampleEventOptions, sampleEvent } from './sample-event.ts';
export { type MessageOptions, type SampleMessage, messageOf } from './message-of.ts';
export { type SampleDeliveryOptions, sampleDelivery } from './sample-delivery.ts';
export { type Delivered, type DeliverOptions, deliver } from './deliver.ts';
