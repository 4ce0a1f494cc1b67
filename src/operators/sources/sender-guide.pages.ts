// How to point a sender at a source: the address, the rule of the signature, and lines for a shell that send a delivery to the
// running service. The lines name the secret by a variable.

import { shellWord } from '../../base/text/shell-word.ts';
import { type Html, html } from '../../web/index.ts';
import { renderFacts } from '../kernel/view/facts.ts';

/** The source whose webhooks come without a name in their path. */
const DEFAULT = 'default';
/** Harmless: progress of a job that no sender has. Sent twice, the second one is a duplicate. */
const SAMPLE = '{"job_id":"job_try","status":"processing","progress_percentage":45}';

export function renderSenderGuide({ name, intake }: { name: string; intake: string }): Html {
  const path = name === DEFAULT ? '/webhooks' : `/webhooks/${encodeURIComponent(name)}`;
  const url = `${intake}${path}`;
  return html`<h2>Point a sender at it</h2>
${renderFacts([
  ['URL on this host', html`<code data-copy>${url}</code>`],
  [
    'URL for the sender',
    html`<code>https://<i>your host</i>${path}</code>, if a proxy or balancer stands in front of this service: it alone knows that name`,
  ],
  ['Method and body', 'POST with JSON'],
  [
    'Signature',
    html`the header <code>X-Service-Signature: sha256=<i>hex</i></code>: HMAC-SHA256 of the body’s bytes as they are sent, with the signing secret as the key, as 64 lower-case hex digits`,
  ],
  [
    'Answer',
    'any 2xx: it is recorded, and need not be sent again. 401: the signature is wrong. 503: send it again later',
  ],
  ['For programs', html`<a href="/api/v1/openapi.intake.json">OpenAPI 3.1</a>, with every answer`],
])}
<p>Try it. Set <code>SIGNING_SECRET</code> to one of the source’s secrets first; this page does not know them.</p>
<pre tabindex="0" class="wrapped" data-copy aria-label="Send a signed delivery with curl">${curlLines(url)}</pre>
<p class="hint">The answer is 202 <code>accepted</code>, and 200 <code>duplicate</code> when you send it again. With the command line: <code>tallyhook send progress${name === DEFAULT ? '' : ` --source ${name}`}</code>. Why a signature fails: <code>tallyhook verify</code>.</p>`;
}

const curlLines = (url: string): string => `body=${shellWord(SAMPLE)}
signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$SIGNING_SECRET" | sed 's/.*= //')
curl -i ${shellWord(url)} -H 'Content-Type: application/json' -H "X-Service-Signature: sha256=$signature" --data-binary "$body"`;
