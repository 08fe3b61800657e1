-- An append that follows the entry that its writer has written last, as almost all do. It comes before the functions of the other
-- appends, which each call of a script defines anew.
-- ARGV: see append.lua; the id of the writer's last entry, or an empty string.
local previous = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if previous and previous[1] == ARGV[4] then
  redis.call('XADD', KEYS[1], ARGV[1], 'r', ARGV[3])
  return {'new', redis.call('EXISTS', KEYS[2], KEYS[3])}
end

