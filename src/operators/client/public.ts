// What `tallyhook/operators` of the package exports: a part of this room's door, since what is public once must stay.

export type { HttpClientOptions as OperatorsClientOptions } from '../../base/net/http-client.ts';
export type { ListName } from '../lists.contract.ts';
export type { OrderName } from '../orders.contract.ts';
export type { Answers, Items, OrderPage, OrderPreview } from './answers.ts';
export {
  ApiAnswerError,
  type CallOptions,
  createOperatorsClient,
  InvalidAnswerError,
  type ListQuery,
  type LiveQuery,
  NoAnswerError,
  type OperatorsClient,
  type Ordered,
  type ReplayOrder,
} from './client.ts';
export type { ServerSentEvent } from './server-sent-events.ts';
