package org.apache.kafka.storage.internals.log;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;
import kafkaspec.target.Adapter.AdapterFailure;
import org.apache.kafka.common.record.*; // FileRecords has moved from here
import org.apache.kafka.common.record.internal.*; // to here

/** A file that the disk refuses to cut; all else is done. */
final class UncutChannel extends FileChannel {
    private final FileChannel file;

    UncutChannel(FileChannel file) {
        this.file = file;
    }

    /** Has records use another channel. */
    static void put(FileRecords records, FileChannel channel) {
        try {
            Field field = FileRecords.class.getDeclaredField("channel");
            field.setAccessible(true);
            field.set(records, channel);
        } catch (ReflectiveOperationException e) {
            throw new AdapterFailure("no channel", e);
        }
    }

    @Override
    public FileChannel truncate(long size) throws IOException {
        throw new IOException("the disk refuses: cut");
    }

    @Override
    public int read(ByteBuffer to) throws IOException {
        return file.read(to);
    }

    @Override
    public long read(ByteBuffer[] to, int offset, int length) throws IOException {
        return file.read(to, offset, length);
    }

    @Override
    public int read(ByteBuffer to, long position) throws IOException {
        return file.read(to, position);
    }

    @Override
    public int write(ByteBuffer from) throws IOException {
        return file.write(from);
    }

    @Override
    public long write(ByteBuffer[] from, int offset, int length) throws IOException {
        return file.write(from, offset, length);
    }

    @Override
    public int write(ByteBuffer from, long position) throws IOException {
        return file.write(from, position);
    }

    @Override
    public long position() throws IOException {
        return file.position();
    }

    @Override
    public FileChannel position(long position) throws IOException {
        file.position(position);
        return this;
    }

    @Override
    public long size() throws IOException {
        return file.size();
    }

    @Override
    public void force(boolean metaData) throws IOException {
        file.force(metaData);
    }

    @Override
    public long transferTo(long position, long count, WritableByteChannel target) throws IOException {
        return file.transferTo(position, count, target);
    }

    @Override
    public long transferFrom(ReadableByteChannel source, long position, long count) throws IOException {
        return file.transferFrom(source, position, count);
    }

    @Override
    public MappedByteBuffer map(MapMode mode, long position, long size) throws IOException {
        return file.map(mode, position, size);
    }

    @Override
    public FileLock lock(long position, long size, boolean shared) throws IOException {
        return file.lock(position, size, shared);
    }

    @Override
    public FileLock tryLock(long position, long size, boolean shared) throws IOException {
        return file.tryLock(position, size, shared);
    }

    @Override
    protected void implCloseChannel() throws IOException {
        file.close();
    }
}
