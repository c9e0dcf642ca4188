-- Token bucket: starts full. Each unit takes one token, and tokens flow back continuously.
-- A burst of 1 spaces requests evenly. This is GCRA, the leaky bucket as a meter (ITU-T I.371).
-- All numbers are integers: a token is `window` parts, and `limit` parts flow back every ms.
--
-- State   at  ms, time of the number      missing  parts missing from a full bucket
-- Pro     bursts up to `burst`, then a steady rate; an absent key is a full bucket
-- Con     burst + limit units may pass within one window
local function token_bucket(now, limit, window, burst, cost, _, _, decided_at, at, missing)
  local capacity = burst * window
  -- A clock that moves back neither drains nor fills the bucket.
  local moment = at and math.max(now, at) or now
  local late = moment - now -- waits count from `now`, which may be before `moment`
  missing = at and math.max(0, missing - (moment - at) * limit) or 0

  local function wait(parts) -- ms until at most `parts` are missing
    return missing > parts and late + math.ceil((missing - parts) / limit) or 0
  end
  local allowed, retry_after = true, 0
  if cost > burst then
    allowed, retry_after = false, -1
  elseif cost > 0 then
    retry_after = wait(capacity - cost * window)
    allowed = retry_after == 0
  end

  local before = missing
  if allowed then
    local parts = cost * window
    if decided_at then
      -- Without the refunded units the bucket may have been full since `decided_at`, and nothing would have flowed
      -- back. So the refund leaves out the parts that have flowed back since then.
      parts = math.min(0, parts + math.max(0, moment - decided_at) * limit)
    end
    -- More than `capacity` may be missing if the burst was lowered or a larger plan has charged the bucket.
    -- The result is not capped at `capacity`, because a refund must return at most its own units.
    missing = math.max(0, missing + parts)
  end
  local remaining = math.max(0, math.floor((capacity - missing) / window))
  local reset_after = wait(0)
  local next_after = remaining < burst and wait(capacity - (remaining + 1) * window) or 0
  if missing == before then
    return allowed, remaining, retry_after, reset_after, next_after
  end
  return allowed, remaining, retry_after, reset_after, next_after, moment, missing
end
