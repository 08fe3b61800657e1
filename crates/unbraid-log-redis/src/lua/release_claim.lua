-- KEYS: a claim and its lease. ARGV: the id that holds it.
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 34) == ARGV[1] then
  redis.call('DEL', KEYS[1], KEYS[2])
end
