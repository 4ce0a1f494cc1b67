// The SHA-256 of a delivery's body. A row that keeps the body does not say it again.

/** SQL on a row of `deliveries`: of the body as it came, whether it is kept or not. Null if there was none. */
export const BODY_SHA256 = 'coalesce(body_sha256, sha256(body))';
