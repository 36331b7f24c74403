"""The attributes of BrokerConfig, one for each key. Written by tools/generate_config.py; do not edit."""

from __future__ import annotations


class BrokerAttributes:
    """Annotations only; BrokerConfig fills them."""

    broker_heartbeat_interval_ms: int
    broker_id: int
    broker_rack: str | None
    broker_session_timeout_ms: int
    config_providers: tuple[str, ...]
    controller_listener_names: tuple[str, ...]
    controller_quorum_append_linger_ms: int
    controller_quorum_auto_join_enable: bool
    controller_quorum_bootstrap_servers: tuple[str, ...]
    controller_quorum_election_backoff_max_ms: int
    controller_quorum_election_timeout_ms: int
    controller_quorum_fetch_max_bytes: int
    controller_quorum_fetch_snapshot_max_bytes: int
    controller_quorum_fetch_timeout_ms: int
    controller_quorum_request_timeout_ms: int
    controller_quorum_retry_backoff_ms: int
    controller_quorum_voters: tuple[str, ...]
    controller_socket_timeout_ms: int
    initial_broker_registration_timeout_ms: int
    metadata_log_dir: str | None
    metadata_log_max_record_bytes_between_snapshots: int
    metadata_log_max_snapshot_interval_ms: int
    metadata_log_segment_bytes: int
    metadata_log_segment_ms: int
    metadata_max_idle_interval_ms: int
    metadata_max_retention_bytes: int
    metadata_max_retention_ms: int
    node_id: int
    process_roles: tuple[str, ...]
    zookeeper_clientCnxnSocket: str | None
    zookeeper_connect: str | None
    zookeeper_connection_timeout_ms: int | None
    zookeeper_digest: str | None
    zookeeper_sasl_jaas_config: str | None
    zookeeper_session_timeout_ms: int | None
    zookeeper_set_acl: bool | None
    zookeeper_ssl_cipher_suites: tuple[str, ...]
    zookeeper_ssl_client_enable: bool
    zookeeper_ssl_enabled_protocols: tuple[str, ...]
    zookeeper_ssl_endpoint_identification_algorithm: str
    zookeeper_ssl_keystore_location: str | None
    zookeeper_ssl_keystore_password: str | None
    zookeeper_ssl_keystore_type: str | None
    zookeeper_ssl_protocol: str | None
    zookeeper_ssl_truststore_location: str | None
    zookeeper_ssl_truststore_password: str | None
    zookeeper_ssl_truststore_type: str | None
    advertised_listeners: tuple[str, ...]
    api_versions_oldest: str
    background_threads: int
    connection_failed_authentication_delay_ms: int
    connections_max_idle_ms: int
    early_start_listeners: tuple[str, ...] | None
    fetch_max_bytes: int
    fetch_purgatory_purge_interval_requests: int
    listener_security_protocol_map: str
    listeners: tuple[str, ...]
    max_connection_creation_rate: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: str
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    num_io_threads: int
    min_incremental_fetch_session_eviction_ms: int
    num_network_threads: int
    queued_max_request_bytes: int
    queued_max_requests: int
    request_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    socket_connection_setup_timeout_ms: int
    socket_listen_backlog_size: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_send_buffer_bytes: int
    telemetry_max_bytes: int
    alter_config_policy_class_name: str | None
    auto_create_topics_enable: bool
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    cordoned_log_dirs: tuple[str, ...]
    create_topic_policy_class_name: str | None
    default_replication_factor: int
    delete_topic_enable: bool
    log_cleaner_backoff_ms: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_delete_retention_ms: int
    log_cleaner_enable: bool
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_io_buffer_size: int
    log_cleaner_io_max_bytes_per_second: float
    log_cleaner_max_compaction_lag_ms: int
    log_cleaner_min_cleanable_ratio: float
    log_cleaner_min_compaction_lag_ms: int
    log_cleaner_threads: int
    log_cleanup_policy: tuple[str, ...]
    log_dir: tuple[str, ...]
    log_dir_failure_timeout_ms: int
    log_dirs: tuple[str, ...]
    log_flush_interval_messages: int
    log_flush_interval_ms: int | None
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_index_interval_bytes: int
    log_index_size_max_bytes: int
    log_initial_task_delay_ms: int
    log_message_timestamp_after_max_ms: int
    log_message_timestamp_before_max_ms: int
    log_message_timestamp_type: str
    log_preallocate: bool
    log_retention_bytes: int
    log_retention_check_interval_ms: int
    log_retention_hours: int
    log_retention_minutes: int | None
    log_retention_ms: int | None
    log_roll_hours: int
    log_roll_jitter_hours: int
    log_roll_jitter_ms: int | None
    log_roll_ms: int | None
    log_segment_bytes: int
    log_segment_delete_delay_ms: int
    message_max_bytes: int
    min_insync_replicas: int
    num_partitions: int
    num_recovery_threads_per_data_dir: int
    auto_leader_rebalance_enable: bool
    controlled_shutdown_enable: bool
    delete_records_purgatory_purge_interval_requests: int
    follower_replication_throttled_rate: int
    inter_broker_listener_name: str | None
    leader_imbalance_check_interval_seconds: int
    leader_replication_throttled_rate: int
    num_replica_alter_log_dirs_threads: int | None
    num_replica_fetchers: int
    producer_purgatory_purge_interval_requests: int
    replica_alter_log_dirs_io_max_bytes_per_second: int
    replica_fetch_backoff_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_wait_max_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_lag_time_max_ms: int
    replica_selector_class: str | None
    replica_socket_receive_buffer_bytes: int
    replica_socket_timeout_ms: int
    unclean_leader_election_enable: bool
    group_coordinator_append_linger_ms: int
    group_coordinator_background_threads: int
    group_coordinator_cached_buffer_max_bytes: int
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_coordinator_threads: int
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_load_buffer_size: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_compression_codec: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    group_consumer_assignment_interval_ms: int
    group_consumer_assignors: tuple[str, ...]
    group_consumer_heartbeat_interval_ms: int
    group_consumer_max_assignment_interval_ms: int
    group_consumer_max_heartbeat_interval_ms: int
    group_consumer_max_session_timeout_ms: int
    group_consumer_max_size: int
    group_consumer_migration_policy: str
    group_consumer_min_assignment_interval_ms: int
    group_consumer_min_heartbeat_interval_ms: int
    group_consumer_min_session_timeout_ms: int
    group_consumer_session_timeout_ms: int
    group_share_assignment_interval_ms: int
    group_share_assignors: tuple[str, ...]
    group_share_delivery_count_limit: int
    group_share_heartbeat_interval_ms: int
    group_share_max_assignment_interval_ms: int
    group_share_max_delivery_count_limit: int
    group_share_max_heartbeat_interval_ms: int
    group_share_max_partition_max_record_locks: int
    group_share_max_record_lock_duration_ms: int
    group_share_max_session_timeout_ms: int
    group_share_max_share_sessions: int
    group_share_max_size: int
    group_share_min_assignment_interval_ms: int
    group_share_min_delivery_count_limit: int
    group_share_min_heartbeat_interval_ms: int
    group_share_min_partition_max_record_locks: int
    group_share_min_record_lock_duration_ms: int
    group_share_min_session_timeout_ms: int
    group_share_partition_max_record_locks: int
    group_share_record_lock_duration_ms: int
    group_share_session_timeout_ms: int
    group_streams_assignment_interval_ms: int
    group_streams_heartbeat_interval_ms: int
    group_streams_initial_rebalance_delay_ms: int
    group_streams_max_assignment_interval_ms: int
    group_streams_max_heartbeat_interval_ms: int
    group_streams_max_session_timeout_ms: int
    group_streams_max_size: int
    group_streams_max_standby_replicas: int
    group_streams_min_assignment_interval_ms: int
    group_streams_min_heartbeat_interval_ms: int
    group_streams_min_session_timeout_ms: int
    group_streams_num_standby_replicas: int
    group_streams_session_timeout_ms: int
    share_coordinator_append_linger_ms: int
    share_coordinator_cached_buffer_max_bytes: int
    share_coordinator_load_buffer_size: int
    share_coordinator_snapshot_update_records_per_snapshot: int
    share_coordinator_state_topic_compression_codec: int
    share_coordinator_state_topic_min_isr: int
    share_coordinator_state_topic_num_partitions: int
    share_coordinator_state_topic_replication_factor: int
    share_coordinator_state_topic_segment_bytes: int
    share_coordinator_threads: int
    share_coordinator_write_timeout_ms: int
    share_fetch_purgatory_purge_interval_requests: int
    add_partitions_to_txn_retry_backoff_max_ms: int
    add_partitions_to_txn_retry_backoff_ms: int
    producer_id_expiration_check_interval_ms: int
    producer_id_expiration_ms: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_max_timeout_ms: int
    transaction_partition_verification_enable: bool
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_load_buffer_size: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_segment_bytes: int
    transaction_two_phase_commit_enable: bool
    transactional_id_expiration_ms: int
    follower_fetch_last_tiered_offset_enable: bool
    log_local_retention_bytes: int
    log_local_retention_ms: int
    remote_fetch_max_wait_ms: int
    remote_list_offsets_request_timeout_ms: int
    remote_log_index_file_cache_total_size_bytes: int
    remote_log_manager_copier_thread_pool_size: int
    remote_log_manager_copy_max_bytes_per_second: int
    remote_log_manager_copy_quota_window_num: int
    remote_log_manager_copy_quota_window_size_seconds: int
    remote_log_manager_expiration_thread_pool_size: int
    remote_log_manager_fetch_max_bytes_per_second: int
    remote_log_manager_fetch_quota_window_num: int
    remote_log_manager_fetch_quota_window_size_seconds: int
    remote_log_manager_follower_thread_pool_size: int
    remote_log_manager_task_interval_ms: int
    remote_log_manager_thread_pool_size: int
    remote_log_metadata_custom_metadata_max_bytes: int
    remote_log_metadata_manager_class_name: str
    remote_log_metadata_manager_class_path: str | None
    remote_log_metadata_manager_impl_prefix: str
    remote_log_metadata_manager_listener_name: str | None
    remote_log_reader_max_pending_tasks: int
    remote_log_reader_threads: int
    remote_log_storage_manager_class_name: str | None
    remote_log_storage_manager_class_path: str | None
    remote_log_storage_manager_impl_prefix: str
    remote_log_storage_system_enable: bool
    alter_log_dirs_replication_quota_window_num: int
    alter_log_dirs_replication_quota_window_size_seconds: int
    client_quota_callback_class: str | None
    controller_quota_window_num: int
    controller_quota_window_size_seconds: int
    kafka_metrics_polling_interval_secs: int
    kafka_metrics_reporters: tuple[str, ...]
    metric_reporters: tuple[str, ...]
    metrics_num_samples: int
    metrics_recording_level: str
    metrics_sample_window_ms: int
    quota_window_num: int
    quota_window_size_seconds: int
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int
    allow_everyone_if_no_acl_found: bool
    audit_log_data_sample_rate: float
    audit_log_file: str | None
    audit_log_topic_enable: bool
    authorizer_class_name: str
    ssl_principal_groups_attribute: str | None
    super_users: str
    connections_max_reauth_ms: int
    delegation_token_expiry_check_interval_ms: int
    delegation_token_expiry_time_ms: int
    delegation_token_max_lifetime_ms: int
    delegation_token_secret_key: str | None
    principal_builder_class: str
    sasl_client_callback_handler_class: str | None
    sasl_enabled_mechanisms: tuple[str, ...]
    sasl_jaas_config: str | None
    sasl_kerberos_kinit_cmd: str
    sasl_kerberos_min_time_before_relogin: int
    sasl_kerberos_principal_to_local_rules: tuple[str, ...]
    sasl_kerberos_service_name: str | None
    sasl_kerberos_ticket_renew_jitter: float
    sasl_kerberos_ticket_renew_window_factor: float
    sasl_login_callback_handler_class: str | None
    sasl_login_class: str | None
    sasl_login_connect_timeout_ms: int | None
    sasl_login_read_timeout_ms: int | None
    sasl_login_refresh_buffer_seconds: int
    sasl_login_refresh_min_period_seconds: int
    sasl_login_refresh_window_factor: float
    sasl_login_refresh_window_jitter: float
    sasl_login_retry_backoff_max_ms: int
    sasl_login_retry_backoff_ms: int
    sasl_mechanism_controller_protocol: str
    sasl_mechanism_inter_broker_protocol: str
    sasl_server_callback_handler_class: str | None
    sasl_server_max_receive_size: int
    security_inter_broker_protocol: str
    security_providers: str | None
    sasl_oauthbearer_assertion_algorithm: str
    sasl_oauthbearer_assertion_claim_aud: str | None
    sasl_oauthbearer_assertion_claim_exp_seconds: int
    sasl_oauthbearer_assertion_claim_iss: str | None
    sasl_oauthbearer_assertion_claim_jti_include: bool
    sasl_oauthbearer_assertion_claim_nbf_seconds: int
    sasl_oauthbearer_assertion_claim_sub: str | None
    sasl_oauthbearer_assertion_file: str | None
    sasl_oauthbearer_assertion_private_key_file: str | None
    sasl_oauthbearer_assertion_private_key_passphrase: str | None
    sasl_oauthbearer_assertion_template_file: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_clock_skew_seconds: int
    sasl_oauthbearer_expected_audience: tuple[str, ...]
    sasl_oauthbearer_expected_issuer: str | None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int
    sasl_oauthbearer_jwks_endpoint_url: str | None
    sasl_oauthbearer_jwt_retriever_class: str
    sasl_oauthbearer_jwt_validator_class: str
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_scope_claim_name: str
    sasl_oauthbearer_sub_claim_name: str
    sasl_oauthbearer_token_endpoint_url: str | None
    ssl_allow_dn_changes: bool
    ssl_allow_san_changes: bool
    ssl_cipher_suites: tuple[str, ...]
    ssl_client_auth: str
    ssl_enabled_protocols: tuple[str, ...]
    ssl_endpoint_identification_algorithm: str
    ssl_engine_factory_class: str | None
    ssl_key_password: str | None
    ssl_keymanager_algorithm: str
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_type: str
    ssl_principal_mapping_rules: str
    ssl_protocol: str
    ssl_provider: str | None
    ssl_secure_random_implementation: str | None
    ssl_trustmanager_algorithm: str
    ssl_truststore_certificates: str | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_type: str
    confluent_schema_registry_url: tuple[str, ...]
    confluent_basic_auth_credentials_source: str
    confluent_basic_auth_user_info: str | None
    confluent_ssl_key_password: str | None
    confluent_ssl_keystore_location: str | None
    confluent_ssl_keystore_password: str | None
    confluent_ssl_keystore_type: str | None
    confluent_ssl_truststore_location: str | None
    confluent_ssl_truststore_password: str | None
    confluent_ssl_truststore_type: str | None
    controller_performance_always_log_threshold_ms: int
    controller_performance_sample_period_ms: int
    group_consumer_regex_refresh_interval_ms: int
    group_share_initialize_retry_interval_ms: int
    group_share_persister_class_name: str
    internal_metadata_delete_delay_millis: int
    internal_metadata_log_segment_bytes: int | None
    internal_metadata_max_batch_size_in_bytes: int
    remote_log_index_file_cache_ttl_ms: int
    remote_log_manager_task_retry_backoff_max_ms: int
    remote_log_manager_task_retry_backoff_ms: int
    remote_log_manager_task_retry_jitter: float
    server_max_startup_time_ms: int
    share_coordinator_cold_partition_snapshot_interval_ms: int
    share_coordinator_state_topic_prune_interval_ms: int
    unclean_leader_election_interval_ms: int
    unstable_api_versions_enable: bool
    unstable_feature_versions_enable: bool
