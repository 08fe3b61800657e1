-- KEYS: a key that nothing else uses. Calls each command that a log needs and a script may call, and returns the first that the
-- user may not call. Other errors, such as that of a full memory, do not count.
local key = KEYS[1]
local commands = {
  {'XADD', key, 'MAXLEN', '~', '1', '1-1', 'v', '1'},
  {'PEXPIRE', key, '1000'},
  {'PTTL', key},
  {'EXISTS', key},
  {'XLEN', key},
  {'XRANGE', key, '-', '+'},
  {'XREVRANGE', key, '+', '-'},
  {'XREAD', 'STREAMS', key, '0'},
  {'XDEL', key, '1-1'},
  {'UNLINK', key},
  {'SET', key, '1', 'PX', '1000'},
  {'GET', key},
  {'DEL', key},
}
-- How servers of several versions refuse a command in a script.
local refusals = {'NOPERM', 'ACL failure', 'The user executing the script'}
for _, command in ipairs(commands) do
  local answer = redis.pcall(unpack(command))
  local message = type(answer) == 'table' and answer.err or ''
  for _, refusal in ipairs(refusals) do
    if string.find(message, refusal, 1, true) then
      return command[1]
    end
  end
end
return false
