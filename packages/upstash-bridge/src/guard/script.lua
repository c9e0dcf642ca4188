-- Goes before a script that runs through the bridge, all on the first line of its code, so that line numbers
-- stay what they are. It counts the inner commands, which Upstash bills, and, where the script says
-- allow-key-locking, refuses keys that the call did not declare, as Upstash does. Redis lets nobody write a
-- global, hence a local `redis` that stands before the real one; the script becomes the body of `__main`, which
-- guard.ts closes and runs behind it. All of this runs again at every call of the script (about 1.5 µs), so it
-- makes few objects and decides by constants. Reply: { number of inner commands, what the script returned }.
local redis, __sluice = (function(api, keys)
  local count, checked, call = 0, $$checked$$, api.call
  local k1, k2, k3, k4, declared
  $$common$$
  $$declare$$

  local proxy = { call = counted, pcall = protected }
  return $$proxy$$, function(main)
    local fine, result = xpcall(main, locate)
    if fine then return { count, result } end
    error(result, 0)
  end
end)(redis, KEYS)
local function __main(...)
