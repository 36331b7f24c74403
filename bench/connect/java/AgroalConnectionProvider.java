package org.hibernate.agroal.internal;

/** Debezium's sink names this class, and does not use it: its connections come from another pool. */
public final class AgroalConnectionProvider {
}
