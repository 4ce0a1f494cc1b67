"""The events that subscribers get.

Made by `npm run contracts` from the forms in contracts/events: do not edit.
Needs Python 3.11. The types are for checkers such as mypy. At run time an event is a plain dict, as json.loads makes it.
An event may have keys that are not named here: ignore those that you do not know.
"""

from typing import Any, Literal, NotRequired, TypedDict, Union


class Envelope(TypedDict):
    """What all events have: the attributes of a CloudEvents 1.0 document."""

    # The version of CloudEvents.
    specversion: Literal["1.0"]
    # The readable dedup key: <source>:<job id>:<status>, for progress also :<percentage>. The same on every copy. Deduplicate by it.
    id: str
    # Who sent it: /sources/<source>.
    source: str
    # The job’s id.
    subject: str
    # When it happened: completed_at or failed_at. Progress has no such field: there it equals recordedtime. RFC 3339, in UTC.
    time: str
    # When Tallyhook accepted it. RFC 3339, in UTC.
    recordedtime: str
    # Sorts as text in the order of acceptance. For one job this order is exact. It has gaps.
    sequence: str
    # Only on progress that arrived after the job’s end, or with a lower percentage than an earlier one.
    late: NotRequired[Literal[True]]
    # The content type of data.
    datacontenttype: Literal["application/json"]
    # The $id of the JSON Schema of data. A change that could break you raises its number.
    dataschema: str


class CompletedData(TypedDict):
    """The data of a conversion.job.completed event."""

    # The job’s id: 1 to 128 bytes in UTF-8.
    job_id: str
    # Tells the kind.
    status: Literal["completed"]
    # What kind of conversion it is, in the service’s words.
    job_type: str
    # How much of the job was done at its end, in percent.
    progress_percentage: int
    # The price, in millionths of the currency’s unit.
    cost_micros: int
    # The price, in hundredths of the currency’s unit.
    cost_cents: int
    # How long the conversion took, in seconds.
    processing_time_seconds: int
    # The size of the result, in bytes.
    output_size_bytes: int
    # The format of the input file.
    input_format: str
    # The format of the result.
    output_format: str
    # When the job was created. RFC 3339, in UTC.
    created_at: str
    # When the job was completed. RFC 3339, in UTC.
    completed_at: str


class ConversionCompleted(Envelope):
    """A conversion.job.completed event."""

    # The kind of event. Ignore events of a type that you do not know.
    type: Literal["conversion.job.completed"]
    # The fields of the job. Ignore those that you do not know.
    data: CompletedData


class FailedData(TypedDict):
    """The data of a conversion.job.failed event."""

    # The job’s id: 1 to 128 bytes in UTF-8.
    job_id: str
    # Tells the kind.
    status: Literal["failed"]
    # What kind of conversion it is, in the service’s words.
    job_type: str
    # How much of the job was done at its end, in percent.
    progress_percentage: int
    # Why it failed, for people.
    error_message: str
    # Why it failed, for programs.
    error_code: str
    # When the job was created. RFC 3339, in UTC.
    created_at: str
    # When the job failed. RFC 3339, in UTC.
    failed_at: str


class ConversionFailed(Envelope):
    """A conversion.job.failed event."""

    # The kind of event. Ignore events of a type that you do not know.
    type: Literal["conversion.job.failed"]
    # The fields of the job. Ignore those that you do not know.
    data: FailedData


class ProgressData(TypedDict):
    """The data of a conversion.job.progress event."""

    # The job’s id: 1 to 128 bytes in UTF-8.
    job_id: str
    # Tells the kind.
    status: Literal["processing"]
    # How much of the job is done, in percent.
    progress_percentage: int
    # When the job will probably end. Absent if that is not known. RFC 3339, in UTC.
    estimated_completion: NotRequired[str]


class ConversionProgress(Envelope):
    """A conversion.job.progress event."""

    # The kind of event. Ignore events of a type that you do not know.
    type: Literal["conversion.job.progress"]
    # The fields of the job. Ignore those that you do not know.
    data: ProgressData


# Any of the events. Tell them apart by event["type"].
ConversionEvent = Union[
    ConversionCompleted,
    ConversionFailed,
    ConversionProgress,
]
