"""The bounds on everything that a peer can make grow.

Bounds that a user may set are configuration keys (`config/definitions/`); these are the bounds that nobody needs to set.
"""

MAX_ARRAY_LENGTH = 1_000_000  # elements of one array in a message
MAX_REQUEST_ELEMENTS = 1_000_000  # of all arrays of a request together: nested arrays can make up to fifty elements of each byte
MAX_TAGGED_FIELDS = 10_000  # tagged fields behind one struct of a request
MAX_BUFFERS_PER_WRITE = 64  # buffers handed to one writev; the kernel takes 1,024
LARGE_FRAME_BYTES = 1024 * 1024 + 64 * 1024  # a buffer that takes a request with a batch of max.message.bytes, by default
RECEIVE_BUFFER_BYTES = LARGE_FRAME_BYTES  # the one buffer into which all connections of a loop receive
RECEIVED_SMALL_BYTES = (
    256 * 1024
)  # the part of it for connections that send small frames: it holds thousands, enough for one turn
SMALL_FRAME_BYTES = 512  # the largest small frame; the whole buffer holds some two thousand larger ones
KEPT_FRAME_BUFFERS = 4  # large buffers that are kept for the next large frames
KEPT_GROWN_BYTES = 16 * 1024 * 1024  # a buffer for a frame beyond that size is kept up to this size; only one is kept
FRAME_GROWTH_BYTES = 1024 * 1024  # memory that a frame gets in advance of the bytes that arrived for it
MAX_REQUESTS_IN_FLIGHT = 1_000  # requests of one connection that wait for their responses; beyond it the socket is not read
MAX_REQUESTS_PER_TURN = (
    128  # of one connection, before other connections are served; a receive buffer holds thousands of small ones
)
MAX_KEPT_ANSWER_BYTES = 12 * 1024 * 1024  # a client reuses the memory of a response up to this size; a follower's has 10 MB
KEPT_FREE_BYTES = 16 * 1024 * 1024  # free memory kept for the buffers of large requests instead of being returned to the kernel
MAX_REPEATED_REQUESTS = 64  # produce request templates that a connection has in any case
MAX_REPEATED_REQUESTS_OF_ONE = (
    4_096  # templates of one connection while the broker has room: one for each partition that it writes to
)
MAX_REPEATED_REQUESTS_OF_ALL = 16_384  # of all connections of a broker, in addition: some 20 MB; and as many partitions, 8 MB
MAX_REPEATED_LAYOUTS = 4  # different lengths of the bytes before the records of such a request
MAX_REPEATED_BYTES = 512  # of the bytes before the records of such a request
MAX_REPEATED_FETCH_BYTES = 4096  # of a fetch request that a connection recognises as repeated: about 100 partitions
MAX_RUN_BYTES = (
    RECEIVE_BUFFER_BYTES // 2
)  # of a request that is handled together with its neighbours: two such requests arrive at once
MAX_RUN_REQUESTS = 2_048  # handled together, 0.3 ms if they are plain: as many of 128 bytes as `RECEIVED_SMALL_BYTES` takes
MAX_UNSENT_BYTES = 8 * 1024 * 1024  # responses that a slow client leaves in memory; beyond it its requests are not read
MAX_PULSES = 1_000  # other brokers whose liveness probes a thread answers; the loop answers those of more brokers
MAX_HTTP_HEAD_BYTES = 16 * 1024  # size of the head of a request to the metrics listener
MAX_HTTP_CONNECTIONS = 64  # connections to the metrics listener at once
HTTP_TIMEOUT_S = 10.0  # for one request to the metrics listener
MAX_PARTITIONS_PER_REQUEST = 10_000  # new partitions in one request; Kafka's own bound
MAX_OLD_CLIENTS = 200  # clients with versions of requests that Kafka 4 dropped, each with metrics of its own
MAX_OLD_CLIENT_NAME = 100  # characters of the name of such a client
MAX_QUOTA_METERS = 10_000  # clients whose use of a quota is measured; further clients share one meter
MAX_QUOTA_BUDGETS = 10_000  # clients whose resolved quotas are cached
MAX_QUOTA_SERIES = 500  # clients with quotas on the metrics page, the most recent users first
QUOTA_METER_IDLE_MS = 3_600_000  # a client's use of a quota is forgotten after this time; as in Kafka
MAX_QUOTA_GROUPS = 1_000  # groups with a quota of their own
MAX_RATED_ADDRESSES = 10_000  # addresses whose rate of new connections is measured
MAX_WAITING_CONNECTIONS = 1_000  # connections of a listener that wait because of its rate of new ones; further ones are closed
MAX_DECOMPRESSED_BATCH_BYTES = (
    128 * 1024 * 1024
)  # largest batch after decompression; a larger one is refused before it is decompressed
MAX_BATCH_RECORDS = 1_000_000  # records of a compressed batch; librdkafka's maximum
MAX_RECORDS_ONE_BY_ONE = (
    100_000  # records of a batch whose errors are described one by one; this takes the loop some 10 us a record
)
MAX_CONVERTED_BYTES = 4 * 1024 * 1024  # of batches converted for one response to a Fetch below version 4; some 0.2 s of a thread
MAX_CONVERTED_AT_ONCE = 16 * 1024  # of records of the old formats that the loop converts itself in 1 ms; a thread converts more
MAX_OPEN_SEGMENTS = 20_000  # segment files; fewer if the system allows few descriptors (`server/descriptors.py`)
MAX_WINDOWED_INDEXES = 1_000  # indexes of segments that keep up to 16 kB of entries in memory for sequential readers
MAX_PREFERRED_LOG_DIRS = 10_000  # partitions that do not exist yet but have a log directory chosen (AlterReplicaLogDirs)
MAX_MOVES_OF_LOGS = 100_000  # moves between log directories, waiting or running
MAX_DECISIONS_PER_SESSION = 2_000  # decisions of the authorizer that are cached for one principal on one host
MAX_REMEMBERED_NAME = 300  # characters of a name in a cached decision; decisions on longer names are not cached
MAX_STRING_BYTES = 32_767  # of a string in a message, the maximum of strings with a length of two bytes
HELD_REGION_BYTES = 32 * 1024  # the size that a waiting piece of a file counts as: it may need a descriptor
MAX_DECIDED_SESSIONS = 10_000  # pairs of principal and host with cached decisions
MAX_SUBSCRIPTION_CHARACTERS = (
    500_000  # of the topic names that a consumer group's member subscribes to; a record has at most 1 MB
)
MAX_GROUP_EXPRESSIONS = 200  # different expressions of a consumer group; each is matched with all topic names, 1.5 us a name
MAX_ACLS = 100_000  # access control lists of a cluster, those of roles included
MAX_ACLS_PER_REQUEST = 10_000  # bindings created by one request; Kafka's own bound
MAX_PENALIZED_HOSTS = 10_000  # addresses whose failed log-ins are counted, and pairs of user and address that have logged in
MAX_WAITING_LOGINS = 10  # log-ins of an address that failed too often: so many guesses it has in ten seconds
MAX_LOGIN_FRAMES = 20  # frames of one log-in; the longest exchange of a mechanism takes five
LOGIN_TIMEOUT_S = 30.0  # from the connection to the end of its log-in
MAX_BEARER_BYTES = 64 * 1024  # size of a message with a bearer token
MAX_JWKS_BYTES = 1024 * 1024  # size of an identity provider's key set
MAX_JWKS_KEYS = 100  # keys of an identity provider
TLS_GATHERED_BYTES = 256 * 1024  # plain text encrypted at once, and the most that a TLS connection holds while its socket is full
TLS_HANDSHAKE_TIMEOUT_S = 15.0  # from the connection to the end of the handshake
MAX_TLS_HANDSHAKE_BYTES = 256 * 1024  # from one peer; a certificate with its whole chain has a few kB
MAX_TOPICS_IN_THE_MAKING = 10_000  # topics that metadata requests are creating; as many as one request may create
MAX_DELEGATION_TOKENS = 10_000  # existing at once; renewing one scans them all
MAX_AUDIT_ENTRIES = 20_000  # entries of the audit log that wait to be written; further ones are dropped and counted
MAX_AUDIT_BATCH = 500  # entries written at once
MAX_AUDIT_TEXT = 256  # characters of a name in the audit log
MAX_REGISTRY_ANSWER_BYTES = 64 * 1024 * 1024  # of one answer of a schema registry that a client takes
SCHEMA_ID_KEPT_S = 300.0  # so long a broker takes a schema id for registered without asking again
UNKNOWN_SCHEMA_ID_KEPT_S = 1.0  # so long it takes one for not registered: it may be registered at any time
MAX_KNOWN_SCHEMA_IDS = (
    10_000  # registered schema ids of one subject in a broker; Confluent's confluent.schema.registry.max.cache.size
)
MAX_UNKNOWN_SCHEMA_IDS = 1_000  # schema ids of one subject that a broker remembers as not registered
MAX_SCHEMA_IDS_OF_A_BATCH = 100  # that the registry is asked about at once; the producer tries again for more
MAX_SCHEMA_QUESTIONS = 1_000  # that wait for the registry in one broker; for further ones producers try again
SCHEMA_REGISTRY_TIMEOUT_S = 3.0  # of one request of a broker to one URL of the registry
SCHEMA_QUESTION_TIMEOUT_S = 10.0  # a produce request waits so long for the registry
SCHEMA_REGISTRY_PAUSE_S = 0.5  # a registry that did not answer is not asked for so long
MAX_AVRO_CHARACTERS = 4 * 1024 * 1024  # of an Avro schema with its references; parsing takes about a second
MAX_AVRO_DEPTH = 100  # types inside of each other in an Avro schema, and levels of a JSON value in it
MAX_AVRO_COMPARISONS = 200_000  # pairs of types and of fields that one check of compatibility looks at; about a second
MAX_AVRO_COMPARED_DEPTH = 2_000  # types inside of each other that a check of compatibility follows, also through references
MAX_AVRO_INCOMPATIBILITIES = 1_000  # messages of one check of compatibility; further ones are dropped
MAX_PROTOBUF_CHARACTERS = 1_000_000  # of the text of one Protobuf schema; parsing it takes about a second
MAX_PROTOBUF_DEPTH = 32  # levels of nested messages, and of nested values of options; as protoc
MAX_PROTOBUF_NAMES = 50_000  # messages, fields, values and other names that one schema declares
MAX_PROTOBUF_FILES = 1_000  # schemas that one schema needs, directly or not
MAX_SCHEMA_CHARACTERS = 10_000_000  # of the text of one schema; a larger one is refused before it is parsed
MAX_PARSED_SCHEMAS = 1_000  # parsed schemas that the registry keeps, those used last
MAX_PARSED_CHARACTERS = 4_000_000  # of the texts of all of them
MAX_KEPT_CHARACTERS = 200_000  # of one of them; a larger schema is parsed each time
MAX_CHARACTERS_AT_ONCE = 2_000  # of schemas that a registry parses or compares on its event loop, in up to 30 ms
MAX_LARGE_REQUESTS_AT_ONCE = 2  # threads for such requests that read; one more is for those that write
MAX_KEPT_IDENTITIES = 20_000  # identities of texts that were parsed before; 200 bytes each
MAX_SCHEMA_REFERENCES = 1_000  # schemas that one schema needs, directly or not
MAX_LISTED_SCHEMAS = 1_000  # schemas in one answer of the registry, as in Confluent's; a client pages for more
MAX_LISTED_SUBJECTS = 20_000  # names in one answer of the registry
MAX_WAITING_REGISTRATIONS = 10_000  # commands that wait for the writer of the registry
MAX_RENDERED_SCHEMAS = 10_000  # answers to requests of a schema by id that the registry keeps ready
MAX_FORWARDED_ANSWER_BYTES = 64 << 20  # of an answer of the registry that writes, which another one passes on
MAX_SERVICE_BODY_BYTES = 12 * 1024 * 1024  # of a request to an HTTP service, a schema of 10 MB among them
MAX_SERVICE_BODIES_BYTES = 128 * 1024 * 1024  # of all bodies that one HTTP service holds at once; further requests get 503
MAX_SERVICE_DROPPED_BYTES = 64 * 1024 * 1024  # of a refused body are read, so that the client comes to read the answer
SERVICE_DROP_TIMEOUT_S = 2.0  # for that
MAX_SERVICE_HEAD_BYTES = 64 * 1024  # of a request's line and headers; Kafka's bearer tokens fit
MAX_SERVICE_TARGET_BYTES = 16 * 1024  # of a request's path with its query
MAX_SERVICE_CONNECTIONS = 1_000  # to one HTTP service at once; further ones are closed
SERVICE_REQUEST_TIMEOUT_S = 60.0  # from the head of a request to the end of its answer
SERVICE_IDLE_TIMEOUT_S = 75.0  # of a connection between two requests
SERVICE_HEAD_TIMEOUT_S = 15.0  # from the connection, or from the last answer's next byte, to the end of a head
SERVICE_STOP_TIMEOUT_S = 10.0  # for the requests that run when a service stops
MAX_SERVICE_LOGINS = 10_000  # callers of a service whose log-in is cached
MAX_SERVICE_LOGINS_AT_ONCE = 16  # log-ins that the cluster checks at once for one service
SERVICE_LOGIN_DELAY_MS = 100  # before a refused log-in to a service is answered; grows after ten failures of an address
SERVICE_LOGIN_KEPT_S = 60.0  # so long a checked log-in is not checked again
ACLS_KEPT_S = 10.0  # so long a service decides by the bindings that it has read
ACLS_VALID_S = 60.0  # so long it decides by them if the cluster cannot be asked
ACLS_RETRY_S = 1.0  # between two tries to ask it
ACLS_TIMEOUT_S = 5.0  # of one try
SCHEMAS_STALE_S = 5.0  # after so long without an answer about its topic a schema registry is not ready
SERVICE_SILENT_S = 2.0  # a service that waits for the cluster longer tells so
SERVICE_CLUSTER_RETRY_S = 0.5  # between two tries to reach it at the start
MAX_SERVICE_QUERY_FIELDS = 1_000  # parameters in the query of a request
SERVICE_ANSWER_BUFFER_BYTES = 64 * 1024  # of an answer wait for its reader; the rest is written when these are gone
SERVICE_ANSWER_TIMEOUT_S = 15.0  # for a client to read what waits for it
MAX_JSON_SCHEMA_CHARACTERS = 4 * 1024 * 1024  # of a JSON Schema together with those that it references; parsing takes 0.7 s
MAX_JSON_SCHEMA_DEPTH = 128  # nested objects and arrays of a JSON Schema
MAX_JSON_SCHEMA_STEPS = 300_000  # comparisons and reported differences of two JSON Schemas; 6 s at most where measured
MAX_JSON_SCHEMA_DIFFERENCES = 500  # differences of two JSON Schemas that are kept; further ones are dropped
MAX_JSON_SCHEMA_PATH = 64  # steps of the path to a difference; deeper steps are left out of the message
MAX_JSON_SCHEMA_PATH_CHARACTERS = 1_000  # of the path to a difference in a message
MAX_CACHED_SCHEMAS = 10_000  # schemas that a client of a registry keeps
MAX_VALUE_DEPTH = 100  # objects and arrays inside of each other in a value with a schema, as in Protobuf's own libraries
MAX_REFERENCE_DEPTH = 100  # references inside of each other that a client of a registry follows
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
