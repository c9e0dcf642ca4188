-- Places: when a request that does not fit now would fit. README.md, "Turns".

-- Returns the counts of the two windows of a sliding state at the start of the window of `at`.
local function shifted(at, window, start, current, previous)
  local opened = at - at % window
  if not start or opened - start > window then
    return opened, 0, 0
  elseif opened > start then
    return opened, 0, current
  end
  return opened, current, previous
end

-- Returns the first time from `now` on at which the cost of a limit fits, or nil if it never does. No state is read at a
-- time before its own.
local function earliest(row, record, now)
  local cost, limit, window = row.cost, row.limit, row.window
  if cost > row.capacity then
    return nil
  end
  if row.algorithm == 'log' then
    local _, _, retry_after, reset_after = apart.log(row.key, window, now).ask(limit, nil, nil, cost)
    -- With or without the cost, the newest entry counts for `reset_after` more.
    return now + math.max(retry_after, reset_after - window)
  end
  local time, run_out, first, second = state_of(record, row.tag, now)
  if not time then
    return now
  end
  local at = math.max(now, time)
  if cost == 0 then
    return at
  elseif row.algorithm == 'fixed' then
    return first + cost > limit and run_out or at
  elseif row.algorithm == 'bucket' then
    local over = math.max(0, first - (at - time) * limit) + (cost - row.capacity) * window
    return over > 0 and at + math.ceil(over / limit) or at
  end
  local opened, current, previous = shifted(at, window, time, first, second)
  local left = opened + window - at
  if previous * left + (current + cost) * window <= limit * window then
    return at
  elseif current + cost <= limit then
    return at + left - math.floor((limit - current - cost) * window / previous)
  end
  -- In the next window, the current count is the previous one.
  return at + left + window - math.floor((limit - cost) * window / current)
end
