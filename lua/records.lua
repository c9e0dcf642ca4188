-- Reads and edits records. A record is a text: `1;`, then `<tag>:<time>:<life>:<number>[:<number>];` for each state.
-- An edit copies all other states byte by byte. `tag` is the tag between separators: `;<tag>:`.

-- Returns the time, the run-out and the numbers of a state, and the places of its text: the text lies between the two
-- places. Returns only the places of a state that has run out at `now`, and nothing without a state.
local function state_of(record, tag, now)
  local _, before = string.find(record, tag, 1, true)
  if before then
    local time, life, first, second, behind = string.match(record, '^([^:]+):([^:]+):([^:;]+):?([^;]*)()', before + 1)
    time = time + 0
    if time + life > now then
      return time, time + life, first + 0, second ~= '' and second + 0 or nil, before, behind
    end
    return nil, nil, nil, nil, before, behind
  end
end

local with_state, without_state
if special then
  -- Returns the record with a state, which replaces the state with the same tag or comes last.
  function with_state(record, tag, text)
    local _, stop = string.find(record, tag, 1, true)
    if stop then
      return sub(record, 1, stop) .. text .. sub(record, string.find(record, ';', stop, true), -1)
    end
    return record .. sub(tag, 2) .. text .. ';'
  end

  -- Returns the record without a state.
  function without_state(record, tag)
    local start, stop = string.find(record, tag, 1, true)
    if start then
      return sub(record, 1, start) .. sub(record, string.find(record, ';', stop, true) + 1)
    end
    return record
  end
end
