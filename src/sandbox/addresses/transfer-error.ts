// Why a download or upload failed. The message is for the client: it says what the other side did, and nothing about ours.

import { AddressError } from './connector.ts';

export class TransferError extends Error {
  override readonly name = 'TransferError';
  readonly code: 'unreachable' | 'too_large' | 'no_room';

  constructor(code: TransferError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Error code of Node, undici or OpenSSL → message for the client. */
const REASONS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'its host name does not exist',
  EAI_AGAIN: 'its host name could not be resolved',
  ECONNREFUSED: 'its host refused the connection',
  ECONNRESET: 'its host broke off the connection',
  EPIPE: 'its host broke off the connection',
  UND_ERR_SOCKET: 'its host broke off the connection',
  UND_ERR_CONNECT_TIMEOUT: 'its host did not answer in time',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'fewer bytes came than were announced',
  ERR_STREAM_PREMATURE_CLOSE: 'its host broke off the connection',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is self-signed',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate could not be verified',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host',
};

/** File system errors: our disk is full, or a file may not grow. */
const NO_ROOM = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** Converts any error of a transfer. `what` is the subject of the message, such as "the input". */
export function asTransferError(what: string, error: unknown): TransferError {
  if (error instanceof TransferError) return error;
  if (error instanceof AddressError)
    return new TransferError('unreachable', `${what} cannot be reached: ${error.message}`, { cause: error });
  const code = codeOf(error);
  if (NO_ROOM.has(code))
    return new TransferError('no_room', `there is no room for ${what} at the moment`, { cause: error });
  const reason = REASONS[code] ?? 'its host could not be spoken to';
  return new TransferError('unreachable', `${what} cannot be reached: ${reason}`, { cause: error });
}

function codeOf(error: unknown): string {
  // If every address of a host failed, the AggregateError has the code of the first.
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
}
