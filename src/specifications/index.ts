// The documents that describe Tallyhook to others, made from the code that checks and answers: AsyncAPI of the events, OpenAPI of
// the intake, and the released JSON Schemas.
// The door of this room: other rooms import from this file alone.

export { type AsyncApiDocument, type Bus, createAsyncApiDocument } from './asyncapi.ts';
export { type IntakeDocument, createIntakeDocument } from './intake.ts';
export type { IntakeLimits } from './intake-words.ts';
export { type ReleasedForm, readReleasedForms } from './released.ts';
