-- While the server was down, nobody could renew: a lease that expired meanwhile proves nothing. Whether the server has been up
-- for less than this many milliseconds.
local function is_young(ms)
  local info = redis.pcall('INFO', 'server')
  local uptime = type(info) == 'string' and string.match(info, 'uptime_in_seconds:(%d+)')
  return uptime and uptime * 1000 < tonumber(ms)
end

