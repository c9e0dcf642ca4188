-- Penalty: `after` refusals within `within` ms ban a client for `ban` ms. Each further ban is twice as long as
-- the previous one, up to `most` ms. A penalty belongs to one limit and writes only when that limit refuses.
--
-- State   <tag>      start and end of counting      count   refusals
--         <tag>-ban  start of the last ban, kept for twice its length      length  ms
-- Pro     stops a client that keeps retrying for longer than the limit alone; costs nothing for other clients
-- Con     clients behind one address are banned together

local penalty, judge
if special then
  -- Decides the penalty of a limit, and counts the refusal if the limit has refused. Returns the rest of the ban in ms
  -- (0 without a ban), and the record, which only a refusal changes.
  function penalty(record, row, refused, now)
    local ban_tag = sub(row.tag, 1, -2) .. '-ban:'
    local began, _, last = state_of(record, ban_tag, now)
    -- A lowered maximum also shortens a running ban. A clock that moves back makes it longer.
    local length = began and math.min(last, row.most) or 0
    local rest = began and math.max(0, began + length - now) or 0
    if rest > 0 or not refused then
      return rest, record -- a refusal during a ban does not count
    end

    local since, run_out, counted = state_of(record, row.tag, now)
    local count = (counted or 0) + 1
    if count < row.after then
      local start, life = since or now, since and run_out - since or row.within
      return 0, with_state(record, row.tag, format('%d:%d:%d', start, life, count))
    end
    local again = began and now < began + 2 * length
    length = math.min(row.most, again and math.max(row.ban, 2 * length) or row.ban)
    record = without_state(record, row.tag)
    return length, with_state(record, ban_tag, format('%d:%d:%d', now, 2 * length, length))
  end

  -- Counts the refusal of a request for each limit that has refused, if the request charges. Returns the reply to the
  -- penalties of the request. A refusal writes nothing else.
  function judge(rows, charges, records, changed, now)
    local reported = ''
    for _, row in ipairs(rows) do
      if row.refused and charges then
        local record
        row.rest, record = penalty(records[row.key], row, true, now)
        if record ~= records[row.key] then
          records[row.key], changed[row.key] = record, true
        end
      end
      reported = reported .. format('!%d;', row.rest)
    end
    return reported
  end
end
