-- Returns the milliseconds until the meta data expire, and the last id.
local id = last_entry()
return {redis.call('PTTL', KEYS[2]), id}
