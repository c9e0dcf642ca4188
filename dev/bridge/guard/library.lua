-- Goes before the code of a function library, on one line. `redis` is another table while the library loads
-- than while its functions run, hence the look-up at each use. Only the bridge gets { number of inner
-- commands, result }: it asks for it with one more argument. Anybody else gets the bare result.
local redis = (function(real)
  local api = setmetatable({}, { __index = function(_, name) return real()[name] end })
  $$common$$

  local function guarded(callback, checked)
    return function(keys, args)
      local told = args[#args] == '$$secret$$'
      if told then args[#args] = nil end
      open(keys, checked)
      local fine, result = xpcall(function() return callback(keys, args) end, locate)
      if fine then return told and { count, result } or result end
      if not told then result.err = result.err:gsub('\1.*', '') end
      error(result, 0)
    end
  end

  proxy.register_function = function(name, callback)
    local wanted, flags, checked = {}, {}, false
    for field, value in pairs(type(name) == 'table' and name or { function_name = name, callback = callback }) do
      wanted[field] = value
    end
    if type(wanted.flags) == 'table' then
      for _, flag in ipairs(wanted.flags) do
        if flag == 'allow-key-locking' then checked = $$checked$$ else flags[#flags + 1] = flag end
      end
      wanted.flags = flags
    end
    if type(wanted.callback) == 'function' then wanted.callback = guarded(wanted.callback, checked) end
    return real().register_function(wanted)
  end

  return setmetatable(proxy, { __index = api })
end)(function() return redis end)
