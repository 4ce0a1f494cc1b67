// The client of the operators' API. It knows the service by the contract alone, and passes on what its users need of that.
// The door of this room: other rooms import from this file alone.

export { addressFault, tokenFault } from '../../base/net/http-client.ts';
export { answerOf, statusOf } from '../deliveries/contract.ts';
export { outboxGroupFilters, quarantineGroupFilters } from '../groups/contract.ts';
export {
  columnsFor,
  drawnBy,
  type ListColumn,
  type ListColumns,
  type Look,
} from '../kernel/list/columns.contract.ts';
export { type Filter, type Filters, range, source } from '../kernel/list/filters.contract.ts';
export { EXPORTED_LISTS, LISTS, type ListName } from '../lists.contract.ts';
export { liveFilters } from '../live/contract.ts';
export { actionDetails } from '../operator-log/contract.ts';
export type { OrderName } from '../orders.contract.ts';
export { DECIDED_AT_ONCE, PARKABLE, WAITING } from '../outbox/orders.contract.ts';
export { DISCARDED_AT_ONCE, RELEASED_AT_ONCE } from '../quarantine/contract.ts';
export {
  REPLAY_EVENT_IDS_MAX,
  REPLAY_RATE_DEFAULT,
  REPLAY_RATE_MAX,
  replayEventFilters,
} from '../replays/order.contract.ts';
export { ERROR_MESSAGE_MAX_LENGTH } from '../story/contract.ts';
export type { Answers, Items, OrderPage, OrderPreview } from './answers.ts';
export {
  ApiAnswerError,
  createOperatorsClient,
  type ListQuery,
  NoAnswerError,
  type OperatorsClient,
  type Ordered,
  type ReplayOrder,
} from './client.ts';
export type { ServerSentEvent } from './server-sent-events.ts';
