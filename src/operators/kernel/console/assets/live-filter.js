// Which live events a tab shows. The parameters are those of the API, and mean the same.

/** @param filters by their names; none that is not there */
export function createFilter(filters) {
  return ({ kind: event, item }) => {
    if (event !== 'delivery' && event !== 'publication') return concerns(filters, event, item);
    const wanted = {
      events: event === 'delivery' ? 'deliveries' : 'publications',
      kind: kindOf(item),
      ...item,
    };
    return Object.entries(filters).every(([name, value]) => wanted[name] === value);
  };
}

/** A gap may be in one of the lists alone. */
const concerns = ({ events }, event, { list }) => event !== 'gap' || !events || !list || events === list;

function kindOf({ status, event_id: id }) {
  const said = status === undefined ? (/:(completed|failed)$/.exec(id)?.[1] ?? 'processing') : status;
  return said === 'processing' ? 'progress' : said;
}
