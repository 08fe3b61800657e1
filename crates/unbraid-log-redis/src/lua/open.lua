-- ARGV: as for `create`. Returns whether the stream was created, by this call or by an earlier attempt of it.
local id, fields = last_entry()
if id then
  if id == HEADER and fields[6] == ARGV[6] then
    return 1
  end
  return 0
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 0
end
create()
return 1
