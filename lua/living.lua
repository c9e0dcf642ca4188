-- Returns the record without states that have run out at `now`, and its longest run-out, or 0 without a state.
local function living(record, now)
  local kept, longest = { '1;' }, 0
  for state, time, life in string.gmatch(record, '([^;:]+:([^:]+):([^:]+):[^;]+;)') do
    local run_out = time + life
    if run_out > now then
      kept[#kept + 1] = state
      longest = math.max(longest, run_out)
    end
  end
  return table.concat(kept), longest
end
