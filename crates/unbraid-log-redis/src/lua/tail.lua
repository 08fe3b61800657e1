-- Returns whether the meta data exist, and the last id.
local id = last_entry()
return {redis.call('EXISTS', KEYS[2]), id}
