// What a sender is answered: the outcome of a delivery that was recorded, or an error. The intake answers by these tables, and
// the OpenAPI document of the intake is made from them, so that neither can say what the other does not.

/** The status of the answer `{"outcome": …, "event_id": …}`. */
export const OUTCOME_STATUS = { accepted: 202, quarantined: 202, duplicate: 200, conflict: 200 } as const;

/** The status of an error, and its `error` code. */
export const DELIVERY_ERRORS = {
  malformed: { httpStatus: 400, error: 'malformed' },
  incomplete: { httpStatus: 400, error: 'bad_request' },
  unauthorized: { httpStatus: 401, error: 'unauthorized' },
  wrongMethod: { httpStatus: 405, error: 'method_not_allowed' },
  late: { httpStatus: 408, error: 'request_timeout' },
  tooLarge: { httpStatus: 413, error: 'payload_too_large' },
  encoded: { httpStatus: 415, error: 'unsupported_media_type' },
  unavailable: { httpStatus: 503, error: 'unavailable' },
} as const;

/** After a 503 the sender should try again soon, but not at once. */
export const RETRY_AFTER_S = 2;
