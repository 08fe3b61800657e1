-- Shared by all scripts. KEYS: the log, the meta data and the lease of one stream, which share a hash slot.
-- Numbers of events stay text: a Lua number is exact only below 2^53, and the seal's id is 2^64 - 1.
local SEAL = '18446744073709551615-18446744073709551615'
local HEADER = '0-1'

-- The last entry: its id and its fields.
local function last_entry()
  local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
  if last then
    return last[1], last[2]
  end
end

local function is_less(a, b)
  if #a ~= #b then
    return #a < #b
  end
  return a < b
end

-- The number of the last event, of an entry that is not the seal; nil for an id that no record has.
local function tail_of(id)
  if id == HEADER then
    return '0'
  end
  local first, last = string.match(id, '^(%d+)%-(%d+)$')
  if first == '0' or is_less(last, first) then
    return nil
  end
  return last
end

-- Whether a stream whose log does not exist is over: the log has expired, or was erased. Each renewal extends the time of the meta
-- data, and the end shortens it. So a log that is missing while that time is long was evicted, and its producer writes it again.
-- `least` and `most`: how many milliseconds the meta data of a stream whose producer lives have. More were set by a gateway with
-- another configuration, and show nothing.
local function is_over(least, most)
  local ttl = redis.call('PTTL', KEYS[2])
  return ttl ~= -2 and (ttl < tonumber(least) or ttl > tonumber(most))
end

-- Writes an empty stream. ARGV: gateway, milliseconds of the lease, meta data, milliseconds of the log, of the meta data, nonce.
-- What a user may not do fails at the log, before anything else is written: meta data without a log would keep the id in use.
local function create()
  redis.call('XADD', KEYS[1], HEADER, 'v', '1', 'g', ARGV[1], 'n', ARGV[6])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2])
  redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[5])
end

-- Seals the log. After the greatest possible id, Redis refuses every further entry.
local function finish(stream_end, tail, log_ms, meta_ms)
  redis.call('XADD', KEYS[1], SEAL, 's', stream_end, 't', tail)
  redis.call('PEXPIRE', KEYS[1], log_ms)
  redis.call('PEXPIRE', KEYS[2], meta_ms)
  redis.call('DEL', KEYS[3])
end

