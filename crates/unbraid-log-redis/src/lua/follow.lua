-- An append that follows the entry that its writer has written last, as almost all do. It comes before the functions of the other
-- appends, which each call of a script defines anew.
-- ARGV: see append.lua; how many entries the log has up to the writer's last one, or an empty string. Each append adds one, and
-- nothing removes one, so a log with as many entries ends with that one. Reading the last entry would take as long as adding one.
local length = redis.call('XLEN', KEYS[1])
if length == tonumber(ARGV[4]) then
  -- Refused if the log was lost and written again in fewer records, and has later events than the writer's last one.
  local added = redis.pcall('XADD', KEYS[1], ARGV[1], 'r', ARGV[3])
  if type(added) == 'string' then
    return {'new', redis.call('EXISTS', KEYS[2], KEYS[3]), length + 1}
  end
end

