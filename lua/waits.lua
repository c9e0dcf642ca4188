-- Waits: limits of a `take` that do not fit now are charged at a place, if it is within the wait. README.md, "Turns".
-- These are the parts of decide.lua at its marks, and this file has no meaning without them.

  -- @request
  local waits, marks = match(request, '^take@(%d+)([+-]+)')
  -- The limits with a `+`; the time of each charge, or false if there is none within the wait; the reply.
  local waiting, times, given
  if waits then
    decided_at, waiting, times, given = nil, {}, {}, ''
    local places, number = {}, 0 -- by subject: all limits of one subject are charged at one time
    for key, tag, algorithm, limit, window, option, cost in string.gmatch(request, LIMIT) do
      if algorithm ~= 'penalty' then
        number = number + 1
        if sub(marks, number, number) == '+' then
          local index = key + 0
          local row = { index = index, key = KEYS[index], tag = tag, limit = limit + 0, window = window + 0, cost = cost + 0 }
          row.algorithm, row.capacity = algorithm, algorithm == 'bucket' and option + 0 or row.limit
          row.line, row.subject = sub(tag, 1, -2) .. '-turn:', match(row.key, '^.*}')
          local record = records[index]
          -- The last place that was given. A log has it in its entries.
          local last = record and state_of(record, row.line, now)
          local at, place = earliest(row, record, now), places[row.subject]
          row.own = at and math.max(at, last or now)
          places[row.subject] = at and place ~= false and math.max(place or now, row.own) or false
          waiting[#waiting + 1] = row
        end
      end
    end
    for _, row in ipairs(waiting) do
      local place = places[row.subject]
      if not place or place > now + waits then
        place = row.own -- refused by this limit or by another one
      end
      times[row.index .. row.tag] = place and place <= now + waits and place or false
      given = given .. (given == '' and '=' or ',') .. (place and format('%d', place) or '-')
    end
  end

    -- @limit
    local now, room = now, room
    local at = times and times[key .. tag]
    if at then
      now, room = at, room + at - now
    elseif at == false then
      cost = 9007199254740991 -- does not fit
    end

  -- @decided
  if waiting then
    for _, row in ipairs(waiting) do
      local at, record = times[row.index .. row.tag], records[row.index]
      if admitted and record and at > now then
        records[row.index], changed[row.index] = with_state(record, row.line, format('%d:60000:0', at)), true
      end
    end
    overrides = given .. ';' .. (overrides or '')
  end
