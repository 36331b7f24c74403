/* The functions of walk.py as machine code: what each of them takes, gives and promises is written there, once.
 *
 * The package's build compiles this where a C compiler is at hand (tools/build_hook.py); `scan` uses it if it is of this very text.
 *
 * Rules
 *   1. Every byte of a peer's is read between two pointers that are looked at first; a length is compared with the bytes that are left,
 *      never added to a pointer before.
 *   2. It says yes only to what is well-formed, and nothing to what is wrong or rare, as all of `scan`.
 *   3. Python's stable interface only, of 3.11: one library serves that and all later versions.
 *   4. A function that Python calls has one way out, on which it lets go of its buffers.
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
typedef int64_t Row[5];       /* correlation id, where the batch begins and ends, its records, its largest timestamp */
typedef int64_t Described[3]; /* last offset, size, largest timestamp */

enum {
    SIZE_FIELD = 4,      /* in front of a request; of the size of a record, which takes no more here */
    HEADER_BYTES = 61,   /* of a batch */
    LENGTH_OVERHEAD = 12,
    CRC_AT = 17,
    CRC_FROM = 21,
    EMPTY_TAGS = 3,      /* of partition, topic and request */
    INLINE_CRC = 1024,   /* a call of the library takes longer than its better loop saves */
};
#define LATEST_TIME ((int64_t)1 << 61) /* of a first record: sums with deltas of 55 bits do not overflow */

static PyObject *library_crc;

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

/* The varint at `at`, of `longest` bytes at most; where it ends, or NULL. */
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

/* 1 if the checksum is right, 0 if not, -1 after an error of the library. */
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

/* A length and so many bytes, or NULL; null where it `may_be`, which is told. */
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
        at = varint(at + 1, end, 8, &value); /* behind the attributes */
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
        if (at != NULL) at = varint(at, end, 4, &value); /* headers */
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

/* --- requests */

typedef struct {
    int64_t max_request, max_batch, oldest, newest, room, offsets, requests;
    int needs_keys;
} Bounds;

typedef struct {
    int64_t id, epoch, sequence;
} Producer;

#define NO_PRODUCER (-1)

/* Where the batch of the request that fills [at, stop) begins, or NULL; `known` and `known_size` as in walk.py. */
static Bytes batch_of(Bytes at, Bytes stop, Bytes known, Py_ssize_t known_size, int flexible, const Bounds *bounds) {
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
    if (length < HEADER_BYTES || length > (uint64_t)bounds->max_batch || length + tags != (uint64_t)(stop - at)) return NULL;
    return flexible && (stop[-1] | stop[-2] | stop[-3]) ? NULL : at;
}

/* Whether a batch is of the producer of those before it, and the next in its sequence; `producer` is that of the next one then. */
static int follows(Bytes batch, int64_t count, int is_first, Producer *producer) {
    int64_t id = signed64(batch + 43);
    if (id == NO_PRODUCER) return producer->id == NO_PRODUCER;
    int64_t epoch = (int64_t)batch[51] << 8 | batch[52], sequence = unsigned32(batch + 53);
    if (id < 0 || sequence > INT32_MAX) return 0;
    if (!is_first && (producer->id != id || producer->epoch != epoch || producer->sequence != sequence)) return 0;
    producer->id = id, producer->epoch = epoch, producer->sequence = (sequence + count) & INT32_MAX;
    return 1;
}

/* 1 for a good batch in [batch, end), whose number of records and largest timestamp are told; 0 for another, -1 after an error. */
static int is_good(Bytes batch, Bytes end, const Bounds *bounds, int64_t *count, int64_t *largest) {
    *count = unsigned32(batch + 57);
    *largest = signed64(batch + 35);
    int64_t base = signed64(batch + 27);
    if (signed64(batch) || unsigned32(batch + 8) + (int64_t)LENGTH_OVERHEAD != end - batch || batch[16] != 2) return 0;
    if (batch[21] || batch[22]) return 0; /* a codec, a transaction, or the broker's own time */
    if (*count < 1 || *count > INT32_MAX || unsigned32(batch + 23) != *count - 1 || base < 0 || base >= LATEST_TIME) return 0;
    Records seen;
    if (!walk(batch + HEADER_BYTES, end, *count, &seen)) return 0;
    if (base + seen.max_delta != *largest || base + seen.min_delta < bounds->oldest || *largest > bounds->newest) return 0;
    if (bounds->needs_keys && seen.has_null_key) return 0;
    return is_crc_right(batch + CRC_FROM, end - batch - CRC_FROM, unsigned32(batch + CRC_AT));
}

/* --- what Python calls */

static int read_bounds(PyObject *tuple, Bounds *bounds) {
    int64_t *fields[] = {&bounds->max_request, &bounds->max_batch, &bounds->oldest,  &bounds->newest,
                         &bounds->room,        &bounds->offsets,   &bounds->requests};
    for (int i = 0; i < 7; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i); /* an error where it is no tuple, or too short */
        if (item == NULL) return 0;
        *fields[i] = PyLong_AsLongLong(item);
        if (PyErr_Occurred()) return 0;
    }
    PyObject *last = PyTuple_GetItem(tuple, 7);
    bounds->needs_keys = last ? PyObject_IsTrue(last) : -1;
    return bounds->needs_keys >= 0;
}

static int takes(Py_ssize_t given, Py_ssize_t wanted, const char *name) {
    if (given != wanted) PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", name, wanted, given);
    return given == wanted;
}

/* The bytes of both, or neither and an error. */
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

/* Two numbers, or neither and an error. */
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

static PyObject *walk_requests(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    (void)self;
    Bounds bounds;
    Py_buffer data, known;
    if (!takes(nargs, 5, "walk_requests") || !read_bounds(args[4], &bounds)) return NULL;
    int64_t position = PyLong_AsLongLong(args[1]);
    int flexible = PyErr_Occurred() ? -1 : PyObject_IsTrue(args[3]);
    if (flexible < 0 || !open_both(args[0], args[2], &data, &known)) return NULL;
    PyObject *answer = NULL;
    Row *rows = NULL;
    if (position < 0 || position > data.len || known.len < 8) {
        PyErr_SetString(PyExc_ValueError, "no position in the data, or no start of a request");
        goto out;
    }
    Bytes first = data.buf, at = first + position, end = first + data.len;
    int64_t fit = (end - at) / (SIZE_FIELD + known.len + HEADER_BYTES) + 1, most = bounds.requests < fit ? bounds.requests : fit;
    rows = PyMem_Malloc((most > 0 ? most : 1) * sizeof(Row));
    if (rows == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    int64_t taken = 0, records = 0, size = 0;
    Producer producer = {NO_PRODUCER, 0, 0};
    while (taken < most && end - at >= SIZE_FIELD + known.len) {
        int64_t request = unsigned32(at);
        if (request > bounds.max_request || request > end - at - SIZE_FIELD || request < known.len) break;
        Bytes start = at + SIZE_FIELD, stop = start + request;
        Bytes batch = batch_of(start, stop, known.buf, known.len, flexible, &bounds);
        if (batch == NULL) break;
        Bytes batch_end = flexible ? stop - EMPTY_TAGS : stop;
        int64_t count, largest;
        int good = is_good(batch, batch_end, &bounds, &count, &largest);
        if (good < 0) goto out;
        if (!good || size + (batch_end - batch) > bounds.room || records + count > bounds.offsets) break;
        if (!follows(batch, count, taken == 0, &producer)) break;
        int64_t *row = rows[taken++];
        row[0] = (int32_t)unsigned32(start + 4);
        row[1] = batch - first, row[2] = batch_end - first, row[3] = count, row[4] = largest;
        records += count, size += batch_end - batch;
        at = stop;
    }
    answer = Py_BuildValue("y#LLLLN", (char *)rows, (Py_ssize_t)(taken * sizeof(Row)), (long long)taken, (long long)records,
                           (long long)size, (long long)(at - first), PyBool_FromLong(producer.id != NO_PRODUCER));
out:
    PyMem_Free(rows);
    close_both(&data, &known);
    return answer;
}

/* The rows in a buffer of Python's; an error where it does not hold whole ones. */
static int64_t rows_in(const Py_buffer *buffer, size_t row) {
    if (buffer->len % row) {
        PyErr_SetString(PyExc_ValueError, "no whole rows");
        return -1;
    }
    return buffer->len / row;
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
        if (row[1] < 0 || row[2] > data.len || row[2] - row[1] < HEADER_BYTES) {
            PyErr_SetString(PyExc_ValueError, "a batch that is not in the data");
            goto out;
        }
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
    FAST(walk_records), FAST(walk_requests), FAST(place_batches), FAST(answer_requests), FAST(note_batches), {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_walk", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__walk(void) {
    PyObject *crc = PyImport_ImportModule("barnabas.protocol.records.crc");
    library_crc = crc ? PyObject_GetAttrString(crc, "crc32c") : NULL;
    Py_XDECREF(crc);
    if (library_crc == NULL) return NULL;
    use_processor = has_processor_crc();
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddIntConstant(made, "SOURCE_CHECKSUM", (long)SOURCE_CHECKSUM) < 0) Py_CLEAR(made);
    return made;
}
