-- Line: requests that wait for a limit stand in its line, each with a ticket. A ticket is no charge: it only keeps the
-- units of earlier requests free for them. A row of the line comes before the row of its limit.
--
-- State   <tag>-turn   time of the change; the life ends with the last ticket
--         units and number of the tickets, their common capacity or 0, the time of the last one, and the tickets in
--         order of arrival: <id>,<time of arrival>,<units>,<capacity>,<life>|
-- Pro     first come, first served by all isolates; a caller without tickets overtakes, and no bound breaks
-- Con     one ticket for each request that waits, so the record grows with the line

local in_line, stand
if special then
  local ROW = ' ([^;]+)(;[^:]+:)line,([^,]+),([^,]+),([^,]+),([^ ]+)'
    .. '( ([^;]+)(;[^:]+:)([^,]+),)([^,]+),([^,]+),([^,]*),([^ ]+)'
  local TICKET = '^([^,]+),([^,]+),([^,]+),([^,]+),([^|]+)|()'
  local GRACE = 500 -- so long after its turn a request may ask, ms
  local MOST = 1000 -- tickets of one line

  -- Reads the line of a record, without the tickets at its front that have ended.
  local function read(record, tag, now)
    local line = { units = 0, count = 0, capacity = 0, last = 0, ends = 0, list = '' }
    local _, behind = string.find(record, tag, 1, true)
    if not behind then
      return line
    end
    local time, life, units, count, capacity, last, from =
      match(record, '^([^:]+):([^:]+):([^:]+):([^:]+):([^:]+):([^:]+):()', behind + 1)
    if time + life <= now then
      return line
    end
    line.ends = time + life
    line.units, line.count, line.capacity, line.last = units + 0, count + 0, capacity + 0, last + 0
    line.list = sub(record, from, string.find(record, ';', from, true) - 1)
    local place = 1
    while true do
      local _, since, own, _, lives, next_place = match(line.list, TICKET, place)
      if not own or since + lives > now then
        break
      end
      line.units, line.count, place = line.units - own, line.count - 1, next_place
    end
    line.list = place > 1 and sub(line.list, place) or line.list
    return line
  end

  -- Finds the place of a request: the units before it of requests that need at least as many free units, because of their
  -- `reserve` or their plan; where its ticket is or comes; and the rest of the list behind it.
  local function find_place(row, line, waited, now)
    local start = string.find('|' .. line.list, '|' .. row.id .. ',', 1, true)
    if start then
      local _, since, units, _, _, behind = match(line.list, TICKET, start)
      row.since, row.start, row.behind, row.units = since + 0, start, behind, units + 0
    else
      row.since = now - waited
      if row.since >= line.last and (line.capacity == row.capacity or line.count == 0) then
        row.ahead, row.start, row.behind = line.units, #line.list + 1, #line.list + 1
        return
      end
    end
    local place = 1
    while place ~= start do
      local _, since, units, capacity, lives, next_place = match(line.list, TICKET, place)
      if not since or not start and since + 0 > row.since then
        break
      end
      if capacity + 0 >= row.capacity and since + lives > now then
        row.ahead = row.ahead + units
      end
      place = next_place
    end
    row.start, row.behind = place, row.behind or place
  end

  -- Returns after how many ms `units` fit, if no other request is charged: first those of earlier requests, then the own.
  local function turn_of(row, record, now)
    local limit, window, capacity, cost = row.limit, row.window, row.capacity, row.cost
    local units = row.ahead + cost
    if units == 0 then
      return 0
    end
    if row.algorithm == 'log' then
      -- From the second time on that the whole quota is used up, each time takes a window.
      local times = math.ceil(units / capacity) - 1
      local _, _, retry_after = apart.log(KEYS[row.limit_key], window, now).ask(limit, nil, nil, units - times * capacity)
      return retry_after + times * window
    end
    local time, run_out, first, second = state_of(record, row.limit_tag, now)
    if row.algorithm == 'fixed' then
      local _, _, ends_at = fixed_window(now, 9007199254740991, window, row.option, 1, nil, nil, time, run_out, first)
      local over = units - math.max(0, limit - (first or 0))
      return over > 0 and ends_at - now + (math.ceil(over / limit) - 1) * window or 0
    end
    local at = time and time > now and time or now
    if row.algorithm == 'bucket' then
      local missing = time and math.max(0, first - (at - time) * limit) or 0
      local over = missing + (units - capacity) * window
      return over > 0 and at - now + math.ceil(over / limit) or 0
    end
    local opened = at - at % window
    local current, previous = 0, 0
    if time == opened then
      current, previous = first, second
    elseif time and opened - time == window then
      previous = first
    end
    local turn, left = at - now, opened + window - at
    while previous * left + (current + units) * window > limit * window do
      local most = limit - math.ceil(previous / window) -- the count at the end of this window
      if current + units <= most then
        return turn + left - math.floor((limit - current - units) * window / previous)
      end
      -- The units of earlier requests pass one by one.
      local passed = math.max(0, math.min(most - current, units - cost))
      turn, left, units, current, previous = turn + left, window, units - passed, 0, current + passed
    end
    return turn
  end

  -- Returns a request without these rows, whose limits leave the units of earlier tickets free; and its places in the lines.
  function in_line(request, records, now)
    local rows = {}
    request = string.gsub(
      request,
      ROW,
      function(key, line, left, waited, id, full, head, limit_key, tag, algorithm, limit, window, option, cost)
        local row = { key = key + 0, tag = line, id = id, left = left + 0, full = full == '1', ahead = 0 }
        row.limit_key, row.limit_tag, row.algorithm, row.option = limit_key + 0, tag, algorithm, option
        row.limit, row.window, row.cost = limit + 0, window + 0, cost + 0
        row.capacity = algorithm == 'bucket' and option + 0 or row.limit
        row.line = read(records[row.key], line, now)
        find_place(row, row.line, waited, now)
        row.full = row.full or row.line.count >= MOST
        -- Without a turn the cost never fits.
        row.turn = row.cost <= row.capacity and turn_of(row, records[row.key], now)
        rows[#rows + 1], rows[row.limit_key .. tag] = row, row
        if algorithm == 'bucket' then
          option = format('%d', option - row.ahead)
        else
          limit = format('%d', limit - row.ahead)
        end
        return head .. limit .. ',' .. window .. ',' .. option .. ',' .. cost
      end
    )
    return request, rows
  end

  -- Writes a ticket, or takes it away. Returns the record.
  local function with_ticket(record, row, ends, now)
    local line, start, behind = row.line, row.start, row.behind
    local ticket = ''
    if row.units then
      line.units, line.count = line.units - row.units, line.count - 1
    elseif not ends then
      return record
    end
    if ends then
      ticket = format('%s,%d,%d,%d,%d|', row.id, row.since, row.cost, row.capacity, ends - row.since)
      line.capacity = (line.count == 0 or line.capacity == row.capacity) and row.capacity or 0
      line.last = math.max(line.last, row.since)
      line.units, line.count = line.units + row.cost, line.count + 1
    end
    if line.count == 0 then
      return without_state(record, row.tag)
    end
    local list = sub(line.list, 1, start - 1) .. ticket .. sub(line.list, behind)
    local life = math.max(line.ends, ends or 0) - now
    local text = format('%d:%d:%d:%d:%d:%d:', now, life, line.units, line.count, line.capacity, line.last)
    return with_state(record, row.tag, text .. list)
  end

  -- Gives a refused request its tickets if only its lines refuse it and its turn is near enough; otherwise takes them away.
  -- Returns the reply to the rows, and true if the refusal is not counted.
  function stand(rows, mode, admitted, records, changed, now)
    local waits, full, reported = mode == 'take' and not admitted and not rows.ends, false, ''
    for _, row in ipairs(rows) do
      waits, full = waits and row.turn and row.turn <= row.left, full or row.full
      reported = reported .. format('=%d:%d;', row.ahead, row.turn or -1)
    end
    for _, row in ipairs(mode ~= 'peek' and rows or {}) do
      local ends = waits and not full and row.turn > 0 and now + row.turn + GRACE
      local record = with_ticket(records[row.key], row, ends, now)
      if record ~= records[row.key] then
        records[row.key], changed[row.key] = record, true
      end
    end
    return reported, waits
  end
end
