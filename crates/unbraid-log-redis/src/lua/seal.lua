-- ARGV: as for `create`; the end, milliseconds of the sealed log, of its meta data, the last number that was acknowledged, and for `is_over`.
local id, fields = last_entry()
local tail = '0'
if id == SEAL then
  return {fields[1] == 's' and 'sealed' or 'expired'}
elseif id then
  tail = tail_of(id)
elseif is_over(ARGV[11], ARGV[5]) then
  return {'expired'}
end
if not tail then
  return {'foreign'}
end
-- A seal would turn a loss of the engine, which the producer can repair, into the stream's end.
if is_less(tail, ARGV[10]) then
  return {'gap', tail}
end
if not id then
  create()
-- First, so that a server whose memory is full permits the seal: it is small, and the log expires sooner with it.
elseif redis.call('PEXPIRE', KEYS[2], ARGV[9]) == 0 then
  redis.call('SET', KEYS[2], ARGV[3])
end
finish(ARGV[7], tail, ARGV[8], ARGV[9])
return {'sealed'}
