-- What scripts and functions share: a `redis` that counts the inner commands, which Upstash bills, and, if the
-- script says allow-key-locking, refuses keys that the call did not declare.
  local error, pcall, type, format = error, pcall, type, string.format
  local count, declared = 0, nil

  local function open(keys, checked)
    count, declared = 0, nil
    if not checked then return end
    declared = {}
    for index = 1, #keys do declared[keys[index]] = true end
  end

  local function examine(key)
    if declared[key] then return end
    if type(key) == 'number' then key = format('%.17g', key) end
    if declared[key] or type(key) ~= 'string' then return end
    error({ err = "ERR Dynamic keys are not allowed in Lua scripts when 'allow-key-locking' flag is set. Key was: " .. key })
  end

  local function range(first, last, step, ...)
    local arguments = { ... }
    if last < 0 then last = #arguments + 1 + last end
    for index = first, last, step do examine(arguments[index]) end
  end

  -- Redis itself knows the keys of commands that the code does not spell out, or that are not "from here to there".
  local function ask(name, ...)
    if type(name) ~= 'string' then return end
    name = name:lower()
    if name == 'flushall' or name == 'flushdb' or name == 'swapdb' then
      error({ err = 'ERR ' .. name:upper() .. " is not allowed in Lua scripts when 'allow-key-locking' flag is set" })
    end
    local found = api.pcall('COMMAND', 'GETKEYS', name, ...)
    if not found.err then for index = 1, #found do examine(found[index]) end end
  end

  local function check(...)
    local name, key = ...
    $$known$$
    return ask(...)
  end

  local proxy = {
    call = function(...)
      count = count + 1
      if declared then check(...) end
      return api.call(...)
    end,
    -- Redis's own pcall() turns an error table into its text.
    pcall = function(...)
      count = count + 1
      if declared then
        local fine, refused = pcall(check, ...)
        if not fine then return { err = refused } end
      end
      return api.pcall(...)
    end,
  }

  -- Notes on an uncaught error, behind \1, what the bridge takes out again: the number of inner commands, and the
  -- line of the first frame above the error that is neither C nor this guard.
  local function locate(e)
    local line = ''
    for level = 3, 9 do
      local _, at = pcall(error, '', level)
      at = at:match(':(%d+):')
      if at and at ~= '$$line$$' then line = at break end
    end
    if type(e) ~= 'table' then e = { err = 'ERR ' .. tostring(e) } end
    e.err = format('%s\1%d\1%s\1', tostring(e.err or 'ERR unknown error'), count, line)
    return e
  end
