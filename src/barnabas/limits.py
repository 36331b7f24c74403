"""Every bound on what a peer can make grow, in one place.

Those that a user may set are configuration keys (`config/definitions/`); these are the ones nobody needs to set.
"""

MAX_ARRAY_LENGTH = 1_000_000  # elements of one array in a message
MAX_REQUEST_ELEMENTS = 1_000_000  # of all arrays of a request together: arrays within arrays make up to fifty of each byte
MAX_TAGGED_FIELDS = 10_000  # tagged fields behind one struct of a request
MAX_BUFFERS_PER_WRITE = 64  # buffers handed to one writev; the kernel takes 1,024
LARGE_FRAME_BYTES = 1024 * 1024 + 64 * 1024  # a buffer that takes a request with a batch of max.message.bytes, by default
RECEIVE_BUFFER_BYTES = LARGE_FRAME_BYTES  # the one buffer into which all connections of a loop receive
RECEIVED_SMALL_BYTES = 256 * 1024  # so much of it is for who sends small frames: thousands of them are enough for one turn
SMALL_FRAME_BYTES = 512  # up to here one is small; of larger ones the whole buffer holds some two thousand
KEPT_FRAME_BUFFERS = 4  # of those, kept for the next large frames
KEPT_GROWN_BYTES = 16 * 1024 * 1024  # the largest buffer of a frame beyond that size which is kept for the next; one is
FRAME_GROWTH_BYTES = 1024 * 1024  # memory given to a frame ahead of the bytes that arrived for it
MAX_REQUESTS_IN_FLIGHT = 1_000  # requests of one connection that wait for their answers; then its socket is not read
MAX_REQUESTS_PER_TURN = 128  # of one connection, before others have their turn; a receive buffer holds thousands of small ones
MAX_KEPT_ANSWER_BYTES = 12 * 1024 * 1024  # of an answer whose memory a client keeps for the next; a follower's has 10 MB
KEPT_FREE_BYTES = 16 * 1024 * 1024  # free memory kept for the buffers of large requests instead of given back to the kernel
MAX_REPEATED_REQUESTS = 64  # produce requests that a connection knows again, whatever others do
MAX_REPEATED_REQUESTS_OF_ONE = 4_096  # where there is room for so many: each is a partition that it writes to
MAX_REPEATED_REQUESTS_OF_ALL = (
    16_384  # beyond those of each, of all connections of a broker: some 20 MB; and as many partitions, 8 MB
)
MAX_REPEATED_LAYOUTS = 4  # different lengths of what stands before their records
MAX_REPEATED_BYTES = 512  # of what stands before their records
MAX_REPEATED_FETCH_BYTES = 4096  # of a fetch request that a connection knows again: about 100 partitions
MAX_RUN_BYTES = RECEIVE_BUFFER_BYTES // 2  # of a request that is worked on together with its neighbours: two of them come at once
MAX_RUN_REQUESTS = 2_048  # worked on together, 0.3 ms if they are plain: as many of 128 bytes as `RECEIVED_SMALL_BYTES` takes
MAX_UNSENT_BYTES = 8 * 1024 * 1024  # answers a slow reader leaves in memory; then its requests are not read
MAX_PULSES = 1_000  # other brokers that are given signs of life by a thread; more are by the loop
MAX_HTTP_HEAD_BYTES = 16 * 1024  # of a request to the metrics listener
MAX_HTTP_CONNECTIONS = 64  # to the metrics listener at once
HTTP_TIMEOUT_S = 10.0  # for one request to the metrics listener
MAX_PARTITIONS_PER_REQUEST = 10_000  # new partitions in one request; Kafka's own bound
MAX_OLD_CLIENTS = 200  # that send versions of requests which Kafka 4 dropped and are told apart; each has a few metrics
MAX_OLD_CLIENT_NAME = 100  # characters of what such a client calls itself
MAX_QUOTA_METERS = 10_000  # clients whose use of a quota is measured; newcomers beyond share one
MAX_QUOTA_BUDGETS = 10_000  # clients whose quotas need not be looked up again
MAX_QUOTA_SERIES = 500  # clients with quotas that the metrics page shows, those who used them last first
QUOTA_METER_IDLE_MS = 3_600_000  # after which a client's use of a quota is forgotten; Kafka has the same
MAX_QUOTA_GROUPS = 1_000  # groups held to a quota of their own
MAX_RATED_ADDRESSES = 10_000  # whose rate of new connections is measured
MAX_WAITING_CONNECTIONS = 1_000  # of a listener, that wait for its rate of new ones; more are closed
MAX_DECOMPRESSED_BATCH_BYTES = 128 * 1024 * 1024  # what a compressed batch may unfold to; a larger one is refused before it does
MAX_BATCH_RECORDS = 1_000_000  # of a compressed batch; the most that librdkafka lets one have
MAX_RECORDS_ONE_BY_ONE = 100_000  # of a batch whose faults are to be worded; that takes the loop some 10 us a record
MAX_CONVERTED_BYTES = 4 * 1024 * 1024  # of batches, for one answer to a Fetch below version 4; some 0.2 s of a thread
MAX_CONVERTED_AT_ONCE = 16 * 1024  # of records of the old formats, by the loop: 1 ms; a thread converts what is more
MAX_OPEN_SEGMENTS = 20_000  # files of segments; fewer where the system grants few descriptors (`server/descriptors.py`)
MAX_WINDOWED_INDEXES = 1_000  # of segments, that keep up to 16 kB of their entries in memory for readers in order
MAX_PREFERRED_LOG_DIRS = 10_000  # partitions that do not exist yet and have a log directory chosen (AlterReplicaLogDirs)
MAX_MOVES_OF_LOGS = 100_000  # between log directories, waiting or under way
MAX_DECISIONS_PER_SESSION = 2_000  # of the authorizer, remembered for one principal on one host
MAX_REMEMBERED_NAME = 300  # characters of a name in such a decision; longer ones are decided each time
MAX_STRING_BYTES = 32_767  # of a string in a message, as in those whose lengths have two bytes
HELD_REGION_BYTES = 32 * 1024  # what a piece of a file counts that waits for its turn: it may need a descriptor
MAX_DECIDED_SESSIONS = 10_000  # principals on hosts for which decisions are remembered
MAX_SUBSCRIPTION_CHARACTERS = 500_000  # of the names that a consumer group's member subscribes to, in a record of 1 MB at most
MAX_GROUP_EXPRESSIONS = 200  # different ones in a consumer group; each is matched with all names of topics, 1.5 us a name
MAX_ACLS = 100_000  # access control lists of a cluster, those of roles included
MAX_ACLS_PER_REQUEST = 10_000  # made by one request; Kafka's own bound
MAX_PENALIZED_HOSTS = 10_000  # addresses whose failed log-ins are counted, and users who are known at an address
MAX_WAITING_LOGINS = 10  # of an address that failed too often; so many guesses it has in ten seconds
MAX_LOGIN_FRAMES = 20  # frames of one log-in; the longest exchange of a mechanism takes five
LOGIN_TIMEOUT_S = 30.0  # from a connection to the end of its log-in
MAX_BEARER_BYTES = 64 * 1024  # of a message with a bearer token
MAX_JWKS_BYTES = 1024 * 1024  # of an identity provider's keys
MAX_JWKS_KEYS = 100  # of them
TLS_GATHERED_BYTES = 256 * 1024  # plain text encrypted at once, and what a TLS connection holds of it while its socket is full
TLS_HANDSHAKE_TIMEOUT_S = 15.0  # from the connection to the end of the handshake
MAX_TLS_HANDSHAKE_BYTES = 256 * 1024  # of a peer; certificates with all that lead to an authority are a few kB
MAX_TOPICS_IN_THE_MAKING = 10_000  # because metadata were asked of them; as many as one request may make
MAX_DELEGATION_TOKENS = 10_000  # at once; each is looked through when one is renewed
MAX_AUDIT_ENTRIES = 20_000  # of the audit log that wait to be written; what comes beyond is dropped and counted
MAX_AUDIT_BATCH = 500  # entries written at once
MAX_AUDIT_TEXT = 256  # characters of a name in the audit log
