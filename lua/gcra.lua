-- GCRA, the leaky bucket as a meter: every unit passed adds to a debt that drains continuously.
-- With burst 1 requests are spaced evenly. Exact in integers: a unit is `window` parts of debt, and
-- `limit` parts drain every ms. (ITU-T I.371, where the same is told by one arrival time.)
--
-- State   at  ms, when the debt was right      debt  parts, at most burst * window
-- Pro     smooths traffic; an absent key is an empty bucket
-- Con     burst + limit may pass within one window
local function gcra(now, limit, window, burst, cost, _, receipt, at, debt)
  local capacity = burst * window
  -- A clock that ran backwards drains nothing.
  local moment = at and math.max(now, at) or now
  local late = moment - now -- waits count from the real clock
  debt = at and math.max(0, debt - (moment - at) * limit) or 0

  local function wait(parts) -- ms until the debt is so low
    return debt > parts and late + math.ceil((debt - parts) / limit) or 0
  end
  local allowed, retry_after = true, 0
  if cost > burst then
    allowed, retry_after = false, -1
  elseif cost > 0 then
    retry_after = wait(capacity - cost * window)
    allowed = retry_after == 0
  end

  local before = debt
  if allowed then
    local parts = cost * window
    if receipt then
      -- A refund. Without its units the debt may have been 0 since the receipt: what has drained since then is not paid again.
      parts = math.min(0, parts + math.max(0, moment - receipt) * limit)
    end
    -- A debt beyond a burst that was lowered since, or is another plan's, stays: giving back pays no more of it than was taken.
    debt = math.max(0, debt + parts)
  end
  local remaining = math.max(0, math.floor((capacity - debt) / window))
  local reset_after = wait(0)
  local next_after = remaining < burst and wait(capacity - (remaining + 1) * window) or 0
  if debt == before then
    return allowed, remaining, retry_after, reset_after, next_after
  end
  return allowed, remaining, retry_after, reset_after, next_after, moment, debt
end
