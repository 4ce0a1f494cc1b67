// The client of the operators' API. It knows the service by the contract alone, and passes on what its users need of that.
// The door of this room: other rooms import from this file alone.

export type { Answers, Items, OrderPage, OrderPreview } from './answers.ts';
export {
  ApiAnswerError,
  type ListQuery,
  NoAnswerError,
  type OperatorsClient,
  type Ordered,
  type ReplayOrder,
  createOperatorsClient,
} from './client.ts';
export { addressFault, tokenFault } from '../../http-client.ts';
export type { ServerSentEvent } from './server-sent-events.ts';
export { columnsFor, drawnBy, type ListColumn, type ListColumns, type Look } from '../contract/columns.ts';
export { answerOf, statusOf } from '../contract/deliveries.ts';
export { actionDetails } from '../contract/operator-log.ts';
export { EXPORTED_LISTS, type ListName, LISTS } from '../contract/lists.ts';
export { outboxGroupFilters, quarantineGroupFilters } from '../contract/groups.ts';
export { liveFilters } from '../contract/live.ts';
export { type Filter, type Filters, range, source } from '../contract/filters.ts';
export type { OrderName } from '../contract/orders.ts';
export { DECIDED_AT_ONCE, PARKABLE, WAITING } from '../contract/outbox-orders.ts';
export { DISCARDED_AT_ONCE, RELEASED_AT_ONCE } from '../contract/quarantine.ts';
export { ERROR_MESSAGE_MAX_LENGTH } from '../contract/story.ts';
export {
  REPLAY_EVENT_IDS_MAX,
  REPLAY_RATE_DEFAULT,
  REPLAY_RATE_MAX,
  replayEventFilters,
} from '../contract/replay-order.ts';
