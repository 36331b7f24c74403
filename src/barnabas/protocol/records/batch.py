"""All of record batches under one name; the code is in the modules beside this one."""

from barnabas.protocol.records.batch_header import HEADER_SIZE, BatchHeader, check_magic, read_header, split_batches
from barnabas.protocol.records.compression import Compression, compress, decompress
from barnabas.protocol.records.record import Headers, OwnBatch, Record, build_batch, build_pairs, iterate_records
from barnabas.protocol.records.validate import AppendOrigin, ValidatedBatch, validate_batch

__all__ = [
    "HEADER_SIZE",
    "AppendOrigin",
    "BatchHeader",
    "Compression",
    "Headers",
    "OwnBatch",
    "Record",
    "ValidatedBatch",
    "build_batch",
    "build_pairs",
    "check_magic",
    "compress",
    "decompress",
    "iterate_records",
    "read_header",
    "split_batches",
    "validate_batch",
]
