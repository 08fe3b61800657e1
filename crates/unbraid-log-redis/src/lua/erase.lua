-- ARGV: milliseconds for which the id stays in use.
local id, fields = last_entry()
if id == SEAL and fields[1] == 'e' then
  return
end
-- The producer of a log that was evicted would write it again. Without meta data, nothing is known of the stream.
if not id and redis.call('EXISTS', KEYS[2]) == 0 then
  return
end
redis.call('UNLINK', KEYS[1], KEYS[3])
-- Deleting a key wakes nobody who reads it. This entry does, and it is the last one that the log can have.
redis.call('XADD', KEYS[1], SEAL, 'e', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
