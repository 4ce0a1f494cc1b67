// What a delivery's row leaves out, since the row says it elsewhere, and how it is read back: the SHA-256 of a body that is kept,
// and the headers that nearly every delivery has.

/** Of the JSON object of the headers, in the order in which the intake writes them. Behind it stands the number of bytes. */
const USUAL_HEADERS = '{"content-type":"application/json","content-length":"';

/** The JSON object of the headers as it is stored: without its begin, if that is the usual one for so many bytes. */
export function storedHeaders(headers: string, bodyBytes: number | null): string {
  const usual = `${USUAL_HEADERS}${bodyBytes}"`;
  return bodyBytes !== null && headers.startsWith(usual) ? headers.slice(usual.length) : headers;
}

/** SQL on a row of `deliveries`: the JSON object of the headers, byte for byte. What is stored without its begin has no brace there. */
export const HEADERS = `case when headers like '{%' then headers else '${USUAL_HEADERS}' || body_bytes || '"' || headers end`;

/** SQL on a row of `deliveries`: of the body as it came, whether it is kept or not. Null if there was none. */
export const BODY_SHA256 = 'coalesce(body_sha256, sha256(body))';
