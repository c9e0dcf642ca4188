-- Goes before a script that runs through the bridge, all on the first line of its code, so that line numbers
-- stay what they are. The script becomes the body of `__main`, which guard.ts closes and runs behind it. Redis lets nobody write a
-- global, hence a local `redis` that stands before the real one. All of this runs again at every call, so it
-- makes few objects. Reply: { number of inner commands, what the script returned }.
local redis, __sluice = (function(api, keys)
  $$common$$

  return setmetatable(proxy, { __index = api }), function(main)
    open(keys, $$checked$$)
    local fine, result = xpcall(main, locate)
    if fine then return { count, result } end
    error(result, 0)
  end
end)(redis, KEYS)
local function __main()
