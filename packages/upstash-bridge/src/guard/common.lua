-- Shared by scripts and functions. The enclosing code defines: `api`, the real `redis`; `call`, its `call`; `k1` to
-- `k4`, the first declared keys; `declared`, the set of all declared keys if there are more than four; `checked`, true
-- if undeclared keys are refused; `count`, the number of inner commands so far.
  local function declare(keys)
    k1, k2, k3, k4, declared = keys[1], keys[2], keys[3], keys[4], nil
    if keys[5] then
      declared = {}
      for index = 1, #keys do declared[keys[index]] = true end
    end
  end

  local function check(...)
    local name = ...
    local given, first, last, step = { ... }, 2, 2, 1
    if $$one$$ then
    elseif $$none$$ then return
    $$ranges$$
    else
-- Redis finds the keys of commands whose name is not a constant in the code, or whose keys have no fixed position.
      if type(name) ~= 'string' then return end
      local upper = name:upper()
      if upper == 'FLUSHALL' or upper == 'FLUSHDB' or upper == 'SWAPDB' then
        error({ err = 'ERR ' .. upper .. " is not allowed in Lua scripts when 'allow-key-locking' flag is set" })
      end
      given, first, last = api.pcall('COMMAND', 'GETKEYS', ...), 1, -1
      if given.err then return end
    end
    if last < 0 then last = #given + 1 + last end
    for index = first, last, step do
      local key = given[index]
      if type(key) == 'number' then key = string.format('%.17g', key) end
      if type(key) == 'string' and not ($$known$$) then
        error({ err = "ERR Dynamic keys are not allowed in Lua scripts when 'allow-key-locking' flag is set. Key was: " .. key })
      end
    end
  end

  local function counted(...)
    count = count + 1
    $$fast$$
    return call(...)
  end

-- pcall() of Redis converts an error table to its text.
  local function protected(...)
    count = count + 1
    if checked then
      local fine, refused = pcall(check, ...)
      if not fine then return { err = refused } end
    end
    return api.pcall(...)
  end

  -- Annotates an uncaught error with the number of inner commands, and the line of the first frame above the error that
  -- is neither C nor this guard. Each follows a \1. The bridge removes the annotation.
  local function locate(e)
    local line = ''
    for level = 3, 7 do
      local _, at = pcall(error, '', level)
      at = at:match(':(%d+):')
      if at and at ~= '$$line$$' then line = at break end
    end
    if type(e) ~= 'table' then e = { err = 'ERR ' .. tostring(e) } end
    e.err = string.format('%s\1%d\1%s\1', tostring(e.err or 'ERR unknown error'), count, line)
    return e
  end
