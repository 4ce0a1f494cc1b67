// The events that subscribers get.

export type Envelope = {
  specversion: '1.0';
  id: string;
  source: string;
  subject: string;
  time: string;
  recordedtime: string;
  sequence: string;
  late?: true;
  datacontenttype: 'application/json';
  dataschema: string;
  [attribute: string]: unknown;
};

export type ConversionCompleted = Envelope & { type: 'conversion.job.completed'; data: CompletedData };
export type ConversionFailed = Envelope & { type: 'conversion.job.failed'; data: FailedData };
export type ConversionProgress = Envelope & { type: 'conversion.job.progress'; data: ProgressData };
export type ConversionEvent = ConversionCompleted | ConversionFailed | ConversionProgress;

export type CompletedData = {
  job_id: string;
  status: 'completed';
  job_type: string;
  progress_percentage: number;
  cost_micros: number;
  cost_cents: number;
  processing_time_seconds: number;
  output_size_bytes: number;
  input_format: string;
  output_format: string;
  created_at: string;
  completed_at: string;
  [field: string]: unknown;
};

export type FailedData = {
  job_id: string;
  status: 'failed';
  job_type: string;
  progress_percentage: number;
  error_message: string;
  error_code: string;
  created_at: string;
  failed_at: string;
  [field: string]: unknown;
};

export type ProgressData = {
  job_id: string;
  status: 'processing';
  progress_percentage: number;
  estimated_completion?: string;
  [field: string]: unknown;
};
