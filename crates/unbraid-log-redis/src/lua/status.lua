-- Returns the meta data and the milliseconds until they expire, if the log does not exist; otherwise the meta data, the milliseconds
-- until the log expires, the lease, the first entry's fields, the last id and its fields.
local meta = redis.call('GET', KEYS[2])
local id, fields = last_entry()
if not id then
  return {meta, redis.call('PTTL', KEYS[2])}
end
-- Not the record: it may be large.
if fields[1] == 'r' then
  fields = {'r'}
end
local first = redis.call('XRANGE', KEYS[1], HEADER, HEADER)[1]
return {meta, redis.call('PTTL', KEYS[1]), redis.call('EXISTS', KEYS[3]), first and first[2] or {}, id, fields}
