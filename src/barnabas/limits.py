"""The bounds on everything that grows with a peer's input.

Bounds that a user may set are configuration keys (`config/definitions/`); no user needs to set the bounds here.
"""

MAX_ARRAY_LENGTH = 1_000_000  # elements of one array in a message
MAX_REQUEST_ELEMENTS = 1_000_000  # elements of all arrays of one request; with nested arrays one byte can yield fifty elements
MAX_TAGGED_FIELDS = 10_000  # tagged fields of one struct in a request
MAX_BUFFERS_PER_WRITE = 64  # buffers of one writev; the kernel accepts 1,024
# size of a buffer for one large frame; a request with a batch of the default max.message.bytes fits
LARGE_FRAME_BYTES = 1024 * 1024 + 64 * 1024
RECEIVE_BUFFER_BYTES = LARGE_FRAME_BYTES  # the receive buffer that all connections of a loop share
# the part of the receive buffer for connections with small frames; thousands fit, enough for one turn
RECEIVED_SMALL_BYTES = 256 * 1024
SMALL_FRAME_BYTES = 512  # size of the largest small frame; about 2,000 frames of this size fill the whole receive buffer
KEPT_FRAME_BUFFERS = 4  # large buffers kept for later large frames
KEPT_GROWN_BYTES = 16 * 1024 * 1024  # a buffer that had to grow for a larger frame is kept up to this size; only one is kept
FRAME_GROWTH_BYTES = 1024 * 1024  # memory allocated for a frame ahead of its received bytes
# requests of one connection that wait for their responses; above it the broker does not read the socket
MAX_REQUESTS_IN_FLIGHT = 1_000
MAX_REQUESTS_PER_TURN = 128  # requests of one connection before other connections are served; a receive buffer holds thousands
# a client reuses the memory of responses up to this size; a follower's responses have about 10 MB
MAX_KEPT_ANSWER_BYTES = 12 * 1024 * 1024
KEPT_FREE_BYTES = 16 * 1024 * 1024  # free memory kept for the buffers of large requests instead of returned to the kernel
MAX_REPEATED_REQUESTS = 64  # templates of produce requests that each connection may always have
MAX_REPEATED_REQUESTS_OF_ONE = 4_096  # templates of one connection while the broker has room: one per partition that it writes to
# templates of the whole broker above MAX_REPEATED_REQUESTS: 20 MB; the same for partitions: 8 MB
MAX_REPEATED_REQUESTS_OF_ALL = 16_384
MAX_REPEATED_LAYOUTS = 4  # different lengths of the bytes before the records that a connection recognises
MAX_REPEATED_BYTES = 512  # bytes before the records in a produce request that has a template
MAX_REPEATED_FETCH_BYTES = 4096  # size of a fetch request that a connection recognises as repeated: about 100 partitions
# size of a request that is handled together with its neighbours: two such requests fit into the receive buffer
MAX_RUN_BYTES = RECEIVE_BUFFER_BYTES // 2
# requests handled together, 0.3 ms for simple ones; this many of 128 bytes fit into `RECEIVED_SMALL_BYTES`
MAX_RUN_REQUESTS = 2_048
MAX_UNSENT_BYTES = 8 * 1024 * 1024  # unsent responses of a slow client; above it the broker does not read its requests
MAX_PULSES = 1_000  # other brokers whose liveness probes a thread answers; the event loop answers the probes of further brokers
MAX_HTTP_HEAD_BYTES = 16 * 1024  # size of a request head at the metrics listener
MAX_HTTP_CONNECTIONS = 64  # concurrent connections to the metrics listener
HTTP_TIMEOUT_S = 10.0  # for one request to the metrics listener
MAX_PARTITIONS_PER_REQUEST = 10_000  # new partitions in one request; the same limit as in Kafka
MAX_OLD_CLIENTS = 200  # clients that use request versions dropped in Kafka 4; each has its own metrics
MAX_OLD_CLIENT_NAME = 100  # characters of such a client's name
MAX_QUOTA_METERS = 10_000  # clients whose use of a quota is measured separately; further clients share one meter
MAX_QUOTA_BUDGETS = 10_000  # clients whose effective quotas are cached
MAX_QUOTA_SERIES = 500  # clients with quotas on the metrics page; the most recently active clients come first
QUOTA_METER_IDLE_MS = 3_600_000  # the broker forgets a client's use of a quota after this time, as Kafka does
MAX_QUOTA_GROUPS = 1_000  # groups that have their own quota
MAX_RATED_ADDRESSES = 10_000  # addresses whose rate of new connections is measured
MAX_WAITING_CONNECTIONS = 1_000  # connections delayed by the connection rate limit of one listener; further ones are closed
# size of a batch after decompression; a larger batch is refused before it is decompressed
MAX_DECOMPRESSED_BATCH_BYTES = 128 * 1024 * 1024
MAX_BATCH_RECORDS = 1_000_000  # records of a compressed batch; the same limit as in librdkafka
# records of a batch whose errors are described one by one; takes the loop about 10 us per record
MAX_RECORDS_ONE_BY_ONE = 100_000
MAX_CONVERTED_BYTES = 4 * 1024 * 1024  # batches converted for one response to a Fetch below version 4; takes a thread about 0.2 s
MAX_CONVERTED_AT_ONCE = 16 * 1024  # bytes of old-format records that the loop converts itself in 1 ms; a thread converts more
MAX_OPEN_SEGMENTS = 20_000  # open segment files; fewer if the process may open few descriptors (`server/descriptors.py`)
MAX_WINDOWED_INDEXES = 1_000  # segment indexes that cache up to 16 kB of entries for sequential readers
MAX_PREFERRED_LOG_DIRS = 10_000  # partitions that have a chosen log directory (AlterReplicaLogDirs) but do not exist yet
MAX_MOVES_OF_LOGS = 100_000  # waiting and running moves between log directories
MAX_DECISIONS_PER_SESSION = 2_000  # cached decisions of the authorizer for one principal on one host
MAX_REMEMBERED_NAME = 300  # characters of a resource name in a cached decision; decisions on longer names are not cached
MAX_STRING_BYTES = 32_767  # size of a string in a message: the maximum of a 2-byte length
HELD_REGION_BYTES = 32 * 1024  # a waiting file region counts as this many bytes, because it may need a descriptor
MAX_DECIDED_SESSIONS = 10_000  # pairs of principal and host with cached decisions
# total of the topic names that one member of a consumer group subscribes to; a record has at most 1 MB
MAX_SUBSCRIPTION_CHARACTERS = 500_000
MAX_GROUP_EXPRESSIONS = 200  # different regular expressions of a consumer group; matching one takes 1.5 us per topic name
MAX_ACLS = 100_000  # access control lists of a cluster, including those of roles
MAX_ACLS_PER_REQUEST = 10_000  # bindings created by one request; the same limit as in Kafka
MAX_PENALIZED_HOSTS = 10_000  # addresses whose failed log-ins are counted; also pairs of user and address that have logged in
MAX_WAITING_LOGINS = 10  # delayed log-ins of an address that failed too often: it can guess this many passwords in ten seconds
MAX_LOGIN_FRAMES = 20  # frames of one log-in; the longest exchange of any mechanism needs five
LOGIN_TIMEOUT_S = 30.0  # from the start of the connection to the end of its log-in
MAX_BEARER_BYTES = 64 * 1024  # size of a message that contains a bearer token
MAX_JWKS_BYTES = 1024 * 1024  # size of an identity provider's key set
MAX_JWKS_KEYS = 100  # keys of one identity provider
# plaintext encrypted at once, and the maximum that a TLS connection holds while its socket is full
TLS_GATHERED_BYTES = 256 * 1024
TLS_HANDSHAKE_TIMEOUT_S = 15.0  # from the start of the connection to the end of the handshake
MAX_TLS_HANDSHAKE_BYTES = 256 * 1024  # handshake bytes of one peer; a certificate with its whole chain has a few kB
MAX_TOPICS_IN_THE_MAKING = 10_000  # topics being created for metadata requests; one request may create as many
MAX_DELEGATION_TOKENS = 10_000  # existing tokens; each renewal scans all of them
MAX_AUDIT_ENTRIES = 20_000  # audit log entries that wait for their write; further entries are dropped and counted
MAX_AUDIT_BATCH = 500  # audit log entries per write
MAX_AUDIT_TEXT = 256  # characters of a name in the audit log
MAX_REGISTRY_ANSWER_BYTES = 64 * 1024 * 1024  # size of one response that a client accepts from a schema registry
SCHEMA_ID_KEPT_S = 300.0  # a broker treats a schema id as registered for this time before it asks again
# a broker treats a schema id as unregistered for this time only, because it may be registered at any time
UNKNOWN_SCHEMA_ID_KEPT_S = 1.0
# registered schema ids of one subject that a broker caches; as confluent.schema.registry.max.cache.size
MAX_KNOWN_SCHEMA_IDS = 10_000
MAX_UNKNOWN_SCHEMA_IDS = 1_000  # unregistered schema ids of one subject that a broker caches
MAX_SCHEMA_IDS_OF_A_BATCH = 100  # schema ids of one batch that the broker looks up at once; for more, the producer retries
MAX_SCHEMA_QUESTIONS = 1_000  # look-ups in one broker that wait for the registry; for more, producers retry
SCHEMA_REGISTRY_TIMEOUT_S = 3.0  # of one request from a broker to one URL of the registry
SCHEMA_QUESTION_TIMEOUT_S = 10.0  # the longest time that a produce request waits for the registry
SCHEMA_REGISTRY_PAUSE_S = 0.5  # time without further requests to a registry that did not answer
MAX_AVRO_CHARACTERS = 4 * 1024 * 1024  # size of an Avro schema with its references; parsing this size takes about 1 s
MAX_AVRO_DEPTH = 100  # nested types in an Avro schema; also nested levels of its JSON values
MAX_AVRO_COMPARISONS = 200_000  # pairs of types and pairs of fields in one compatibility check; takes about 1 s
MAX_AVRO_COMPARED_DEPTH = 2_000  # nested types that a compatibility check follows, also through references
MAX_AVRO_INCOMPATIBILITIES = 1_000  # messages of one compatibility check; further messages are dropped
MAX_PROTOBUF_CHARACTERS = 1_000_000  # size of one Protobuf schema; parsing this size takes about 1 s
MAX_PROTOBUF_DEPTH = 32  # levels of nested messages and of nested option values; the same limit as in protoc
MAX_PROTOBUF_NAMES = 50_000  # messages, fields, enum values and other names that one schema declares
MAX_PROTOBUF_FILES = 1_000  # schemas that one schema needs, directly or indirectly
MAX_SCHEMA_CHARACTERS = 10_000_000  # size of one schema; a larger schema is refused before it is parsed
MAX_PARSED_SCHEMAS = 1_000  # parsed schemas that the registry caches, the most recently used ones
MAX_PARSED_CHARACTERS = 4_000_000  # total size of the texts of all cached schemas
MAX_KEPT_CHARACTERS = 200_000  # size of one cached schema; a larger schema is parsed again for each use
MAX_CHARACTERS_AT_ONCE = 2_000  # size of the schemas that a registry parses or compares on its event loop; takes up to 30 ms
MAX_LARGE_REQUESTS_AT_ONCE = 2  # threads for larger schemas in requests that read; requests that write have one more thread
MAX_KEPT_IDENTITIES = 20_000  # identities of schema texts that were parsed before; 200 bytes each
MAX_SCHEMA_REFERENCES = 1_000  # schemas that one schema needs, directly or indirectly
MAX_LISTED_SCHEMAS = 1_000  # schemas in one response of the registry, as in Confluent's registry; a client requests further pages
MAX_LISTED_SUBJECTS = 20_000  # names in one response of the registry
MAX_WAITING_REGISTRATIONS = 10_000  # commands that wait for the writer of the registry
MAX_RENDERED_SCHEMAS = 10_000  # cached responses to requests for a schema by id
MAX_FORWARDED_ANSWER_BYTES = 64 << 20  # size of a response that a registry forwards from the leading registry
MAX_SERVICE_BODY_BYTES = 12 * 1024 * 1024  # size of one request body at an HTTP service; a schema of 10 MB fits
MAX_SERVICE_BODIES_BYTES = 128 * 1024 * 1024  # size of all request bodies that one HTTP service holds; further requests get 503
# bytes of a refused body that the service still reads, so that the client reads the response
MAX_SERVICE_DROPPED_BYTES = 64 * 1024 * 1024
SERVICE_DROP_TIMEOUT_S = 2.0  # the longest time that the service reads a refused body
MAX_SERVICE_HEAD_BYTES = 64 * 1024  # size of a request line with its headers; Kafka's bearer tokens fit
MAX_SERVICE_TARGET_BYTES = 16 * 1024  # size of a request's path and query
MAX_SERVICE_CONNECTIONS = 1_000  # concurrent connections to one HTTP service; further ones are closed
SERVICE_REQUEST_TIMEOUT_S = 60.0  # from the head of a request to the end of its response
SERVICE_IDLE_TIMEOUT_S = 75.0  # time of a connection between two requests
SERVICE_HEAD_TIMEOUT_S = 15.0  # from the start of the connection, or the first byte of a later request, to the end of its head
SERVICE_STOP_TIMEOUT_S = 10.0  # for the running requests when a service stops
MAX_SERVICE_LOGINS = 10_000  # callers of a service whose log-ins are cached
MAX_SERVICE_LOGINS_AT_ONCE = 16  # concurrent log-in checks at the cluster for one service
SERVICE_LOGIN_DELAY_MS = 100  # before a service answers a refused log-in; the delay grows after ten failures of an address
SERVICE_LOGIN_KEPT_S = 60.0  # a service does not check a successful log-in again for this time
ACLS_KEPT_S = 10.0  # a service uses the bindings that it has read for this time
ACLS_VALID_S = 60.0  # a service uses them for this time if the cluster does not answer
ACLS_RETRY_S = 1.0  # between two attempts to read the bindings
ACLS_TIMEOUT_S = 5.0  # of one attempt
SCHEMAS_STALE_S = 5.0  # a schema registry that gets no response about its topic for this time is not ready
SERVICE_SILENT_S = 2.0  # a service logs that it waits for the cluster after this time
SERVICE_CLUSTER_RETRY_S = 0.5  # between two attempts of a starting service to reach the cluster
MAX_SERVICE_QUERY_FIELDS = 1_000  # parameters in the query of a request
# bytes of a response that wait for the client; the service writes more after they are sent
SERVICE_ANSWER_BUFFER_BYTES = 64 * 1024
SERVICE_ANSWER_TIMEOUT_S = 15.0  # for a client to read the bytes that wait for it
MAX_JSON_SCHEMA_CHARACTERS = 4 * 1024 * 1024  # size of a JSON Schema with the schemas that it references; parsing takes 0.7 s
MAX_JSON_SCHEMA_DEPTH = 128  # nested objects and arrays of a JSON Schema
MAX_JSON_SCHEMA_STEPS = 300_000  # comparisons and reported differences of two JSON Schemas; took at most 6 s when measured
MAX_JSON_SCHEMA_DIFFERENCES = 500  # differences of two JSON Schemas that are kept; further ones are dropped
MAX_JSON_SCHEMA_PATH = 64  # steps in the path to a difference; a message omits deeper steps
MAX_JSON_SCHEMA_PATH_CHARACTERS = 1_000  # size of the path to a difference in a message
MAX_CACHED_SCHEMAS = 10_000  # schemas that a registry client caches
MAX_VALUE_DEPTH = 100  # nested objects and arrays in a value with a schema; the same limit as in Protobuf's own libraries
MAX_TABLE_ITEMS = 1_000_000  # of a list or map in a record that becomes a row of a table; a record of 1 MB has fewer
MAX_REFERENCE_DEPTH = 100  # nested references that a registry client follows
MAX_SQL_CHARACTERS = 16 * 1024 * 1024  # of one text of SQL statements
MAX_SQL_TOKENS = 2_000_000  # words of one statement; parsing them takes some 20 s
MAX_SQL_DEPTH = 100  # brackets inside of each other in a statement; the parser needs some nine calls for each
MAX_SQL_SESSIONS = 1_000  # sessions of one SQL engine at once
MAX_SQL_IDLE_SESSIONS = 64  # sessions that wait for the next HTTP request of their caller
SQL_IDLE_SESSION_S = 30.0  # that such a session waits
MAX_SQL_SPARK_SESSIONS = 4  # sessions of one SQL engine with a Spark of their own; each takes some 500 MB
MAX_SQL_TEMPORARY_VIEWS = 1_000  # views of one session
MAX_SQL_VIEW_NODES = 100_000  # parts of the queries of views that stand in one statement
MAX_SQL_HOPS = 10_000  # windows of `hop` that one row is in; `incremental/macros.sql` has the number
MAX_SQL_NOTICES = 100  # that one session keeps until they are taken
MAX_SQL_PREPARED = 10_000  # statements that one session prepares by name
MAX_SQL_PLANS = 100  # statements that one session keeps checked by their text
MAX_SQL_PLAN_CHARACTERS = 10_000  # of such a text
MAX_SQL_SOURCES = 200  # topics that one session keeps connections for
MAX_SQL_DEFINITIONS = 100_000  # tables that are declared in one cluster
MAX_SQL_DEFINITION_BYTES = 512 * 1024  # of the record of one definition
MAX_SQL_SEQUENCES = 100_000  # sequences of one cluster
MAX_SQL_SEQUENCE_BYTES = 4 * 1024  # of the record of one sequence; its name and its owner's are most of it
MIN_SQL_SEQUENCE_BLOCK, MAX_SQL_SEQUENCE_BLOCK = 32, 1_024  # numbers that a server takes at once, unless a statement needs more
MAX_FUNCTIONS = 1_000  # functions of users in one cluster
MAX_FUNCTION_CHARACTERS = 64 * 1024  # of the body of a function
MAX_FUNCTION_BYTES = 512 * 1024  # of the record of a function, with the earlier definitions that views use
MAX_FUNCTION_ARGUMENTS = 100  # of a function, and columns of the rows that it gives; as in Postgres
MAX_FUNCTION_DEPTH = 32  # functions in SQL that call each other
MAX_FUNCTION_NODES = 100_000  # parts that functions in SQL add to one statement
MAX_FUNCTION_PROCESSES = 8  # of Python, for functions; further calls wait
MAX_FUNCTION_MEMORY_BYTES = 1024 * 1024 * 1024  # of such a process
MAX_FUNCTION_MESSAGE_BYTES = 512 * 1024 * 1024  # of the arguments or the results of one call
FUNCTION_CALL_S = 300.0  # of one call of a function, for some thousand rows
MAX_KNOWN_FUNCTIONS = 1_000  # definitions that an instance of DuckDB has; one with more is made anew
MAX_SQL_COLUMNS = 1_600  # columns of one table, as in Postgres
MAX_SQL_NAME = 249  # characters of a table's name, as of a topic's
MAX_SQL_TRANSACTION_BYTES = 64 * 1024 * 1024  # of rows that an open transaction holds before it writes them
MAX_SQL_MODIFIED_ROWS = 1_000_000  # rows that one UPDATE, DELETE or MERGE changes
MAX_HELD_SEGMENTS = 256  # files of segments that snapshots of tables keep open in a process; of its 1,024 descriptors, by default
MAX_FOUND_ABORTS = (
    100_000  # aborted transactions that a table finds in the batches of a partition before it reads the index again
)
MAX_KEY_INDEX_BYTES = 8 << 30  # of all indexes of keys in a folder; a record takes five
MAX_INDEXED_KEYS = 1_000  # keys of one condition that are looked for in an index; more of them would be in most of its blocks
MAX_SQL_LIVE_BYTES = (
    512 * 1024 * 1024
)  # memory for the rows of tables with a primary key that an SQL engine keeps; larger tables are read
MAX_SQL_INDEXES = 64  # names of indexes that a table has, though they have no effect
MAX_SQL_ROW_LOCKS = 20_000  # rows of one table that a session locks one by one; more lock the table
MAX_SQL_RELEASED_LOCKS = 100_000  # locks whose release an SQL engine remembers
MAX_SQL_LOCKED_TOPICS = 10_000  # topics whose last writes an SQL engine remembers
MAX_SQL_LIVE_TABLES = 200  # tables whose rows an SQL engine keeps
MAX_SQL_LOOKING_CALLERS = 64  # log-ins that an event loop looks at live tables with; other callers use their threads
MAX_SQL_COPY_KEYS = 10_000_000  # keys that one COPY or INSERT remembers to find duplicates; some 100 bytes each
MAX_SQL_COPY_LINE_BYTES = 64 * 1024 * 1024  # of one line of COPY FROM
MAX_POSTGRES_CONNECTIONS = 1_000  # to one Postgres listener at once; further ones are told so (53300)
MAX_POSTGRES_STARTUP_BYTES = 10_000  # of a client's first packet; Postgres' limit
MAX_POSTGRES_MESSAGE_BYTES = 64 << 20  # of one message of a client: a statement's text, or the values of its parameters
MAX_POSTGRES_WAITING_BYTES = 512 << 20  # of messages that all connections hold; a connection that brings more ends (53200)
MAX_POSTGRES_READ_AHEAD_BYTES = 1 << 20  # of messages that a connection holds before it stops reading
MAX_POSTGRES_STATEMENTS = 10_000  # prepared statements of one connection; drivers keep 100 to 256
MAX_POSTGRES_STATEMENT_CHARACTERS = 64 << 20  # of the texts of all of them
MAX_POSTGRES_PORTALS = 1_000  # open at once on one connection, cursors among them
MAX_POSTGRES_ROW_BYTES = 1 << 30  # of one row of a result; Postgres' limit of a field
MAX_POSTGRES_UNSENT_BYTES = 1 << 20  # of answers that a connection holds; its statement waits for the client to read
POSTGRES_STARTUP_TIMEOUT_S = 30.0  # from the connection to the end of its log-in
POSTGRES_MESSAGE_TIMEOUT_S = 60.0  # for the next byte of a message that has begun
POSTGRES_WRITE_TIMEOUT_S = 120.0  # for a client to read the next of its answers
POSTGRES_IDLE_TIMEOUT_S = 28_800.0  # between two statements; MySQL's wait_timeout, since pools keep connections for hours
POSTGRES_IDLE_IN_TRANSACTION_TIMEOUT_S = 600.0  # between two statements of a transaction
POSTGRES_STOP_TIMEOUT_S = 10.0  # for the statements that run when the server stops
MAX_VIEW_RECOMPUTED_ROWS = 1_000_000  # rows that a view reads again at each change, where its query has no key to divide them by
MAX_JOB_APPENDED_ROWS = 5_000_000  # rows that an insert makes of the records of one micro-batch
MAX_JOBS = 1_000  # jobs of one cluster, and records of their states and progress
MAX_JOB_BYTES = 512 * 1024  # of the record of one job, state or progress
MAX_JOB_NAME = 249  # characters, as of a topic's name
MAX_JOB_ERROR_CHARACTERS = 1_000  # of the last error in a job's state
MAX_JOB_LOG_BYTES = 10 * 1024 * 1024  # of a log of the engine; the one before it stays beside it
MAX_JOB_LOG_LINES = 10_000  # lines of a job's log in one answer

MAX_CONNECT_RECORDS = 20_000  # records of the topic of configs: connectors, their tasks, target states
MAX_CONNECT_CONFIG_BYTES = 256 * 1024  # of one of these records; the job of a task has the config too, and more
