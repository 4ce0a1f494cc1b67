// Reads a form that a page of ours sent: `application/x-www-form-urlencoded`, bounded.

import type { Request } from 'express';
import { getRawBody } from 'raw-body';

/** Fits a thousand ids that were ticked, of ordinary length. */
const FORM_MAX_BYTES = 64 * 1024;
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/** The body is not a form, is too large, or did not arrive whole. */
export class FormError extends Error {
  override readonly name = 'FormError';
  readonly status: 400 | 413 | 415;

  constructor(status: FormError['status'], message: string) {
    super(message);
    this.status = status;
  }
}

/** Line ends are `\n`: browsers send `\r\n`. @throws FormError */
export async function readForm(request: Request): Promise<URLSearchParams> {
  const { 'content-type': type = '', 'content-length': length = null } = request.headers;
  if (!FORM_TYPE.test(type)) throw new FormError(415, 'This address takes a form.');
  let bytes: Buffer;
  try {
    bytes = await getRawBody(request, { length, limit: FORM_MAX_BYTES });
  } catch (error) {
    const isTooLarge = (error as { status?: unknown }).status === 413;
    throw isTooLarge
      ? new FormError(413, `The form is larger than ${FORM_MAX_BYTES} bytes.`)
      : new FormError(400, 'The form did not arrive whole.');
  }
  const form = new URLSearchParams();
  for (const [name, value] of new URLSearchParams(bytes.toString('latin1'))) {
    form.append(name, value.replaceAll('\r\n', '\n'));
  }
  return form;
}
