// SPDX-License-Identifier: GPL-2.0-only
package forebay;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.CompressionType;
import org.rocksdb.FlushOptions;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * YCSB's database interface on RocksDB: as much of it as the workloads A and F and the loading ask for.
 *
 * A record is one value: for each field the length and bytes of its name, the length and bytes of its contents. So
 * an update of one field reads the record and writes it again in full. The options are those that bench/workloads/transit.py
 * gives db_bench: no compression, small buffers, nothing synced. Keys are those of one table: its name is left out.
 * Properties: rocksdb.dir, the folder; rocksdb.compact, false for a load. Such a load leaves nothing in the
 * log and all compactions to the next run, so it makes the same files each time.
 *
 * For one client thread: each would open the database anew.
 */
public class RocksDb extends DB {
	private static final long BUFFER = 4 << 20;

	private Options options;
	private RocksDB db;

	@Override
	public void init() throws DBException {
		RocksDB.loadLibrary();
		options = new Options()
			.setCreateIfMissing(true)
			.setCompressionType(CompressionType.NO_COMPRESSION)
			.setWriteBufferSize(BUFFER)
			.setDisableAutoCompactions(property("rocksdb.compact", "true").equals("false"))
			.setTableFormatConfig(new BlockBasedTableConfig().setBlockCache(new LRUCache(BUFFER)));
		try {
			db = RocksDB.open(options, property("rocksdb.dir", null));
		} catch (RocksDBException e) {
			throw new DBException(e);
		}
	}

	@Override
	public void cleanup() throws DBException {
		try (FlushOptions flush = new FlushOptions()) {
			if (options.disableAutoCompactions())
				db.flush(flush);
			db.closeE();
		} catch (RocksDBException e) {
			throw new DBException(e);
		} finally {
			options.close();
		}
	}

	@Override
	public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
		try {
			byte[] record = db.get(bytes(key));
			if (record == null)
				return Status.NOT_FOUND;
			decode(record).forEach((name, contents) -> {
				if (fields == null || fields.contains(name))
					result.put(name, new ByteArrayByteIterator(contents));
			});
			return Status.OK;
		} catch (RocksDBException e) {
			return failed(e);
		}
	}

	@Override
	public Status update(String table, String key, Map<String, ByteIterator> values) {
		try {
			byte[] record = db.get(bytes(key));
			if (record == null)
				return Status.NOT_FOUND;
			Map<String, byte[]> fields = decode(record);
			values.forEach((name, contents) -> fields.put(name, contents.toArray()));
			db.put(bytes(key), encode(fields));
			return Status.OK;
		} catch (RocksDBException e) {
			return failed(e);
		}
	}

	@Override
	public Status insert(String table, String key, Map<String, ByteIterator> values) {
		Map<String, byte[]> fields = new HashMap<>();
		values.forEach((name, contents) -> fields.put(name, contents.toArray()));
		try {
			db.put(bytes(key), encode(fields));
			return Status.OK;
		} catch (RocksDBException e) {
			return failed(e);
		}
	}

	@Override
	public Status delete(String table, String key) {
		return Status.NOT_IMPLEMENTED;
	}

	@Override
	public Status scan(String table, String start, int count, Set<String> fields,
			   Vector<HashMap<String, ByteIterator>> result) {
		return Status.NOT_IMPLEMENTED;
	}

	private String property(String name, String otherwise) {
		return getProperties().getProperty(name, otherwise);
	}

	private static Status failed(RocksDBException e) {
		System.err.println("RocksDB: " + e.getMessage());
		return Status.ERROR;
	}

	private static byte[] encode(Map<String, byte[]> fields) {
		int size = 0;
		for (Map.Entry<String, byte[]> field : fields.entrySet())
			size += 2 * Integer.BYTES + bytes(field.getKey()).length + field.getValue().length;
		ByteBuffer record = ByteBuffer.allocate(size);
		fields.forEach((name, contents) -> {
			append(record, bytes(name));
			append(record, contents);
		});
		return record.array();
	}

	private static Map<String, byte[]> decode(byte[] bytes) {
		Map<String, byte[]> fields = new HashMap<>();
		for (ByteBuffer record = ByteBuffer.wrap(bytes); record.hasRemaining();) {
			String name = new String(next(record), StandardCharsets.UTF_8);
			fields.put(name, next(record));
		}
		return fields;
	}

	private static void append(ByteBuffer record, byte[] part) {
		record.putInt(part.length).put(part);
	}

	private static byte[] next(ByteBuffer record) {
		byte[] part = new byte[record.getInt()];
		record.get(part);
		return part;
	}

	private static byte[] bytes(String text) {
		return text.getBytes(StandardCharsets.UTF_8);
	}
}
