-- Override: an operator sets the limit of one key for a time. It belongs to one limit, whose row follows its own row.
--
-- State   <tag>-limit   time it was set; the life ends with it      limit
-- Pro     takes effect at the next call of every isolate, and costs nothing in a call without one of these rows
-- Con     a log or slots need their record, too

local in_force
if special then
  local ROW = ' ([^;]+)(;[^:]+:)override,([^,]+),([^,]+),[^ ]+( [^,]+,)([^,]+)(,[^,]+,)([^,]*)'

  -- Returns a request without these rows, with the limits in force instead of the sent ones, and the reply to the rows.
  function in_force(request, records, now)
    local reported = ''
    request = string.gsub(request, ROW, function(key, tag, share, scales, head, limit, window, option)
      local time, run_out, units = state_of(records[key + 0], tag, now)
      if not time then
        reported = reported .. '=;'
        return head .. limit .. window .. option
      end
      reported = reported .. format('=%d:%d;', units, run_out - now)
      -- 15 digits as in the Worker, since 0.55 * 100 is 55.00000000000001.
      local kept = units * share
      local rest = format('%d', units - math.ceil(kept < 1e14 and format('%.15g', kept) or kept))
      if not string.find(head, ':bucket,', 1, true) then
        return head .. rest .. window .. option
      end
      return head .. format('%d', units) .. window .. (scales == '1' and rest or option)
    end)
    return request, reported
  end
end
