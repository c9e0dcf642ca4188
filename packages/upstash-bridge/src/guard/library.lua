-- The bridge puts this before the code of a function library, on one line. While a library loads, Redis provides only
-- redis.register_function and redis.log, and lacks even pairs and type. The functions run with the complete `redis`.
-- A function called by the bridge, which adds one argument, returns { number of inner commands, result }. For other
-- callers it returns the result alone.
local redis = (function(real)
  local api = { pcall = function(...) return real().pcall(...) end }
  local function call(...) return real().call(...) end
  local count, checked, declared, k1, k2, k3, k4 = 0
  $$common$$

  local proxy = { call = counted, pcall = protected }
  local whole = false
  local function complete()
    whole = true
    setmetatable(proxy, { __index = function(_, name) return real()[name] end })
  end

  local function guarded(callback, locking)
    return function(given, args)
      if not whole then complete() end
      local by_bridge = args[#args] == '$$secret$$'
      if by_bridge then args[#args] = nil end
      checked, count = locking, 0
      declare(given)
      local fine, result = xpcall(function() return callback(given, args) end, locate)
      if fine and by_bridge then return { count, result } end
      if fine then return result end
      if not by_bridge then result.err = result.err:gsub('\1.*', '') end
      error(result, 0)
    end
  end

  proxy.register_function = function(name, callback, ...)
    if name == nil or callback ~= nil then
      return real().register_function(name, callback and guarded(callback, false), ...)
    end
    local flags, others, locking, index = name.flags, {}, false, 1
    while flags and flags[index] do
      if flags[index] == 'allow-key-locking' then locking = $$checked$$ else others[#others + 1] = flags[index] end
      index = index + 1
    end
    if index > 1 then flags = others end
    return real().register_function({
      function_name = name.function_name,
      callback = name.callback and guarded(name.callback, locking),
      description = name.description,
      flags = flags,
    })
  end

  proxy.log = function(...) return real().log(...) end
  proxy.LOG_DEBUG, proxy.LOG_VERBOSE = real().LOG_DEBUG, real().LOG_VERBOSE
  proxy.LOG_NOTICE, proxy.LOG_WARNING = real().LOG_NOTICE, real().LOG_WARNING
  proxy.REDIS_VERSION, proxy.REDIS_VERSION_NUM = real().REDIS_VERSION, real().REDIS_VERSION_NUM
  return proxy
end)(function() return redis end)
