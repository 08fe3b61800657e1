-- Returns whether the log is over, if it does not exist, and the last id.
local id = last_entry()
return {not id and is_over() and 1 or 0, id}
