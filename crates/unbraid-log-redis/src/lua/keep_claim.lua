-- KEYS: a claim and its lease. ARGV: its value, the id that holds it, milliseconds. Sets the claim, unless another id holds it.
local held = redis.call('GET', KEYS[1])
if not held or string.sub(held, 34) == ARGV[2] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
  redis.call('DEL', KEYS[2])
end
