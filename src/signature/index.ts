// Signs and checks webhooks as the conversion service does (service interface 6.3), for senders, for handlers behind
// `tallyhook forward`, and for tests. This is `tallyhook/signature` of the package. What decides shares no code with the intake: shared
// code would share its bugs. The words for a form that is wrong are the same.
// The door of this room: other rooms import from this file alone.

export { SIGNATURE_HEADER, sign } from './sign.ts';
export { type Refusal, type Verdict, explain, verify } from './verify.ts';
