// The client of the operators' API. It knows the service by its answers alone.
// The door of this room: other rooms import from this file alone.

export {
  ApiAnswerError,
  type Delivery,
  type DryRun,
  type Entry,
  type Event,
  type Items,
  type Job,
  type ListName,
  NoAnswerError,
  type OperatorsClient,
  type OutboxCounts,
  type Publication,
  type Query,
  type Release,
  type Replay,
  type ReplayOrder,
  type ServerSentEvent,
  type Source,
  type Stats,
  type StoryItem,
  type StoryReplay,
  createOperatorsClient,
} from './client.ts';
export { addressFault, tokenFault } from '../../http-client.ts';
