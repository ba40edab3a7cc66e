package org.apache.kafka.common.record.internal;

/** Makes the package known: here is later what these releases have in its parent, and both are imported whole. */
interface NotYet {
}
