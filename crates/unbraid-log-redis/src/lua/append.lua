-- ARGV: the entry's id, the number before its first event, the record.
-- Returns what was found, how many of the meta data and the lease exist, and how many entries the log has after a new one. If
-- the log does not exist, the milliseconds until the meta data expire.
local id, fields = last_entry()
if not id then
  return {'none', redis.call('PTTL', KEYS[2])}
end
if id ~= SEAL and tail_of(id) == ARGV[2] then
  redis.call('XADD', KEYS[1], ARGV[1], 'r', ARGV[3])
  return {'new', redis.call('EXISTS', KEYS[2], KEYS[3]), length + 1}
end
local same = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if same and same[2][2] == ARGV[3] then
  return {'same', redis.call('EXISTS', KEYS[2], KEYS[3])}
end
-- Not the record that is there: it may be large.
if fields[1] == 'r' then
  return {'other', id, {'r'}}
end
return {'other', id, fields}
