"""The records of transactions, as they are laid out for writing and as the codec reads and writes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.transactions.transaction import State, Transaction
from barnabas.coordination.transactions.transaction_log_records import TransactionLogValue, read_record, transaction_record
from barnabas.coordination.version_prefix import NUMBER_BYTES
from barnabas.protocol.codec import decode, encode

IDS = st.integers(-1, 2**63 - 1)
EPOCHS = st.integers(-1, 2**15 - 1)
PARTITIONS = st.frozensets(st.tuples(st.sampled_from(["a", "b" * 200, "ü"]), st.integers(0, 2**31 - 1)), max_size=300)


@given(
    st.builds(
        Transaction,
        transactional_id=st.text(st.characters(codec="utf-8"), min_size=1),
        producer_id=IDS,
        producer_epoch=EPOCHS,
        previous_producer_id=IDS,
        next_producer_id=IDS,
        next_producer_epoch=EPOCHS,
        timeout_ms=st.integers(0, 2**31 - 1),
        state=st.sampled_from([state for state in State if state is not State.EMPTY]),
        partitions=PARTITIONS,
        start_ms=IDS,
        last_update_ms=IDS,
        client_version=st.integers(0, 2),
    )
)
def test_a_transaction_is_read_as_it_was_written_and_the_codec_writes_the_same(transaction: Transaction) -> None:
    key, value = transaction_record(transaction)
    assert read_record((key, value)) == (transaction.transactional_id, transaction)
    assert value is not None
    assert value[:NUMBER_BYTES] == b"\0\1"
    assert encode(decode(TransactionLogValue, 1, value, NUMBER_BYTES), 1) == value[NUMBER_BYTES:]
