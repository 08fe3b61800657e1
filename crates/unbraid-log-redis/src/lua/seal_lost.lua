-- ARGV: the end, milliseconds of the sealed log, of its meta data, of the lease, the latest time, and how
-- many milliseconds the meta data have, at least and at most, if the lease was renewed within its time.
-- A server evicts a lease as readily as any key. But each renewal extends the time of the meta data, too.
local ttl = redis.call('PTTL', KEYS[2])
local was_renewed = ttl >= tonumber(ARGV[6]) and ttl <= tonumber(ARGV[7])
if redis.call('EXISTS', KEYS[3]) == 1 or was_renewed then
  return 'live'
end
local id = last_entry()
if not id or id == SEAL then
  return 'ended'
end
local tail = tail_of(id)
if not tail then
  return 'foreign'
end
if is_doubtful(ARGV[4], ARGV[5]) then
  return 'live'
end
finish(ARGV[1], tail, ARGV[2], ARGV[3])
return 'sealed'
