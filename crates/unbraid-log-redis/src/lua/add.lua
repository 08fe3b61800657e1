-- KEYS: a stream. ARGV: its greatest length, milliseconds until it expires, names and values.
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
