-- Whether a missing lease proves nothing, because its holder could not renew it: the server has been up for less than this many
-- milliseconds, or its clock has been moved forward since the gateway asked for the time. Then it is later than this many
-- microseconds.
local function is_doubtful(ms, latest)
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then
    return false
  end
  local uptime = string.match(info, 'uptime_in_seconds:(%d+)')
  local time = string.match(info, 'server_time_usec:(%d+)')
  local is_young = uptime and uptime * 1000 < tonumber(ms)
  return is_young or (time and tonumber(time) > tonumber(latest)) or false
end
