-- Token bucket: starts full. Each unit takes one token, and tokens flow back continuously.
-- A burst of 1 spaces requests evenly. This is GCRA, the leaky bucket as a meter (ITU-T I.371).
-- All numbers are integers: a token is `window` parts, and `limit` parts flow back every ms.
--
-- State   at  ms, time of the number      missing  parts missing from a full bucket
-- Pro     bursts up to `burst`, then a steady rate; an absent key is a full bucket
-- Con     burst + limit units may pass within one window
local function token_bucket(now, limit, window, burst, cost, decided_at, most, at, run_out, stored)
  -- A clock that moves back neither drains nor fills the bucket.
  local moment = at and at > now and at or now
  local missing = at and stored - (moment - at) * limit or 0
  if missing < 0 then
    missing = 0
  end
  local parts = cost * window
  if cost > 0 and missing + parts > burst * window then
    if not most then
      return false
    end
    parts = math.min(parts, most - missing)
  end
  if decided_at then
    -- Without the refunded units the bucket may have been full since `decided_at`, and nothing would have flowed
    -- back. So the refund leaves out the parts that have flowed back since then. It cannot know them, and returns
    -- nothing, if the state runs out earlier than at its own rate: then a faster plan has charged.
    if at and run_out - at < math.ceil(stored / limit) then
      return true
    end
    parts = math.min(0, parts + math.max(0, moment - decided_at) * limit)
  end
  -- More than the capacity may be missing if the burst was lowered or a larger plan has charged the bucket.
  -- The result is not capped at the capacity, because a refund must return at most its own units.
  local after = missing + parts > 0 and missing + parts or 0
  if after == missing then
    return true
  end
  local wait = after / limit
  -- `-wait % 1` is what `wait` lacks to a whole number. The operator takes less time than a call of math.ceil.
  return true, moment, after > 0 and moment + (wait + -wait % 1) or 0, after
end
