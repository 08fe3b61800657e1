-- KEYS: a claim and its lease. ARGV: its value, the id, milliseconds of the claim and of the lease, the value of a claim that is void,
-- the latest time.
-- Returns the value of another id's claim, and whether it is alive.
local held = redis.call('GET', KEYS[1])
local is_own = held and string.sub(held, 34) == ARGV[2]
-- A claim whose stream is open has no lease, and needs none.
local is_pending = held and string.byte(held) == 2
if held and not is_own then
  -- A server evicts a lease as readily as any key. But each renewal extends the time of the claim, too.
  -- More than that was set by a gateway with another configuration.
  local ttl = redis.call('PTTL', KEYS[1])
  local was_renewed = ttl >= ARGV[3] - ARGV[4] and ttl <= tonumber(ARGV[3])
  if not is_pending or redis.call('EXISTS', KEYS[2]) == 1 or was_renewed or is_doubtful(ARGV[4], ARGV[6]) then
    return {held, 1}
  end
  if ARGV[5] ~= held then
    return {held, 0}
  end
end
if is_own and not is_pending then
  return false
end
-- It may have been another one's.
if not held and is_moved(ARGV[6]) then
  return redis.error_reply('CLOCK the clock has been moved')
end
if is_own then
  -- First, so that a server whose memory is full permits what follows: it is a renewal.
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[4])
return false
