/* The functions of request_scan.py and multi_partition_scan.py in C, and one of schema_ids.py. The docstrings in those modules describe
 * parameters and results.
 *
 * tools/build_hook.py compiles this file if the machine has a C compiler. scan.py uses the library only if it was built from this very text
 * (SOURCE_CHECKSUM).
 *
 * Rules
 *   1. The code reads bytes from a peer only between two pointers that it has checked. It compares a length with the number of bytes left
 *      before it adds the length to a pointer.
 *   2. As in all of scan.py: a function accepts only well-formed input. It declines wrong or rare input.
 *   3. The code uses only Python's stable ABI of 3.11: one library serves 3.11 and all later versions.
 *   4. A function that Python calls has one exit, where it releases its buffers.
 */

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

#include <stdint.h>
#include <string.h>

#ifndef SOURCE_CHECKSUM
#define SOURCE_CHECKSUM 0
#endif

typedef const unsigned char *Bytes;
typedef int64_t Row[5];       /* correlation id, start of the batch, its end, number of records, largest timestamp */
typedef int64_t Described[3]; /* last offset, size, largest timestamp */

enum {
    SIZE_FIELD = 4,      /* bytes of the size in front of a request */
    HEADER_BYTES = 61,   /* of a batch header */
    LENGTH_OVERHEAD = 12,
    CRC_AT = 17,
    CRC_FROM = 21,
    CODECS = 4,          /* largest codec number in the attributes of a batch */
    EMPTY_TAGS = 3,      /* no tagged fields of partition, topic and request */
    INLINE_CRC = 1024,   /* bytes; up to here the call of the library costs more than its faster loop saves */
};
#define LATEST_TIME ((int64_t)1 << 61) /* bound of a base timestamp: its sum with a delta of 55 bits does not overflow */

static PyObject *library_crc, *library_unfolded;

/* --- numbers */

static inline uint32_t unsigned32(Bytes at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline int64_t signed64(Bytes at) {
    return (int64_t)((uint64_t)unsigned32(at) << 32 | unsigned32(at + 4));
}

static inline void put32(unsigned char *at, uint32_t value) {
    at[0] = value >> 24, at[1] = value >> 16, at[2] = value >> 8, at[3] = value;
}

static inline void put64(unsigned char *at, uint64_t value) {
    put32(at, value >> 32);
    put32(at + 4, (uint32_t)value);
}

/* Reads the varint at `at`, of `longest` bytes at most; returns its end, or NULL. */
static inline Bytes varint(Bytes at, Bytes stop, int longest, uint64_t *value) {
    if (at < stop && *at < 0x80) {
        *value = *at;
        return at + 1;
    }
    uint64_t found = 0;
    for (int byte = 0; byte < longest && at < stop; byte++) {
        found |= (uint64_t)(*at & 0x7F) << 7 * byte;
        if (*at++ < 0x80) {
            *value = found;
            return at;
        }
    }
    return NULL;
}

/* --- checksums */

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t processor_crc(Bytes at, Py_ssize_t size) {
    uint64_t crc = 0xFFFFFFFF;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t eight;
        memcpy(&eight, at, 8);
        crc = _mm_crc32_u64(crc, eight);
    }
    for (; size > 0; at++, size--) crc = _mm_crc32_u8((uint32_t)crc, *at);
    return ~(uint32_t)crc;
}

static int has_processor_crc(void) { return __builtin_cpu_supports("sse4.2"); }
#else
static uint32_t processor_crc(Bytes at, Py_ssize_t size) {
    (void)at, (void)size;
    return 0;
}
static int has_processor_crc(void) { return 0; }
#endif

static int use_processor;

/* 1 if the checksum is correct, 0 if not, -1 after an error of the library. */
static int is_crc_right(Bytes at, Py_ssize_t size, uint32_t expected) {
    if (use_processor && size <= INLINE_CRC) return processor_crc(at, size) == expected;
    PyObject *view = PyMemoryView_FromMemory((char *)at, size, PyBUF_READ);
    PyObject *found = view ? PyObject_CallFunctionObjArgs(library_crc, view, NULL) : NULL;
    unsigned long crc = found ? PyLong_AsUnsignedLong(found) : 0;
    Py_XDECREF(found);
    Py_XDECREF(view);
    return PyErr_Occurred() ? -1 : crc == expected;
}

/* --- records */

typedef struct {
    int64_t min_delta, max_delta;
    int has_null_key;
} Records;

/* Skips a length and that many bytes; NULL if that fails. A null value fails unless `may_be_null`, and sets `is_null`. */
static inline Bytes skip_bytes(Bytes at, Bytes stop, int may_be_null, int *is_null) {
    uint64_t length;
    at = varint(at, stop, 4, &length);
    if (at == NULL) return NULL;
    if (length & 1) {
        *is_null = 1;
        return length == 1 && may_be_null ? at : NULL;
    }
    length >>= 1;
    return (uint64_t)(stop - at) >= length ? at + length : NULL;
}

static int walk(Bytes at, Bytes stop, int64_t count, Records *seen) {
    int64_t min_delta = 0, max_delta = 0;
    int has_null_key = 0, unused;
    for (int64_t index = 0; index < count; index++) {
        uint64_t value;
        at = varint(at, stop, 4, &value);
        if (at == NULL || value & 1 || value >> 1 > (uint64_t)(stop - at)) return 0;
        Bytes end = at + (value >> 1);
        if (at == end) return 0;
        at = varint(at + 1, end, 8, &value); /* skips the attributes */
        if (at == NULL) return 0;
        int64_t delta = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
        if (delta < min_delta)
            min_delta = delta;
        else if (delta > max_delta)
            max_delta = delta;
        at = varint(at, end, 4, &value);
        if (at == NULL || value != (uint64_t)index << 1) return 0;
        at = skip_bytes(at, end, 1, &has_null_key);
        if (at != NULL) at = skip_bytes(at, end, 1, &unused);
        if (at != NULL) at = varint(at, end, 4, &value); /* number of headers */
        if (at == NULL || value & 1) return 0;
        for (uint64_t left = value >> 1; left; left--) {
            at = skip_bytes(at, end, 0, &unused);
            if (at != NULL) at = skip_bytes(at, end, 1, &unused);
            if (at == NULL) return 0;
        }
        if (at != end) return 0;
    }
    seen->min_delta = min_delta, seen->max_delta = max_delta, seen->has_null_key = has_null_key;
    return at == stop;
}

/* --- schema ids */

enum { SCHEMA_ID_BYTES = 5, SCHEMA_GUID_BYTES = 17 };

/* The set of known ids, or NULL to skip the check; and the id found last, because neighbouring records mostly share one. */
typedef struct {
    PyObject *ids;
    Bytes last;
    Py_ssize_t size;
} Known;

/* Bytes in a record; `at` is NULL for a null value. */
typedef struct {
    Bytes at;
    Py_ssize_t size;
} Part;

static Bytes read_part(Bytes at, Bytes stop, Part *part) {
    uint64_t length;
    at = varint(at, stop, 4, &length);
    part->at = NULL, part->size = 0;
    if (at == NULL || length == 1) return at;
    length >>= 1;
    if ((uint64_t)(stop - at) < length) return NULL;
    part->at = at, part->size = (Py_ssize_t)length;
    return at + length;
}

static int is_named(Part name, const char *text, Py_ssize_t size) {
    return name.size == size && memcmp(name.at, text, size) == 0;
}

/* 1 if the key or value is null, or if the id at its start or in its header is known; 0 if not, -1 after an error. */
static int names_known(Known *known, Part part, Part header) {
    if (known->ids == NULL || part.at == NULL) return 1;
    Part named = header.at != NULL ? header : part;
    Py_ssize_t size = SCHEMA_ID_BYTES;
    if (named.size < SCHEMA_ID_BYTES) return 0;
    if (header.at != NULL && named.at[0] == 1)
        size = SCHEMA_GUID_BYTES;
    else if (named.at[0] != 0)
        return 0;
    if (named.size < size) return 0;
    if (known->size == size && memcmp(known->last, named.at, size) == 0) return 1;
    PyObject *id = PyBytes_FromStringAndSize((const char *)named.at, size);
    int found = id ? PySet_Contains(known->ids, id) : -1;
    Py_XDECREF(id);
    if (found == 1) known->last = named.at, known->size = size;
    return found;
}

static int walk_ids(Bytes at, Bytes stop, int64_t count, Known *keys, Known *values) {
    static const char key_name[] = "__key_schema_id", value_name[] = "__value_schema_id";
    for (int64_t index = 0; index < count; index++) {
        uint64_t value;
        Part key, content, name, text, key_header = {NULL, 0}, value_header = {NULL, 0};
        at = varint(at, stop, 4, &value);
        if (at == NULL || value & 1 || value >> 1 > (uint64_t)(stop - at)) return 0;
        Bytes end = at + (value >> 1);
        if (at == end) return 0;
        at = varint(at + 1, end, 8, &value);                /* attributes and timestamp delta */
        if (at != NULL) at = varint(at, end, 4, &value);    /* offset delta */
        if (at != NULL) at = read_part(at, end, &key);
        if (at != NULL) at = read_part(at, end, &content);
        if (at != NULL) at = varint(at, end, 4, &value);    /* number of headers */
        if (at == NULL || value & 1) return 0;
        for (uint64_t left = value >> 1; left; left--) {
            at = read_part(at, end, &name);
            if (at != NULL) at = read_part(at, end, &text);
            if (at == NULL || name.at == NULL) return 0;
            if (key_header.at == NULL && is_named(name, key_name, sizeof key_name - 1)) key_header = text;
            if (value_header.at == NULL && is_named(name, value_name, sizeof value_name - 1)) value_header = text;
        }
        if (at != end) return 0;
        int good = names_known(keys, key, key_header);
        if (good == 1) good = names_known(values, content, value_header);
        if (good != 1) return good;
    }
    return at == stop;
}

/* --- requests */

typedef struct {
    int64_t max_request, max_batch, oldest, newest, room, offsets, requests;
    int needs_keys, takes_codecs;
} Bounds;

typedef struct {
    int64_t id, epoch, sequence;
} Producer;

#define NO_PRODUCER (-1)

/* The start of the batch in the request that fills [at, stop), or NULL; `known` and `known_size` as in request_scan.py. */
static Bytes batch_of(Bytes at, Bytes stop, Bytes known, Py_ssize_t known_size, int flexible) {
    if (memcmp(at, known, 4) || memcmp(at + 8, known + 8, known_size - 8)) return NULL;
    at += known_size;
    uint64_t length;
    if (flexible) {
        at = varint(at, stop, 5, &length);
        if (at == NULL || length == 0) return NULL;
        length -= 1;
    } else {
        if (stop - at < 4) return NULL;
        length = unsigned32(at);
        at += 4;
    }
    Py_ssize_t tags = flexible ? EMPTY_TAGS : 0;
    if (length > (uint64_t)(stop - at) || length + tags != (uint64_t)(stop - at)) return NULL;
    return flexible && (stop[-1] | stop[-2] | stop[-3]) ? NULL : at;
}

/* Whether the batch continues the sequence of `producer`, which the first batch sets; advances the sequence. */
static int follows(Bytes batch, int64_t count, int is_first, Producer *producer) {
    int64_t id = signed64(batch + 43);
    if (id == NO_PRODUCER) return producer->id == NO_PRODUCER;
    int64_t epoch = (int64_t)batch[51] << 8 | batch[52], sequence = unsigned32(batch + 53);
    if (id < 0 || sequence > INT32_MAX) return 0;
    if (!is_first && (producer->id != id || producer->epoch != epoch || producer->sequence != sequence)) return 0;
    producer->id = id, producer->epoch = epoch, producer->sequence = (sequence + count) & INT32_MAX;
    return 1;
}

/* As `walk` for compressed records, which it decompresses first; -1 after an error. */
static int walk_unfolded(int codec, Bytes at, Bytes stop, int64_t count, Records *seen) {
    PyObject *made = PyMemoryView_FromMemory((char *)at, stop - at, PyBUF_READ);
    PyObject *unfolded = made ? PyObject_CallFunction(library_unfolded, "iOL", codec, made, (long long)count) : NULL;
    Py_buffer data;
    int good = unfolded == NULL ? -1 : 0;
    if (unfolded != NULL && unfolded != Py_None) {
        good = PyObject_GetBuffer(unfolded, &data, PyBUF_SIMPLE);
        if (good == 0) {
            good = walk(data.buf, (Bytes)data.buf + data.len, count, seen);
            PyBuffer_Release(&data);
        }
    }
    Py_XDECREF(unfolded);
    Py_XDECREF(made);
    return good;
}

/* 1 for a good batch in [batch, end), 0 for any other, -1 after an error. Sets its number of records and its largest timestamp. */
static int is_good(Bytes batch, Bytes end, const Bounds *bounds, int64_t *count, int64_t *largest) {
    *count = unsigned32(batch + 57);
    *largest = signed64(batch + 35);
    int64_t base = signed64(batch + 27);
    if (signed64(batch) || unsigned32(batch + 8) + (int64_t)LENGTH_OVERHEAD != end - batch || batch[16] != 2) return 0;
    int codec = batch[22];
    if (batch[21] || codec > CODECS || (codec && !bounds->takes_codecs)) return 0; /* other bits: transactional, control, append time */
    if (*count < 1 || *count > INT32_MAX || unsigned32(batch + 23) != *count - 1 || base < 0 || base >= LATEST_TIME) return 0;
    Records seen;
    int good;
    if (codec) {
        good = is_crc_right(batch + CRC_FROM, end - batch - CRC_FROM, unsigned32(batch + CRC_AT));
        if (good == 1) good = walk_unfolded(codec, batch + HEADER_BYTES, end, *count, &seen);
    } else {
        good = walk(batch + HEADER_BYTES, end, *count, &seen);
    }
    if (good != 1) return good;
    if (base + seen.max_delta != *largest || base + seen.min_delta < bounds->oldest || *largest > bounds->newest) return 0;
    if (bounds->needs_keys && seen.has_null_key) return 0;
    return codec ? 1 : is_crc_right(batch + CRC_FROM, end - batch - CRC_FROM, unsigned32(batch + CRC_AT));
}

/* The good batches found so far, which can be appended in this order. */
typedef struct {
    const Bounds *bounds;
    Row *rows;
    int64_t count, records, size;
    Producer producer;
} Batches;

/* Adds a row and returns 1 if [batch, end) is good, fits, and follows the batch before; 0 if not, -1 after an error. */
static int take_batch(Batches *batches, Bytes first, Bytes batch, Bytes end, int64_t label) {
    const Bounds *bounds = batches->bounds;
    int64_t size = end - batch, count, largest;
    if (size < HEADER_BYTES || size > bounds->max_batch) return 0;
    int good = is_good(batch, end, bounds, &count, &largest);
    if (good != 1) return good;
    if (batches->size + size > bounds->room || batches->records + count > bounds->offsets) return 0;
    if (!follows(batch, count, batches->count == 0, &batches->producer)) return 0;
    int64_t *row = batches->rows[batches->count++];
    row[0] = label, row[1] = batch - first, row[2] = end - first, row[3] = count, row[4] = largest;
    batches->records += count, batches->size += size;
    return 1;
}

/* The fields of a Run for Python. */
static PyObject *told(const Batches *batches, int64_t behind) {
    return Py_BuildValue("y#LLLLN", (char *)batches->rows, (Py_ssize_t)(batches->count * sizeof(Row)), (long long)batches->count,
                         (long long)batches->records, (long long)batches->size, (long long)behind,
                         PyBool_FromLong(batches->producer.id != NO_PRODUCER));
}

/* --- requests with several batches */

enum {
    FIRST_VERSION_WITH_RECORD_ERRORS = 8, /* of Produce answers */
    FIRST_FLEXIBLE_VERSION = 9,
    FIRST_VERSION_BY_ID = 13,
    ID_BYTES = 16,    /* of a topic id */
    LONGEST_NAME = 249, /* of a topic */
    INDEX_BYTES = 4,
    ANSWER_BYTES = 36, /* at most, for one batch */
    FRAME_BYTES = 32,  /* at most, for the rest of an answer except the bytes copied from the request */
};

/* Reads the batches of a request one by one, from the bytes after its timeout. */
typedef struct {
    Bytes at, stop;
    int version;
    uint64_t topics, partitions; /* still to read */
    Bytes topic, counted;        /* start of the current topic, and start of its first partition */
    Bytes key;                   /* name or id of that topic */
    Py_ssize_t key_size;
    int is_first;                /* whether the last batch read is the first one of its topic */
} Reader;

/* Reads the length of an array with at least one element; returns the start of the elements, or NULL. */
static Bytes count_of(Bytes at, Bytes stop, int version, uint64_t *count) {
    if (version >= FIRST_FLEXIBLE_VERSION) {
        at = varint(at, stop, 5, count);
        if (at == NULL || *count < 2) return NULL;
        *count -= 1;
        return at;
    }
    if (stop - at < 4) return NULL;
    *count = unsigned32(at);
    return *count && *count <= INT32_MAX ? at + 4 : NULL;
}

static int open_request(Reader *reader, Bytes at, Bytes stop, int version) {
    memset(reader, 0, sizeof *reader);
    reader->stop = stop, reader->version = version;
    reader->at = count_of(at, stop, version, &reader->topics);
    return reader->at != NULL;
}

static int open_topic(Reader *reader) {
    Bytes at = reader->topic = reader->at, stop = reader->stop;
    uint64_t size = ID_BYTES;
    if (reader->version < FIRST_FLEXIBLE_VERSION) {
        if (stop - at < 2) return 0;
        size = (uint64_t)at[0] << 8 | at[1];
        at += 2;
    } else if (reader->version < FIRST_VERSION_BY_ID) {
        at = varint(at, stop, 5, &size);
        if (at == NULL || size == 0) return 0;
        size -= 1;
    }
    if (size > LONGEST_NAME || size > (uint64_t)(stop - at)) return 0;
    reader->key = at, reader->key_size = size;
    reader->at = reader->counted = count_of(at + size, stop, reader->version, &reader->partitions);
    return reader->at != NULL;
}

/* Skips empty tagged fields if the version has tagged fields; 0 if there are some. */
static int skip_tags(Reader *reader) {
    if (reader->version < FIRST_FLEXIBLE_VERSION) return 1;
    return reader->at < reader->stop && *reader->at++ == 0;
}

/* 1 and the positions of the next batch and of its partition index; 0 after the last batch; -1 if the request is wrong or rare. */
static int next_batch(Reader *reader, Bytes *index, Bytes *batch, Bytes *end) {
    reader->is_first = reader->partitions == 0;
    if (reader->is_first) {
        if (reader->key != NULL && !skip_tags(reader)) return -1;
        if (reader->topics == 0) return skip_tags(reader) && reader->at == reader->stop ? 0 : -1;
        reader->topics--;
        if (!open_topic(reader)) return -1;
    }
    reader->partitions--;
    Bytes at = reader->at, stop = reader->stop;
    if (stop - at < INDEX_BYTES) return -1;
    *index = at;
    at += INDEX_BYTES;
    uint64_t length;
    if (reader->version >= FIRST_FLEXIBLE_VERSION) {
        at = varint(at, stop, 5, &length);
        if (at == NULL || length == 0) return -1;
        length -= 1;
    } else {
        if (stop - at < 4) return -1;
        length = unsigned32(at);
        at += 4;
    }
    if (length < HEADER_BYTES || length > (uint64_t)(stop - at)) return -1;
    *batch = at;
    *end = reader->at = at + length;
    return skip_tags(reader) ? 1 : -1;
}

/* The number of a partition of the current topic in the dict from Python; -1 if it has none, -2 after an error. */
static long number_of(const Reader *reader, Bytes index, PyObject *numbers) {
    char name[LONGEST_NAME + INDEX_BYTES];
    memcpy(name, reader->key, reader->key_size);
    memcpy(name + reader->key_size, index, INDEX_BYTES);
    PyObject *key = PyBytes_FromStringAndSize(name, reader->key_size + INDEX_BYTES);
    if (key == NULL) return -2;
    PyObject *number = PyDict_GetItemWithError(numbers, key);
    Py_DECREF(key);
    if (number == NULL) return PyErr_Occurred() ? -2 : -1;
    long found = PyLong_AsLong(number);
    return PyErr_Occurred() ? -2 : found;
}

typedef int64_t Request[4]; /* correlation id, start after the size field, start of the next request, number of batches */

typedef struct {
    int32_t group; /* one group per partition, numbered by first occurrence */
    int64_t request, start, end;
} Batch;

/* The requests found so far among those that arrived together. */
typedef struct {
    Request *requests;
    Batch *batches;
    int32_t *groups;  /* target -> group + 1; 0: no group yet */
    int32_t *targets; /* group -> target */
    int64_t request_count, batch_count, group_count, target_count, most;
} Found;

/* Adds all batches of the request [start, stop) and returns 1; or adds none and returns 0; -1 after an error. */
static int add_request(Found *found, Bytes first, Bytes start, Bytes batches, Bytes stop, int version, int64_t max_batch, PyObject *numbers) {
    Reader reader;
    Bytes index, batch, end;
    int64_t batch_count = found->batch_count, group_count = found->group_count;
    int more = open_request(&reader, batches, stop, version) ? 1 : -1;
    while (more > 0 && (more = next_batch(&reader, &index, &batch, &end)) > 0) {
        long target = batch_count < found->most && end - batch <= max_batch ? number_of(&reader, index, numbers) : -1;
        if (target == -2) return -1;
        if (target < 0 || target >= found->target_count) {
            more = -1;
            break;
        }
        if (found->groups[target] == 0) {
            found->targets[group_count] = target;
            found->groups[target] = ++group_count;
        }
        Batch *each = &found->batches[batch_count++];
        each->group = found->groups[target] - 1, each->request = found->request_count;
        each->start = batch - first, each->end = end - first;
    }
    if (more < 0) {
        for (int64_t i = found->group_count; i < group_count; i++) found->groups[found->targets[i]] = 0;
        return 0;
    }
    int64_t *row = found->requests[found->request_count++];
    row[0] = (int32_t)unsigned32(start + 4);
    row[1] = start - first, row[2] = stop - first, row[3] = batch_count - found->batch_count;
    found->batch_count = batch_count, found->group_count = group_count;
    return 1;
}

/* A tuple with a table of rows for each group, in the order of its batches. */
static PyObject *tables_of(const Found *found) {
    PyObject *tables = PyTuple_New(found->group_count);
    int64_t *sizes = PyMem_Calloc(found->group_count + 1, sizeof(int64_t));
    char **ends = PyMem_Calloc(found->group_count + 1, sizeof(char *));
    if (tables == NULL || sizes == NULL || ends == NULL) goto failed;
    for (int64_t i = 0; i < found->batch_count; i++) sizes[found->batches[i].group] += sizeof(Row);
    for (int64_t i = 0; i < found->group_count; i++) {
        PyObject *table = PyBytes_FromStringAndSize(NULL, sizes[i]);
        if (table == NULL) goto failed;
        ends[i] = PyBytes_AsString(table);
        PyTuple_SetItem(tables, i, table);
    }
    for (int64_t i = 0; i < found->batch_count; i++) {
        const Batch *each = &found->batches[i];
        Row row = {each->request, each->start, each->end, 0, 0};
        memcpy(ends[each->group], row, sizeof row);
        ends[each->group] += sizeof row;
    }
    PyMem_Free(sizes);
    PyMem_Free(ends);
    return tables;
failed:
    if (!PyErr_Occurred()) PyErr_NoMemory();
    Py_XDECREF(tables);
    PyMem_Free(sizes);
    PyMem_Free(ends);
    return NULL;
}

static PyObject *numbers_in(const int32_t *numbers, int64_t count) {
    PyObject *made = PyTuple_New(count);
    for (int64_t i = 0; made && i < count; i++) {
        PyObject *number = PyLong_FromLong(numbers[i]);
        if (number == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SetItem(made, i, number);
    }
    return made;
}

/* Copies bytes to `to`; returns the end of the copy. */
static unsigned char *put(unsigned char *to, const void *from, Py_ssize_t size) {
    memcpy(to, from, size);
    return to + size;
}

typedef struct {
    PyObject *rows; /* borrowed */
    int64_t offset, log_start, next, count;
} Group;

/* Writes the answer for the next batch of a group. */
static unsigned char *put_batch(unsigned char *to, Bytes index, Group *group, int version) {
    static const unsigned char nothing[] = {1, 0, 0}, old_nothing[] = {0, 0, 0, 0, 0xFF, 0xFF}; /* no record errors, no error message */
    int64_t row[5];
    memcpy(row, PyBytes_AsString(group->rows) + group->next++ * sizeof(Row), sizeof row);
    to = put(to, index, INDEX_BYTES);
    *to++ = 0, *to++ = 0;
    put64(to, group->offset);
    put64(to + 8, (uint64_t)-1); /* the producer sets the timestamps */
    put64(to + 16, group->log_start);
    to += 24;
    group->offset += row[3];
    if (version >= FIRST_FLEXIBLE_VERSION) return put(to, nothing, sizeof nothing);
    return version >= FIRST_VERSION_WITH_RECORD_ERRORS ? put(to, old_nothing, sizeof old_nothing) : to;
}

/* The most bytes that the answer to a request takes; -1 if its number of batches is not that of its row. */
static int64_t most_of_answer(const int64_t *request, Bytes batches, Bytes stop, int version) {
    Reader reader;
    Bytes index, batch, end;
    if (!open_request(&reader, batches, stop, version)) return -1;
    int64_t size = FRAME_BYTES, seen = 0;
    int more;
    for (; (more = next_batch(&reader, &index, &batch, &end)) > 0; seen++) {
        size += ANSWER_BYTES;
        if (reader.is_first) size += reader.counted - reader.topic + 1;
    }
    return more < 0 || seen != request[3] ? -1 : size;
}

/* Writes the answer to a request that `most_of_answer` has accepted; NULL if `order` or `groups` do not match the request. */
static unsigned char *put_answer(unsigned char *to, const int64_t *request, Bytes batches, Bytes stop, int version, Bytes order,
                                 Group *groups, int64_t group_count) {
    int flexible = version >= FIRST_FLEXIBLE_VERSION;
    unsigned char *frame = to;
    Reader reader;
    Bytes index, batch, end;
    open_request(&reader, batches, stop, version);
    put32(to + 4, (uint32_t)request[0]);
    to += 8;
    if (flexible) *to++ = 0;
    to = put(to, batches, reader.at - batches);
    for (int64_t seen = 0; next_batch(&reader, &index, &batch, &end) > 0; seen++) {
        int32_t number;
        memcpy(&number, order + seen * sizeof number, sizeof number);
        if (number < 0 || number >= group_count || groups[number].next == groups[number].count) return NULL;
        if (reader.is_first) {
            if (flexible && seen) *to++ = 0;
            to = put(to, reader.topic, reader.counted - reader.topic);
        }
        to = put_batch(to, index, &groups[number], version);
    }
    if (flexible) *to++ = 0;
    put32(to, 0); /* throttle time */
    to += 4;
    if (flexible) *to++ = 0;
    put32(frame, to - frame - 4);
    return to;
}

/* --- functions that Python calls */

static int read_bounds(PyObject *tuple, Bounds *bounds) {
    int64_t *fields[] = {&bounds->max_request, &bounds->max_batch, &bounds->oldest,  &bounds->newest,
                         &bounds->room,        &bounds->offsets,   &bounds->requests};
    for (int i = 0; i < 7; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i); /* sets an error if `tuple` is no tuple or too short */
        if (item == NULL) return 0;
        *fields[i] = PyLong_AsLongLong(item);
        if (PyErr_Occurred()) return 0;
    }
    int *answers[] = {&bounds->needs_keys, &bounds->takes_codecs};
    for (int i = 0; i < 2; i++) {
        PyObject *item = PyTuple_GetItem(tuple, 7 + i);
        *answers[i] = item ? PyObject_IsTrue(item) : -1;
        if (*answers[i] < 0) return 0;
    }
    return 1;
}

static int takes(Py_ssize_t given, Py_ssize_t wanted, const char *name) {
    if (given != wanted) PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", name, wanted, given);
    return given == wanted;
}

/* Opens the buffers of both objects, or none of them and sets an error. */
static int open_both(PyObject *first, PyObject *second, Py_buffer *data, Py_buffer *more) {
    if (PyObject_GetBuffer(first, data, PyBUF_SIMPLE) < 0) return 0;
    if (PyObject_GetBuffer(second, more, PyBUF_SIMPLE) == 0) return 1;
    PyBuffer_Release(data);
    return 0;
}

static void close_both(Py_buffer *data, Py_buffer *more) {
    PyBuffer_Release(more);
    PyBuffer_Release(data);
}

/* Reads two numbers; 0 and an error if one is no number. */
static int two_numbers(PyObject *const *args, int64_t *first, int64_t *second) {
    *first = PyLong_AsLongLong(args[0]);
    if (!PyErr_Occurred()) *second = PyLong_AsLongLong(args[1]);
    return !PyErr_Occurred();
}

static PyObject *walk_records(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    (void)self;
    Py_buffer data;
    if (!takes(nargs, 2, "walk_records")) return NULL;
    int64_t count = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) return NULL;
    Records seen;
    int good = walk(data.buf, (Bytes)data.buf + data.len, count, &seen);
    PyBuffer_Release(&data);
    if (!good) Py_RETURN_NONE;
    return Py_BuildValue("LLN", (long long)seen.min_delta, (long long)seen.max_delta, PyBool_FromLong(seen.has_null_key));
}

static PyObject *name_known_schemas(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    (void)self;
    Py_buffer data;
    if (!takes(nargs, 4, "name_known_schemas")) return NULL;
    int64_t count = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) return NULL;
    Known keys = {args[2] == Py_None ? NULL : args[2], NULL, 0}, values = {args[3] == Py_None ? NULL : args[3], NULL, 0};
    int good = walk_ids(data.buf, (Bytes)data.buf + data.len, count, &keys, &values);
    PyBuffer_Release(&data);
    return good < 0 ? NULL : PyBool_FromLong(good);
}

static PyObject *walk_requests(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    (void)self;
    Bounds bounds;
    Py_buffer data, known;
    if (!takes(nargs, 5, "walk_requests") || !read_bounds(args[4], &bounds)) return NULL;
    int64_t position = PyLong_AsLongLong(args[1]);
    int flexible = PyErr_Occurred() ? -1 : PyObject_IsTrue(args[3]);
    if (flexible < 0 || !open_both(args[0], args[2], &data, &known)) return NULL;
    PyObject *answer = NULL;
    Batches batches = {&bounds, NULL, 0, 0, 0, {NO_PRODUCER, 0, 0}};
    if (position < 0 || position > data.len || known.len < 8) {
        PyErr_SetString(PyExc_ValueError, "no position in the data, or no start of a request");
        goto out;
    }
    Bytes first = data.buf, at = first + position, end = first + data.len;
    int64_t fit = (end - at) / (SIZE_FIELD + known.len + HEADER_BYTES) + 1, most = bounds.requests < fit ? bounds.requests : fit;
    batches.rows = PyMem_Malloc((most > 0 ? most : 1) * sizeof(Row));
    if (batches.rows == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    while (batches.count < most && end - at >= SIZE_FIELD + known.len) {
        int64_t request = unsigned32(at);
        if (request > bounds.max_request || request > end - at - SIZE_FIELD || request < known.len) break;
        Bytes start = at + SIZE_FIELD, stop = start + request;
        Bytes batch = batch_of(start, stop, known.buf, known.len, flexible);
        if (batch == NULL) break;
        int taken = take_batch(&batches, first, batch, flexible ? stop - EMPTY_TAGS : stop, (int32_t)unsigned32(start + 4));
        if (taken < 0) goto out;
        if (!taken) break;
        at = stop;
    }
    answer = told(&batches, at - first);
out:
    PyMem_Free(batches.rows);
    close_both(&data, &known);
    return answer;
}

static PyObject *read_requests(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    (void)self;
    Py_buffer data, start;
    int64_t position, version, max_request, max_batch, most, targets;
    if (!takes(nargs, 9, "read_requests")) return NULL;
    position = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred() || !two_numbers(args + 3, &version, &max_request) || !two_numbers(args + 5, &max_batch, &most)) return NULL;
    targets = PyLong_AsLongLong(args[8]);
    if (PyErr_Occurred()) return NULL;
    if (!PyDict_Check(args[7])) {
        PyErr_SetString(PyExc_TypeError, "the numbers of partitions are no dictionary");
        return NULL;
    }
    if (!open_both(args[0], args[2], &data, &start)) return NULL;
    PyObject *answer = NULL, *order = NULL, *numbers = NULL, *tables = NULL;
    Found found = {0};
    if (position < 0 || position > data.len || start.len < 8 || targets < 0 || targets > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "no position in the data, or no start of a request");
        goto out;
    }
    Bytes first = data.buf, at = first + position, end = first + data.len, known = start.buf;
    int64_t fit = (end - at) / (INDEX_BYTES + HEADER_BYTES) + 1;
    found.most = most < fit ? most : fit;
    if (found.most < 0) found.most = 0;
    found.target_count = targets;
    found.requests = PyMem_Malloc((found.most + 1) * sizeof(Request));
    found.batches = PyMem_Malloc((found.most + 1) * sizeof(Batch));
    found.groups = PyMem_Calloc(targets + 1, sizeof(int32_t));
    found.targets = PyMem_Malloc((targets + 1) * sizeof(int32_t));
    if (!found.requests || !found.batches || !found.groups || !found.targets) {
        PyErr_NoMemory();
        goto out;
    }
    while (end - at >= SIZE_FIELD + start.len && found.batch_count < found.most) {
        int64_t size = unsigned32(at);
        Bytes request = at + SIZE_FIELD;
        if (size > max_request || size > end - request || size < start.len) break;
        if (memcmp(request, known, 4) || memcmp(request + 8, known + 8, start.len - 8)) break;
        int added = add_request(&found, first, request, request + start.len, request + size, (int)version, max_batch, args[7]);
        if (added < 0) goto out;
        if (!added) break;
        at = request + size;
    }
    order = PyBytes_FromStringAndSize(NULL, found.batch_count * sizeof(int32_t));
    numbers = numbers_in(found.targets, found.group_count);
    tables = tables_of(&found);
    if (order == NULL || numbers == NULL || tables == NULL) goto out;
    for (int64_t i = 0; i < found.batch_count; i++)
        memcpy(PyBytes_AsString(order) + i * sizeof(int32_t), &found.batches[i].group, sizeof(int32_t));
    answer = Py_BuildValue("y#OOOL", (char *)found.requests, (Py_ssize_t)(found.request_count * sizeof(Request)), order, numbers, tables,
                           (long long)(at - first));
out:
    Py_XDECREF(order);
    Py_XDECREF(numbers);
    Py_XDECREF(tables);
    PyMem_Free(found.requests);
    PyMem_Free(found.batches);
    PyMem_Free(found.groups);
    PyMem_Free(found.targets);
    close_both(&data, &start);
    return answer;
}

/* The number of rows in a Python buffer; -1 and an error if the last one is not whole. */
static int64_t rows_in(const Py_buffer *buffer, size_t row) {
    if (buffer->len % row) {
        PyErr_SetString(PyExc_ValueError, "no whole rows");
        return -1;
    }
    return buffer->len / row;
}

/* Whether the batch of a row lies in the data; sets an error if not. */
static int is_within(const int64_t *row, const Py_buffer *data) {
    int is = row[1] >= 0 && row[2] <= data->len && row[2] - row[1] >= HEADER_BYTES;
    if (!is) PyErr_SetString(PyExc_ValueError, "a batch that is not in the data");
    return is;
}

static PyObject *check_batches(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    (void)self;
    Bounds bounds;
    Py_buffer data, table;
    if (!takes(nargs, 3, "check_batches") || !read_bounds(args[2], &bounds) || !open_both(args[0], args[1], &data, &table)) return NULL;
    PyObject *answer = NULL;
    Batches batches = {&bounds, NULL, 0, 0, 0, {NO_PRODUCER, 0, 0}};
    int64_t count = rows_in(&table, sizeof(Row)), row[5];
    if (count < 0) goto out;
    batches.rows = PyMem_Malloc((count + 1) * sizeof(Row));
    if (batches.rows == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    Bytes first = data.buf;
    for (int taken = 1; taken && batches.count < count;) {
        memcpy(row, (Bytes)table.buf + batches.count * sizeof(Row), sizeof(Row));
        if (!is_within(row, &data)) goto out;
        taken = take_batch(&batches, first, first + row[1], first + row[2], row[0]);
        if (taken < 0) goto out;
    }
    answer = told(&batches, 0);
out:
    PyMem_Free(batches.rows);
    close_both(&data, &table);
    return answer;
}

static PyObject *place_batches(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    (void)self;
    Py_buffer data, table;
    if (!takes(nargs, 4, "place_batches")) return NULL;
    int64_t offset, epoch;
    if (!two_numbers(args + 2, &offset, &epoch) || !open_both(args[0], args[1], &data, &table)) return NULL;
    PyObject *stored = NULL, *described = NULL, *answer = NULL;
    int64_t count = rows_in(&table, sizeof(Row)), size = 0, row[5];
    if (count < 0) goto out;
    for (int64_t i = 0; i < count; i++) {
        memcpy(row, (Bytes)table.buf + i * sizeof(Row), sizeof(Row));
        if (!is_within(row, &data)) goto out;
        size += row[2] - row[1];
    }
    stored = PyBytes_FromStringAndSize(NULL, size);
    described = PyBytes_FromStringAndSize(NULL, count * sizeof(Described));
    if (stored == NULL || described == NULL) goto out;
    unsigned char *to = (unsigned char *)PyBytes_AsString(stored);
    char *told = PyBytes_AsString(described);
    for (int64_t i = 0; i < count; i++) {
        memcpy(row, (Bytes)table.buf + i * sizeof(Row), sizeof(Row));
        int64_t batch_size = row[2] - row[1];
        memcpy(to, (Bytes)data.buf + row[1], batch_size);
        put64(to, offset);
        put32(to + 12, (uint32_t)epoch);
        offset += row[3], to += batch_size;
        Described each = {offset - 1, batch_size, row[4]};
        memcpy(told + i * sizeof(Described), each, sizeof each);
    }
    answer = Py_BuildValue("OO", stored, described);
out:
    Py_XDECREF(stored);
    Py_XDECREF(described);
    close_both(&data, &table);
    return answer;
}

static PyObject *answer_requests(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    (void)self;
    Py_buffer table, shape;
    if (!takes(nargs, 4, "answer_requests")) return NULL;
    int64_t offset_at, offset;
    if (!two_numbers(args + 2, &offset_at, &offset) || !open_both(args[0], args[1], &table, &shape)) return NULL;
    PyObject *answers = NULL;
    int64_t count = rows_in(&table, sizeof(Row)), row[5];
    if (count < 0) goto out;
    if (offset_at < 8 || offset_at > shape.len - 8) {
        PyErr_SetString(PyExc_ValueError, "no offset in the answer");
        goto out;
    }
    answers = PyBytes_FromStringAndSize(NULL, count * shape.len);
    if (answers == NULL) goto out;
    unsigned char *to = (unsigned char *)PyBytes_AsString(answers);
    for (int64_t i = 0; i < count; i++, to += shape.len) {
        memcpy(row, (Bytes)table.buf + i * sizeof(Row), sizeof(Row));
        memcpy(to, shape.buf, shape.len);
        put32(to + 4, (uint32_t)row[0]);
        put64(to + offset_at, offset);
        offset += row[3];
    }
out:
    close_both(&table, &shape);
    return answers;
}

/* Reads the groups from a tuple of (rows, first offset, log start offset); 0 and an error if it is no such tuple. */
static int read_groups(PyObject *tuple, Py_ssize_t count, Group *groups) {
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *each = PyTuple_GetItem(tuple, i), *fields[3] = {NULL, NULL, NULL};
        for (int field = 0; field < 3; field++) {
            fields[field] = each ? PyTuple_GetItem(each, field) : NULL;
            if (fields[field] == NULL) return 0;
        }
        Group *group = &groups[i];
        if (!PyBytes_Check(fields[0]) || PyBytes_Size(fields[0]) % sizeof(Row)) {
            PyErr_SetString(PyExc_ValueError, "no whole rows");
            return 0;
        }
        group->rows = fields[0], group->next = 0, group->count = PyBytes_Size(fields[0]) / sizeof(Row);
        if (!two_numbers(fields + 1, &group->offset, &group->log_start)) return 0;
    }
    return 1;
}

/* Whether the request of a row lies in the data, and `left` group numbers are enough for its batches. */
static int is_request(const int64_t *row, const Py_buffer *data, int64_t start_size, int64_t left) {
    return row[1] >= 0 && start_size <= data->len && row[1] <= data->len - start_size && row[2] <= data->len
           && row[2] >= row[1] + start_size && row[3] >= 0 && row[3] <= left;
}

static PyObject *answer_spread(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    (void)self;
    Py_buffer data, table, ordered;
    int64_t start_size, version;
    if (!takes(nargs, 6, "answer_spread") || !two_numbers(args + 4, &start_size, &version)) return NULL;
    Py_ssize_t group_count = PyTuple_Size(args[3]);
    if (group_count < 0 || !open_both(args[0], args[1], &data, &table)) return NULL;
    PyObject *answers = NULL;
    unsigned char *made = NULL;
    Group *groups = PyMem_Malloc((group_count + 1) * sizeof(Group));
    ordered.obj = NULL;
    if (groups == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    if (PyObject_GetBuffer(args[2], &ordered, PyBUF_SIMPLE) < 0 || !read_groups(args[3], group_count, groups)) goto out;
    int64_t count = rows_in(&table, sizeof(Request)), left = rows_in(&ordered, sizeof(int32_t)), size = 0, row[4];
    if (count < 0 || left < 0 || start_size < 8) goto wrong;
    Bytes first = data.buf, order = ordered.buf;
    for (int64_t i = 0; i < count; i++, left -= row[3]) {
        memcpy(row, (Bytes)table.buf + i * sizeof(Request), sizeof(Request));
        if (!is_request(row, &data, start_size, left)) goto wrong;
        int64_t most = most_of_answer(row, first + row[1] + start_size, first + row[2], (int)version);
        if (most < 0) goto wrong;
        size += most;
    }
    made = PyMem_Malloc(size + 1);
    if (made == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    unsigned char *to = made;
    for (int64_t i = 0; i < count; i++) {
        memcpy(row, (Bytes)table.buf + i * sizeof(Request), sizeof(Request));
        to = put_answer(to, row, first + row[1] + start_size, first + row[2], (int)version, order, groups, group_count);
        if (to == NULL) goto wrong;
        order += row[3] * sizeof(int32_t);
    }
    answers = PyBytes_FromStringAndSize((char *)made, to - made);
    goto out;
wrong:
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "tables that do not fit the requests in the data");
out:
    PyMem_Free(made);
    PyMem_Free(groups);
    if (ordered.obj != NULL) PyBuffer_Release(&ordered);
    close_both(&data, &table);
    return answers;
}

static PyObject *note_batches(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    (void)self;
    int64_t given[8]; /* position, since, interval, base, last, newest, offset_of_newest, noted */
    Py_buffer table;
    if (!takes(nargs, 9, "note_batches")) return NULL;
    for (int i = 0; i < 8; i += 2)
        if (!two_numbers(args + 1 + i, &given[i], &given[i + 1])) return NULL;
    if (PyObject_GetBuffer(args[0], &table, PyBUF_SIMPLE) < 0) return NULL;
    int64_t position = given[0], since = given[1], interval = given[2], base = given[3];
    int64_t last = given[4], newest = given[5], offset_of_newest = given[6], noted = given[7];
    PyObject *answer = NULL;
    int64_t count = rows_in(&table, sizeof(Described)), entries = 0, time_entries = 0, *columns = NULL;
    if (count < 0) goto out;
    columns = PyMem_Malloc((count ? count : 1) * 6 * sizeof(int64_t));
    if (columns == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    int64_t *lasts = columns, *positions = lasts + count, *keys = positions + count, *values = keys + count;
    int64_t *times = values + count, *time_values = times + count;
    for (int64_t i = 0; i < count; i++) {
        int64_t batch[3];
        memcpy(batch, (Bytes)table.buf + i * sizeof(Described), sizeof batch);
        last = batch[0];
        if (batch[2] > newest) newest = batch[2], offset_of_newest = last;
        if (since > interval) {
            keys[entries] = last - base, values[entries++] = position;
            if (newest > noted) times[time_entries] = noted = newest, time_values[time_entries++] = offset_of_newest - base;
            since = 0;
        }
        lasts[i] = last, positions[i] = position;
        since += batch[1], position += batch[1];
    }
    Py_ssize_t all = count * sizeof(int64_t), some = entries * sizeof(int64_t), timed = time_entries * sizeof(int64_t);
    answer = Py_BuildValue("y#y#y#y#y#y#LLLLL", (char *)lasts, all, (char *)positions, all, (char *)keys, some, (char *)values, some,
                           (char *)times, timed, (char *)time_values, timed, (long long)position, (long long)since,
                           (long long)last, (long long)newest, (long long)offset_of_newest);
out:
    PyMem_Free(columns);
    PyBuffer_Release(&table);
    return answer;
}

#define FAST(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
static PyMethodDef methods[] = {
    FAST(walk_records),   FAST(walk_requests),   FAST(read_requests), FAST(check_batches),       FAST(place_batches),
    FAST(answer_requests), FAST(answer_spread), FAST(note_batches),  FAST(name_known_schemas), {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_request_scan", NULL, -1, methods, NULL, NULL, NULL, NULL};

static PyObject *imported(const char *name, const char *function) {
    PyObject *found = PyImport_ImportModule(name);
    PyObject *called = found ? PyObject_GetAttrString(found, function) : NULL;
    Py_XDECREF(found);
    return called;
}

PyMODINIT_FUNC PyInit__request_scan(void) {
    library_crc = imported("barnabas.protocol.records.crc", "crc32c");
    library_unfolded = library_crc ? imported("barnabas.protocol.records.compression", "unfolded") : NULL;
    if (library_unfolded == NULL) return NULL;
    use_processor = has_processor_crc();
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddIntConstant(made, "SOURCE_CHECKSUM", (long)SOURCE_CHECKSUM) < 0) Py_CLEAR(made);
    return made;
}
