// Samples of what is sent and published, for tests. This is `tallyhook/testing` of the package.
// The door of this room: other rooms import from this file alone.

export { sampleNotification } from './sample-notification.ts';
