// Reads HTTP/1.1 answers from a kept-alive connection: their status and where they end. Supports only what the servers of this
// benchmark send (a Content-Length). Anything else is an error.

export type HttpAnswer = { readonly status: number; readonly closes: boolean };

/** Answers here have some hundred bytes. A longer one than this is an error. */
const ANSWER_MAX_BYTES = 64 * 1024;

/** @returns a function that takes each chunk and returns the answers that it completes. It throws on unexpected input */
export function createAnswerReader(): (chunk: Buffer) => HttpAnswer[] {
  let pending: Buffer | undefined;
  return (chunk) => {
    let rest = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
    pending = undefined;
    const answers: HttpAnswer[] = [];
    while (rest.length > 0) {
      const found = readAnswer(rest);
      if (found === undefined) {
        if (rest.length > ANSWER_MAX_BYTES) throw new Error('an answer without an end');
        pending = rest;
        break;
      }
      answers.push(found.answer);
      rest = rest.subarray(found.end);
    }
    return answers;
  };
}

function readAnswer(bytes: Buffer): { answer: HttpAnswer; end: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  const status = /^HTTP\/1\.1 (\d{3})/.exec(head)?.[1];
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (status === undefined || length === undefined)
    throw new Error(`no answer that we can read: ${head.slice(0, 80)}`);
  const end = headEnd + 4 + Number(length);
  if (bytes.length < end) return undefined;
  return { answer: { status: Number(status), closes: /\r\nconnection: *close/i.test(head) }, end };
}
