-- ARGV: the end, milliseconds of the sealed log, of its meta data, of the lease, the latest time.
if redis.call('EXISTS', KEYS[3]) == 1 then
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
