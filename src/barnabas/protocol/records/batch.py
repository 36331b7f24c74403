"""Everything about record batches under one name; the parts live in the modules beside this one."""

from barnabas.protocol.records.compression import Compression, compress, decompress
from barnabas.protocol.records.header import HEADER_SIZE, BatchHeader, check_magic, read_header, split_batches
from barnabas.protocol.records.record import Headers, OwnBatch, Record, build_batch, build_pairs, iterate_records
from barnabas.protocol.records.validate import AppendOrigin, ValidatedBatch, validate_batch

__all__ = [
    "HEADER_SIZE",
    "BatchHeader",
    "read_header",
    "check_magic",
    "split_batches",
    "Record",
    "OwnBatch",
    "Headers",
    "iterate_records",
    "build_batch",
    "build_pairs",
    "Compression",
    "compress",
    "decompress",
    "AppendOrigin",
    "ValidatedBatch",
    "validate_batch",
]
