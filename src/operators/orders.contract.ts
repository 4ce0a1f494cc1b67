// All orders by their addresses, with the forms of what they take and answer. The API's operations, the client and the console
// are made from them.

import type { z } from 'zod';
import {
  DecidedEntries,
  DiscardEntriesOrder,
  EntriesAnswer,
  OutboxPreview,
  ParkOrder,
  RetryOrder,
} from './outbox/orders.contract.ts';
import {
  DecidedDeliveries,
  DeliveriesAnswer,
  DiscardOrder,
  QuarantinePreview,
  ReleaseOrder,
} from './quarantine/contract.ts';

const ofEntries = { answer: EntriesAnswer, page: DecidedEntries, preview: OutboxPreview } as const;
const ofDeliveries = {
  answer: DeliveriesAnswer,
  page: DecidedDeliveries,
  preview: QuarantinePreview,
} as const;

/** `answer`: a page of what was done, or the preview of a dry run. */
export const ORDERS = {
  'outbox/retry': { id: 'retryEntries', order: RetryOrder, ...ofEntries },
  'outbox/discard': { id: 'discardEntries', order: DiscardEntriesOrder, ...ofEntries },
  'outbox/park': { id: 'parkEntries', order: ParkOrder, ...ofEntries },
  'quarantine/release': { id: 'releaseDeliveries', order: ReleaseOrder, ...ofDeliveries },
  'quarantine/discard': { id: 'discardDeliveries', order: DiscardOrder, ...ofDeliveries },
} as const;

export type OrderName = keyof typeof ORDERS;
/** As a caller may give it. */
export type OrderOf<Name extends OrderName> = z.input<(typeof ORDERS)[Name]['order']>;
