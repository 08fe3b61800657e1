-- KEYS: a claim and its lease. ARGV: its value, the id that holds it, milliseconds. Sets the claim, unless another id holds it.
local held = redis.call('GET', KEYS[1])
if not held or string.sub(held, 34) == ARGV[2] then
  -- First, so that a server whose memory is full permits the `SET`.
  redis.call('DEL', KEYS[2])
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
end
