package org.apache.kafka.storage.internals.log;

/** Makes the package known: what shared classes import from here, when all of it is imported, is in kafka.log yet. */
interface NotYet {
}
