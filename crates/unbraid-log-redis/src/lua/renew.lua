-- ARGV: as for `create`, and for `is_over`. Writes again what the engine has lost.
local id, fields = last_entry()
if not id then
  if is_over(ARGV[7], ARGV[5]) then
    return 'expired'
  end
  create()
  return 'renewed'
end
if id == SEAL then
  return fields[1] == 's' and 'sealed' or 'expired'
end
if not tail_of(id) then
  return 'foreign'
end
-- First: a server whose memory is full refuses a script that begins with `SET`, but permits it after a write of this kind. The
-- producer of a log that is full still lives.
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2])
if redis.call('PEXPIRE', KEYS[2], ARGV[5]) == 0 then
  redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[5])
end
return 'renewed'
