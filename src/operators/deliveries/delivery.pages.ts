// One delivery. Its body, and what differs where it is a conflict, are shown at a press: each reading is a line of the operator
// log.

import { buffer } from 'node:stream/consumers';
import { type Content, html } from '../../web/index.ts';
import { get, type Page, post, type View, type Visit } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { renderBody } from '../kernel/view/body.ts';
import { missing } from '../kernel/view/missing.ts';
import { copyable } from '../kernel/view/texts.ts';
import { DeliveryDetail } from './contract.ts';
import { Difference } from './difference.contract.ts';
import { renderDifference } from './difference.pages.ts';
import { renderDeliveryFacts, renderHeaders } from './facts.pages.ts';

const SHOW = 'showDelivery';
const BODY = 'showDeliveryBody';
const DIFFERENCE = 'showDifference';
const PATH = '/deliveries/:id' as const;

/** What a press has shown. */
type Shown = { readonly body?: Content; readonly difference?: Content };

export const readBodyOf = async ({ calls }: Visit, id: string): Promise<Buffer> =>
  buffer((await calls.stream(BODY, { params: { id } })).stream);

async function view(visit: Visit, shown: Shown = {}): Promise<View> {
  const { calls, params, origin } = visit;
  const deliveryId = params['id'] ?? '';
  const delivery = await calls.find(SHOW, DeliveryDetail, { params: { id: deliveryId } });
  if (delivery === undefined) {
    return missing(
      'delivery',
      html`It may have expired: deliveries are deleted after as many days as <code>RETENTION_DAYS</code> says. Look in <a href="/console/deliveries">the list</a>.`,
    );
  }
  return {
    title: `Delivery ${delivery.id}`,
    heading: html`Delivery ${copyable(delivery.id)}`,
    body: html`${delivery.outcome === 'quarantined' && delivery.released_at === null && delivery.discarded_at === null && QUARANTINED}
${renderDeliveryFacts(delivery)}
${renderDifferencePart(visit, delivery, shown.difference)}
<h2 id="body">Body</h2>
${renderBodyPart(visit, delivery, shown.body)}
<h2>Headers</h2>
${renderHeaders(delivery.headers)}`,
    sameAs: sameAs(origin, {
      command: ['deliveries', 'show', delivery.id],
      path: `/deliveries/${delivery.id}`,
    }),
  };
}

const QUARANTINED = html`<div class="notice warn"><p>It waits for a decision in <a href="/console/quarantine">the quarantine</a>.</p></div>`;

function renderBodyPart({ calls }: Visit, delivery: DeliveryDetail, shown: Content): Content {
  if (!delivery.body_kept) {
    return html`<p class="dim">The body is not kept. Bodies of duplicate, refused and unauthorized deliveries never are.</p>`;
  }
  if (!calls.may(BODY)) return html`<p class="dim">Only the role auditor and above may see bodies.</p>`;
  const action = `/console/deliveries/${delivery.id}`;
  return html`${shown}
<div class="actions">${
    shown === undefined &&
    html`<form method="post" action="${action}/body#body"><button>Show the body</button></form>`
  }<form method="post" action="${action}/download"><button>Download</button></form></div>
<p class="hint">Each view is recorded in the operator log.</p>`;
}

function renderDifferencePart({ calls }: Visit, { id, outcome }: DeliveryDetail, shown: Content): Content {
  if (outcome !== 'conflict' || !calls.may(DIFFERENCE)) return undefined;
  return html`<h2 id="difference">What differs from the event</h2>
${
  shown ??
  html`<form method="post" action="/console/deliveries/${id}/difference#difference"><button>Compare the two bodies</button></form>
<p class="hint">Both views are recorded in the operator log.</p>`
}`;
}

export const deliveryPages: readonly Page[] = [
  get(PATH, [SHOW], (visit) => view(visit)),
  // A reload of what a form showed, or its address in a chat, leads to the page itself.
  ...(['body', 'download', 'difference'] as const).map((part) =>
    get(`${PATH}/${part}`, [SHOW], async ({ params }) => ({
      seeOther: `/console/deliveries/${encodeURIComponent(params['id'] ?? '')}`,
    })),
  ),
  post(`${PATH}/body`, [SHOW, BODY], async (visit) =>
    view(visit, { body: renderBody(await readBodyOf(visit, visit.params['id'] ?? '')) }),
  ),
  post(`${PATH}/download`, [BODY], async (visit) => {
    const id = visit.params['id'] ?? '';
    return { bytes: await readBodyOf(visit, id), filename: `${id}.bin` };
  }),
  post(`${PATH}/difference`, [SHOW, DIFFERENCE], async (visit) => {
    const found = await visit.calls.call(DIFFERENCE, Difference, {
      params: { id: visit.params['id'] ?? '' },
    });
    return view(visit, { difference: renderDifference(found) });
  }),
];
