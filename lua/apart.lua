-- Limits with a key of their own: sliding logs and slots. Each row reads its key, and an admitted row writes it.

local open_first, ask_apart
if special then
  local opened = {} -- by index of the key; and their time

  -- Reads each key before any write, so that a key of another type fails before a charge.
  function open_first(requests, now)
    for _, request in ipairs(requests) do
      for key, _, algorithm, _, window in string.gmatch(request, LIMIT) do
        key = key + 0
        if apart[algorithm] and opened[key] == nil then
          -- A reset deletes the key without reading it.
          opened[key] = match(request, '^%l+') ~= 'reset' and apart[algorithm](KEYS[key], window + 0, now)
        end
      end
    end
    opened.at = now
  end

  local function text_of(_, remaining, retry_after, reset_after, next_after)
    return format('%d,%d,%d,%d', remaining, retry_after, reset_after, next_after)
  end

  -- Returns true if the cost fits, the numbers of the reply without a charge, the numbers with it, and the function
  -- that writes the charge; the last two only if the charge changes the key.
  function ask_apart(mode, key, algorithm, limit, window, option, cost, decided_at, now, room)
    if mode == 'reset' then
      return cost <= limit, text_of(nil, limit, cost <= limit and 0 or -1, 0, 0)
    end
    -- The first row of a key uses what was read at the start. Earlier requests may have changed the key for others.
    local view = now == opened.at and opened[key] or apart[algorithm](KEYS[key], window, now)
    opened[key] = false
    local uncharged = cost > 0 and text_of(view.ask(limit, window, option, 0))
    local fits, remaining, retry_after, reset_after, next_after, change =
      view.ask(limit, window, option, cost, decided_at, mode == 'debt')
    local text = text_of(nil, remaining, retry_after, reset_after, next_after)
    if not change then
      return fits, text
    end
    return fits, uncharged or text, text, function()
      view.keep(change, option, reset_after, room)
    end
  end
end
