-- Operators: these modes take effect before their request is decided like a peek.

local operate
if special then
  operates = { reset = true, ban = true, unban = true, override = true, restore = true }

  -- Applies an operator's mode to each limit of a request. Marks the changed records in `changed`.
  function operate(mode, request, records, changed, now)
    local sizes = mode == 'override' or mode == 'restore'
    for key, tag, algorithm, _, _, option, cost in string.gmatch(request, LIMIT) do
      key = key + 0
      local record = records[key]
      if sizes or algorithm == 'override' then
        -- Only these modes change an override, and they change nothing else.
        if algorithm == 'override' and mode == 'override' then
          record, changed[key] = with_state(record, tag, format('%d:%d:%d', now, option, cost)), true
        elseif algorithm == 'override' and sizes then
          record = without_state(record, tag)
        end
      elseif algorithm == 'line' then
        record = without_state(record, tag)
      elseif algorithm == 'penalty' then
        local ban_tag = sub(tag, 1, -2) .. '-ban:'
        record = without_state(record, tag)
        if mode == 'ban' then
          record, changed[key] = with_state(record, ban_tag, format('%d:%d:%d', now, 2 * option, option)), true
        else
          record = without_state(record, ban_tag)
        end
      elseif mode == 'reset' and record then
        record = without_state(record, tag)
      elseif mode == 'reset' then
        call('DEL', KEYS[key]) -- a log or slots
      end
      if record ~= records[key] then
        records[key], changed[key] = record, true
      end
    end
  end
end
