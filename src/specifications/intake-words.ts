// The prose of the intake's OpenAPI document: what a sender has to do that no schema says.

import { HEADERS_TIMEOUT_MS, MAX_HEADER_BYTES } from '../http/index.ts';

export type IntakeLimits = {
  readonly bodyLimitBytes: number;
  /** For the body to arrive, and for the answer. */
  readonly answerDeadlineMs: number;
};

const seconds = (ms: number) => `${ms / 1_000} s`;
const kibibytes = (bytes: number) => (bytes % 1024 === 0 ? `${bytes / 1024} KiB` : `${bytes} bytes`);

/** Of the whole document, as CommonMark. */
export const aboutIntake = ({ bodyLimitBytes, answerDeadlineMs }: IntakeLimits): string =>
  `Send each notification as one POST, signed with the secret of your source.

## The signature

\`X-Service-Signature: sha256=<64 lowercase hex digits>\`: HMAC-SHA256 of the raw body, with the signing secret as the key. Sign the bytes
that you send, after they are made, and send exactly these. One header with one value; any other form is refused.

A source can have several valid secrets while you change them. The secret of one source is not valid for another.

## What to do after an answer

| answer | do |
|---|---|
| 200, 202 | nothing: the notification is recorded, and is not lost |
| 503, another 5xx, 408, 429, a broken connection, or none within your time limit | send the same bytes again, later |
| 400 \`bad_request\` | send the same bytes again; if the answer is the same, correct the request |
| 400 \`malformed\`, another 4xx, or a redirect | correct the request or the settings: the same request gets the same answer |

Tallyhook itself answers no 429 and no redirect, and 5xx only as 503 and 500. The others come from a proxy in front.

Sending again does no harm. A notification is the same event as an earlier one if source, \`job_id\` and \`status\` are the same; for
\`processing\` the \`progress_percentage\` must be the same too. The same content is a \`duplicate\`, other content a \`conflict\`.

## The body

JSON in UTF-8. The form of a notification depends on its \`status\`. Fields that are not in the form are allowed, and subscribers get
them unchanged. A body that breaks the form but has a usable \`job_id\` and \`status\` is not refused: it is \`quarantined\` (202). So is one
that repeats a key in an object, or is nested too deeply. The \`Content-Type\` is not checked.

## Limits

| what | limit | beyond it |
|---|---|---|
| the body | ${kibibytes(bodyLimitBytes)} | 413 |
| the head of a request | ${kibibytes(MAX_HEADER_BYTES)}, ${seconds(HEADERS_TIMEOUT_MS)} | 431, 408 |
| time for the body to arrive | ${seconds(answerDeadlineMs)} | 408 |
| time for the answer | ${seconds(answerDeadlineMs)} | 503 |

Errors are \`{"error": "<code>", "message": "<text>"}\`. After an answer to a body that was not read whole, the connection is closed.`;
