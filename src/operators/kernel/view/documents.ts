// Where the documents stand in the console, and which section is about which page.

export const DOCUMENTS = '/console/docs';

/** The place of a heading on a page of the console, whose own ids it must not meet: `#deciding` is `#about-deciding`. */
export const placeOfAnchor = (anchor: string): string => `about-${anchor}`;

/** @param anchor of a heading, as GitHub makes it */
export const documentHref = (name: string, anchor?: string): string =>
  `${DOCUMENTS}/${name}${anchor === undefined ? '' : `#${placeOfAnchor(anchor)}`}`;

/** By the begin of a page's address below `/console`; the first that fits. In docs/console.md, where no other is named. */
const SECTIONS: readonly (readonly [begin: string, anchor: string])[] = [
  ['/incidents', 'incidents'],
  ['/live', 'live'],
  ['/outbox/', 'deciding'],
  ['/outbox', 'outbox'],
  ['/quarantine/', 'deciding'],
  ['/quarantine', 'quarantine'],
  ['/replays', 'replays'],
  ['/job', 'jobs'],
  ['/deliveries', 'deliveries'],
  ['/event', 'events'],
  ['/publications', 'publications'],
  ['/source', 'sources'],
  ['/destinations', 'destinations'],
  ['/tokens', 'tokens'],
  ['/sessions', 'sessions'],
  ['/operator-log', 'operator-log'],
  ['/search', 'search'],
  ['/docs', 'the-pages'],
];

/** @param path of the page, with `/console` */
export function sectionAbout(path: string): string {
  const below = path.slice('/console'.length);
  const [, anchor = 'the-pages'] = SECTIONS.find(([begin]) => below.startsWith(begin)) ?? [];
  return documentHref('console', below === '' ? 'overview' : anchor);
}
