-- ARGV: as for `create`. Writes again what the engine has lost.
local id, fields = last_entry()
if not id then
  if redis.call('EXISTS', KEYS[2]) == 1 then
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
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
if redis.call('PEXPIRE', KEYS[2], ARGV[5]) == 0 then
  redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[5])
end
return 'renewed'
