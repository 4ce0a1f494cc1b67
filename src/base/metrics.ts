// The metrics for Prometheus, on a registry of their own: two services in one process do not share numbers. Which ones there are is
// in metric-table.ts. All of them exist from the start: each counter and histogram at 0 for all that its labels can be.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { GC_KINDS } from './closed-sets.ts';
import { COUNTERS, GAUGES, HISTOGRAMS, type Labels } from './metric-table.ts';
import { UNKNOWN_SOURCE } from './text/source-name.ts';

export type Metrics = ReturnType<typeof createMetrics>;

type CounterName = keyof typeof COUNTERS;
type HistogramName = keyof typeof HISTOGRAMS;
type GaugeName = keyof typeof GAUGES;

/** What a metric's labels may be. */
type LabelsOf<Metric> = Metric extends { readonly labels: infer All }
  ? { readonly [Label in keyof All]: All[Label] extends readonly (infer Value)[] ? Value : string }
  : Readonly<Record<string, never>>;

type CounterOf<Name extends CounterName> = {
  readonly inc: (labels: LabelsOf<(typeof COUNTERS)[Name]>, by?: number) => void;
};
type HistogramOf<Name extends HistogramName> = {
  readonly observe: (labels: LabelsOf<(typeof HISTOGRAMS)[Name]>, value: number) => void;
};

type Series<Label extends string> = {
  readonly labels: Readonly<Record<Label, string>>;
  readonly value: number;
};
/** One value, or those of a gauge with labels. */
type Reading<Name extends GaugeName> = (typeof GAUGES)[Name] extends {
  readonly labels: readonly (infer Label extends string)[];
}
  ? readonly Series<Label>[]
  : number;

/** @param options.sources the configured ones now. They may change. */
export function createMetrics({ version, sources }: { version: string; sources: () => readonly string[] }) {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const collections = registry.getSingleMetric('nodejs_gc_duration_seconds') as Histogram<'kind'>;
  for (const kind of GC_KINDS) collections.zero({ kind });

  const valuesOf = (values: Labels[string]) => {
    if (typeof values !== 'string') return values;
    return values === 'any' ? [...sources(), UNKNOWN_SOURCE] : sources();
  };
  /** Every combination of the labels' values. */
  const seriesOf = (labels: Labels) =>
    Object.entries(labels).reduce<Readonly<Record<string, string>>[]>(
      (series, [label, values]) =>
        series.flatMap((one) => valuesOf(values).map((value) => ({ ...one, [label]: value }))),
      [{}],
    );

  const counts = new Map<CounterName, () => number>();
  function counter<Name extends CounterName>(name: Name): CounterOf<Name> {
    const { help, labels = {} }: { help: string; labels?: Labels } = COUNTERS[name];
    return new Counter({
      name,
      help,
      labelNames: Object.keys(labels),
      registers,
      collect() {
        const count = counts.get(name);
        if (count !== undefined) {
          this.reset();
          this.inc(count());
        }
        // Each time, since a source may have come.
        for (const series of seriesOf(labels)) this.inc(series, 0);
      },
    });
  }

  function histogram<Name extends HistogramName>(name: Name): HistogramOf<Name> {
    const { labels = {}, ...described }: Described = HISTOGRAMS[name];
    const made = new Histogram({ ...described, name, labelNames: Object.keys(labels), registers });
    for (const series of seriesOf(labels)) made.zero(series);
    return made;
  }

  const readings = new Map<GaugeName, () => unknown>();
  function gauge(name: GaugeName): Gauge {
    const { help, labels = [] }: { help: string; labels?: readonly string[] } = GAUGES[name];
    return new Gauge({
      name,
      help,
      labelNames: [...labels],
      registers,
      async collect() {
        const reading = (await readings.get(name)?.()) as number | readonly Series<string>[] | undefined;
        this.reset();
        if (typeof reading !== 'object') return this.set(reading ?? Number.NaN);
        for (const { labels: of, value } of reading) this.set(of, value);
      },
    });
  }
  for (const name of Object.keys(GAUGES) as GaugeName[]) gauge(name);
  readings.set('tallyhook_build_info', () => [{ labels: { version, node: process.version }, value: 1 }]);
  const countedNames = ['tallyhook_database_losses_total', 'tallyhook_log_lines_dropped_total'] as const;
  for (const name of countedNames) counter(name);

  return {
    registry,
    alertRequests: counter('tallyhook_alert_requests_total'),
    answerSeconds: histogram('tallyhook_answer_seconds'),
    batchDeliveries: histogram('tallyhook_batch_deliveries'),
    batchSeconds: histogram('tallyhook_batch_seconds'),
    connectionEnds: counter('tallyhook_connections_ended_total'),
    databaseRefusals: counter('tallyhook_database_refusals_total'),
    deliveries: counter('tallyhook_deliveries_total'),
    heartbeatCalls: counter('tallyhook_heartbeat_calls_total'),
    overdueSecrets: counter('tallyhook_overdue_secret_deliveries_total'),
    publications: counter('tallyhook_publications_total'),
    publicationSeconds: histogram('tallyhook_publication_seconds'),
    relayLagSeconds: histogram('tallyhook_relay_lag_seconds'),
    sessionsRefused: counter('tallyhook_database_sessions_refused_total'),
    unparsed: counter('tallyhook_unparsed_requests_total'),
    /** A counter that is kept elsewhere and read at each scrape. */
    counted: (name: (typeof countedNames)[number], read: () => number) => void counts.set(name, read),
    /** A gauge's value is read at each scrape. NaN where it is not known: an error would hide the other metrics. */
    gauge: <Name extends GaugeName>(name: Name, read: () => Reading<Name> | Promise<Reading<Name>>) =>
      void readings.set(name, read),
  };
}

type Described = { readonly help: string; readonly labels?: Labels; readonly buckets: number[] };
