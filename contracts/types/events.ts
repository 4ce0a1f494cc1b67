// The events that subscribers get. Made by `npm run contracts` from the forms in contracts/events: do not edit.

/**
 * Any of the events. Tell them apart by `type`.
 */
export type ConversionEvent = ConversionCompleted | ConversionFailed | ConversionProgress;

/**
 * A conversion.job.completed event.
 */
export interface ConversionCompleted extends Envelope {
  /**
   * The kind of event. Ignore events of a type that you do not know.
   */
  type: 'conversion.job.completed';
  data: CompletedData;
  [k: string]: unknown;
}
/**
 * The data of a conversion.job.completed event.
 */
export interface CompletedData {
  /**
   * The job’s id: 1 to 128 bytes in UTF-8.
   */
  job_id: string;
  /**
   * Tells the kind.
   */
  status: 'completed';
  /**
   * What kind of conversion it is, in the service’s words.
   */
  job_type: string;
  /**
   * How much of the job was done at its end, in percent.
   */
  progress_percentage: number;
  /**
   * The price, in millionths of the currency’s unit.
   */
  cost_micros: number;
  /**
   * The price, in hundredths of the currency’s unit.
   */
  cost_cents: number;
  /**
   * How long the conversion took, in seconds.
   */
  processing_time_seconds: number;
  /**
   * The size of the result, in bytes.
   */
  output_size_bytes: number;
  /**
   * The format of the input file.
   */
  input_format: string;
  /**
   * The format of the result.
   */
  output_format: string;
  /**
   * When the job was created. RFC 3339, in UTC.
   */
  created_at: string;
  /**
   * When the job was completed. RFC 3339, in UTC.
   */
  completed_at: string;
  [k: string]: unknown;
}
/**
 * What all events have: the attributes of a CloudEvents 1.0 document.
 */
export interface Envelope {
  /**
   * The version of CloudEvents.
   */
  specversion: '1.0';
  /**
   * The readable dedup key: <source>:<job id>:<status>, for progress also :<percentage>. The same on every copy. Deduplicate by it.
   */
  id: string;
  /**
   * Who sent it: /sources/<source>.
   */
  source: string;
  /**
   * The job’s id.
   */
  subject: string;
  /**
   * When it happened: completed_at or failed_at. Progress has no such field: there it equals recordedtime. RFC 3339, in UTC.
   */
  time: string;
  /**
   * When Tallyhook accepted it. RFC 3339, in UTC.
   */
  recordedtime: string;
  /**
   * Sorts as text in the order of acceptance. For one job this order is exact. It has gaps.
   */
  sequence: string;
  /**
   * Only on progress that arrived after the job’s end, or with a lower percentage than an earlier one.
   */
  late?: true;
  /**
   * The content type of data.
   */
  datacontenttype: 'application/json';
  /**
   * The $id of the JSON Schema of data. A change that could break you raises its number.
   */
  dataschema: string;
  [k: string]: unknown;
}
/**
 * A conversion.job.failed event.
 */
export interface ConversionFailed extends Envelope {
  /**
   * The kind of event. Ignore events of a type that you do not know.
   */
  type: 'conversion.job.failed';
  data: FailedData;
  [k: string]: unknown;
}
/**
 * The data of a conversion.job.failed event.
 */
export interface FailedData {
  /**
   * The job’s id: 1 to 128 bytes in UTF-8.
   */
  job_id: string;
  /**
   * Tells the kind.
   */
  status: 'failed';
  /**
   * What kind of conversion it is, in the service’s words.
   */
  job_type: string;
  /**
   * How much of the job was done at its end, in percent.
   */
  progress_percentage: number;
  /**
   * Why it failed, for people.
   */
  error_message: string;
  /**
   * Why it failed, for programs.
   */
  error_code: string;
  /**
   * When the job was created. RFC 3339, in UTC.
   */
  created_at: string;
  /**
   * When the job failed. RFC 3339, in UTC.
   */
  failed_at: string;
  [k: string]: unknown;
}
/**
 * A conversion.job.progress event.
 */
export interface ConversionProgress extends Envelope {
  /**
   * The kind of event. Ignore events of a type that you do not know.
   */
  type: 'conversion.job.progress';
  data: ProgressData;
  [k: string]: unknown;
}
/**
 * The data of a conversion.job.progress event.
 */
export interface ProgressData {
  /**
   * The job’s id: 1 to 128 bytes in UTF-8.
   */
  job_id: string;
  /**
   * Tells the kind.
   */
  status: 'processing';
  /**
   * How much of the job is done, in percent.
   */
  progress_percentage: number;
  /**
   * When the job will probably end. Absent if that is not known. RFC 3339, in UTC.
   */
  estimated_completion?: string;
  [k: string]: unknown;
}
