-- Sliding window: counts the current and the previous window, and weights the previous count by the part of its window
-- that lies within the last `window` ms. A cost fits if previous * left + (current + cost) * window <= limit * window,
-- where `left` is the rest of the current window in ms. All numbers are integers.
--
-- State   start  ms, a multiple of window      current, previous  units taken in the two windows
-- Pro     smooth, constant memory
-- Con     the weight is an estimate: in the worst case 2 * limit - 1 units pass within one window's length

-- Returns the ms until `units` fit if no other request is charged, or -1 if they never fit.
local function sliding_window_wait(units, limit, window, left, current, previous)
  if units > limit then
    return -1
  elseif previous * left + (current + units) * window <= limit * window then
    return 0
  elseif current + units <= limit then
    return left - math.floor((limit - current - units) * window / previous)
  end
  -- They fit in the next window at the earliest, when `current` has become `previous`.
  return left + window - math.floor((limit - units) * window / current)
end

local function sliding_window(now, limit, window, _, cost, _, _, decided_at, start, current, previous)
  local at = start and math.max(now, start) or now
  local opened = at - at % window
  if not start or opened - start > window then
    current, previous = 0, 0
  elseif opened > start then
    current, previous = 0, current
  end

  local left = opened + window - at
  local late = at - now -- waits count from `now`, which may be before `at`
  local wait = cost > 0 and sliding_window_wait(cost, limit, window, left, current, previous) or 0
  local allowed = wait == 0

  local counted = current
  if allowed and (not decided_at or decided_at >= opened) then
    counted = math.max(0, current + cost)
  end
  local remaining = math.max(0, limit - counted - math.ceil(previous * left / window))
  local reset_after = 0
  if counted > 0 then
    reset_after = late + left + window
  elseif previous > 0 then
    reset_after = late + left
  end
  local next_after = 0
  if remaining < limit then
    next_after = late + sliding_window_wait(remaining + 1, limit, window, left, counted, previous)
  end
  local retry_after = wait > 0 and late + wait or wait
  if counted == current then
    return allowed, remaining, retry_after, reset_after, next_after
  end
  return allowed, remaining, retry_after, reset_after, next_after, opened, counted, previous
end
