-- A number in the answer to INFO; nothing if the user has lost the permission since the start.
local function info(name)
  local text = redis.pcall('INFO', 'server')
  local value = type(text) == 'string' and string.match(text, name .. ':(%d+)')
  return value and tonumber(value)
end

-- Whether the clock has been moved forward since the gateway asked for the time, so that keys have expired too early: then it is
-- later than this many microseconds.
local function is_moved(latest)
  local time = info('server_time_usec')
  return time and time > tonumber(latest)
end

-- Whether a missing lease proves nothing, because its holder could not renew it: the clock has been moved, or the server has been
-- up for less than this many milliseconds.
local function is_doubtful(ms, latest)
  local uptime = info('uptime_in_seconds')
  return (uptime and uptime * 1000 < tonumber(ms)) or is_moved(latest)
end
