// The checks of signatures: that a right one is accepted for each secret, that a forged or missing one is refused, and that the
// bytes of a body arrive unchanged. They use bodies that are authentic and no notifications, so that none of them makes an event.

import { randomBytes } from 'node:crypto';
import type { NamedSecret } from '../verify/secrets.ts';
import { explain, isMalformed, isSuccess, isUnauthorized } from './explain.ts';
import { type CheckName, type Finding, failed, ok, warning } from './finding.ts';
import { type Answer, type Endpoint, post, probe } from './probe.ts';
import { isTlsByMistake } from './tls.ts';

/** A JSON object without `job_id` and `status`. Each is another one, so that no answer can come from a cache. */
export const malformedBody = (): Buffer =>
  Buffer.from(JSON.stringify({ tallyhook_doctor: randomBytes(8).toString('hex') }));

export type Signed = {
  readonly findings: readonly Finding[];
  /** The first secret that was accepted. */
  readonly secret?: string | undefined;
  /** Something takes bodies at this address: what it does with forged ones is worth a look. */
  readonly isReceiving: boolean;
};

/** One finding for each secret. */
export async function checkSignatures(endpoint: Endpoint, secrets: readonly NamedSecret[]): Promise<Signed> {
  const answers: { readonly named: NamedSecret; readonly answer: Answer }[] = [];
  for (const named of secrets) {
    const isReached = answers.length > 0;
    const answer = await post({ ...endpoint, isReached }, malformedBody(), named);
    answers.push({ named, answer });
    if (answer.kind === 'none') break; // the others would wait for as long
  }
  const accepted = answers.find(({ answer }) => isMalformed(answer));
  const isTls = answers.some(({ answer }) => isOfNobody(answer)) && (await isTlsByMistake(endpoint));
  const isAnotherAccepted = accepted !== undefined;
  return {
    findings: answers.map(({ named, answer }) => judge(named.name, answer, { isAnotherAccepted, isTls })),
    secret: accepted?.named.secret,
    isReceiving: answers.some(
      ({ answer }) => isMalformed(answer) || isUnauthorized(answer) || isSuccess(answer),
    ),
  };
}

/** As a port of TLS answers http: it hangs up, or a proxy says 400. */
const isOfNobody = (answer: Answer) =>
  answer.kind === 'none' || (answer.status === 400 && answer.fields['error'] === undefined);

function judge(
  name: string,
  answer: Answer,
  { isAnotherAccepted, isTls }: { isAnotherAccepted: boolean; isTls: boolean },
): Finding {
  if (isMalformed(answer)) return ok('signature', `accepted, with the secret in ${name}`, { secret: name });
  if (isUnauthorized(answer)) {
    return failed('signature', {
      found: `refused with 401, with the secret in ${name}`,
      mend: isAnotherAccepted ? ONLY_SECRET : REFUSED,
    });
  }
  const { found, mend } = explain(answer, 'a signed body that is no notification');
  return failed('signature', { found, mend: isTls && isOfNobody(answer) ? NEEDS_HTTPS : mend });
}

const NEEDS_HTTPS = 'this port speaks TLS: use the address with https:// in place of http://';

const ONLY_SECRET =
  'another secret is accepted, so path and proxy are right: add this one to the source, or sign with it no more';
const REFUSED = `one of these:
- the secret is not one of this source, or not any more
- the path names another source: /webhooks is "default", /webhooks/<source> a named one
- a proxy changes the body, or removes X-Service-Signature
An operator sees which: tallyhook deliveries list --outcome unauthorized. tallyhook verify checks what your own code signs`;

/** Two: by a secret that nobody has, and a right one that belongs to another body. */
export async function checkForged(endpoint: Endpoint, secrets: readonly NamedSecret[]): Promise<Finding> {
  const stranger = await post(endpoint, malformedBody(), { secret: randomBytes(32).toString('hex') });
  if (!isUnauthorized(stranger)) return notRefused('forged', stranger, 'a body signed with another secret');
  for (const { secret } of secrets) {
    const changed = await post(endpoint, malformedBody(), { secret, signed: malformedBody() });
    if (!isUnauthorized(changed)) return notRefused('forged', changed, 'a body changed after signing');
  }
  return ok('forged', 'refused with 401: a signature of another secret, and one of a body that was changed');
}

export async function checkUnsigned(endpoint: Endpoint): Promise<Finding> {
  const answer = await probe(endpoint, { body: malformedBody() });
  if (!isUnauthorized(answer)) return notRefused('unsigned', answer, 'a body without a signature');
  return ok('unsigned', 'refused with 401');
}

function notRefused(check: CheckName, answer: Answer, sent: string): Finding {
  const { found, mend } = explain(answer, sent);
  // Tallyhook looks at the form of a body only after its signature.
  if (isSuccess(answer) || isMalformed(answer)) {
    return failed(check, { found: `THE WORST FAULT: accepted. ${found}`, mend: WORST });
  }
  const isRefused = answer.kind === 'answer' && answer.status >= 400 && answer.status < 500;
  return isRefused ? warning(check, { found, mend }) : failed(check, { found, mend });
}

const WORST =
  'whoever knows the address can report jobs as completed. Let no sender use it before signatures are checked: is it Tallyhook that answers here?';

/** JSON that a program which reads and writes it again, or that changes line ends or text, would not leave as it is. */
const oddBody = (): Buffer =>
  Buffer.from(
    `{\r\n\t"tallyhook_doctor" :  "${randomBytes(8).toString('hex')}",\n` +
      '"text":"ä e\u0301 文 🎬 \\u00e4 \\/ <&>", "numbers": [1.50, 1E2, 12345678901234567890] ,"a": 1, "a": 2 }\r\n \n',
  );

export async function checkBytes(endpoint: Endpoint, secret: string): Promise<Finding> {
  const answer = await post(endpoint, oddBody(), { secret });
  if (isMalformed(answer)) {
    return ok('bytes', 'a body with odd white space, line ends and characters arrives unchanged');
  }
  if (!isUnauthorized(answer)) return failed('bytes', explain(answer, 'a body with odd white space'));
  return failed('bytes', {
    found:
      'a body with odd white space, line ends and characters was refused with 401: it was changed on its way',
    mend: 'the proxy in front has to pass bodies on byte for byte: it must not format JSON, or change line ends or characters',
  });
}
