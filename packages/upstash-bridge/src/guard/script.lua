-- The bridge puts this before each script, on the first line of its code, so that line numbers do not change. It counts
-- the inner commands, which Upstash bills. With the flag allow-key-locking it also refuses undeclared keys, as Upstash
-- does. Redis does not allow scripts to write globals, so a local `redis` shadows the real one. The script becomes the
-- body of `__main`; guard.ts adds the end of this function and a call of it. This code runs at each call of the script
-- (about 1.5 µs), so it creates few objects and compares with constants. It returns { number of inner commands, result }.
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
