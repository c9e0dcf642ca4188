export interface Mutant {
  /** The file in `lua/`. */
  file: string
  /** A description of the injected fault. */
  fault: string
  /** The text to replace, which must occur exactly once in the file. */
  search: string
  replace: string
  /** The test file in `test/script/` that must detect the fault. */
  killedBy: string
}

const of =
  (file: string) =>
  (fault: string, search: string, replace: string, killedBy: string): Mutant => ({
    file,
    fault,
    search,
    replace,
    killedBy,
  })

const fixed = of('fixed_window.lua')
const sliding = of('sliding_window.lua')
const log = of('sliding_log.lua')
const bucket = of('token_bucket.lua')
const penalty = of('penalty.lua')
const slots = of('concurrency.lua')
const args = of('arguments.lua')
const driver = of('decide.lua')

export const mutants: Mutant[] = [
  fixed('the last unit is refused', 'count + cost > limit', 'count + cost >= limit', 'quota'),
  fixed(
    'refuses only when the window is full, not when the cost exceeds the rest',
    'count + cost > limit',
    'count >= limit',
    'bounds',
  ),
  fixed(
    'computes the wait from the start of the window, not from now',
    'run_out - now',
    'run_out - math.max(now, start)',
    'backwards',
  ),
  fixed('does not align windows to the clock', 'now - now % window', 'now', 'oracle'),
  fixed(
    'a refund with a decided_at of its first millisecond returns nothing',
    'decided_at >= start',
    'decided_at > start',
    'refund',
  ),
  fixed(
    'the next period begins a millisecond late',
    'now < period[2]',
    'now <= period[2]',
    'calendar',
  ),
  fixed(
    'the next period gets the length of the current one',
    'period[3] - period[2]',
    'period[2] - period[1]',
    'calendar',
  ),
  fixed(
    'a period gets the length of the window',
    'run_out = period[1], period[2]',
    'run_out = period[1], period[1] + window',
    'calendar',
  ),
  fixed(
    'a clock that is ahead resets the current period',
    'if not start then',
    'if not start or period and start < period[1] then',
    'calendar',
  ),
  fixed(
    'a clock that is behind returns to the previous period',
    'if not start then',
    'if not start or period and start >= period[2] then',
    'calendar',
  ),

  sliding(
    'rounds the wait within a window down',
    'left - math.floor((limit - current',
    'left - math.ceil((limit - current',
    'waits',
  ),
  sliding(
    'rounds the wait into the next window down',
    'window - math.floor((limit - units)',
    'window - math.ceil((limit - units)',
    'waits',
  ),
  sliding(
    'rounds the estimate down',
    'math.ceil(previous * left',
    'math.floor(previous * left',
    'quota',
  ),
  sliding(
    'forgets the previous window',
    'opened - start > window',
    'opened - start >= window',
    'bounds',
  ),
  sliding(
    'reports too early that the full limit is available',
    'late + left + window',
    'late + left',
    'bounds',
  ),
  sliding(
    'computes the wait from the time of the state, not from now',
    'wait > 0 and late + wait or wait',
    'wait',
    'backwards',
  ),

  log('a unit counts a millisecond longer', "'(%.0f', at", "'%.0f', at", 'waits'),
  log(
    'counts expired entries when it looks for the deciding entry',
    "log.key, log.after, '+inf', 'W",
    "log.key, '-inf', '+inf', 'W",
    'oracle',
  ),
  log(
    'makes one entry for all units of a millisecond',
    "'%.0f:%05.0f', log.at, log.number + unit",
    "'%.0f', log.at",
    'bounds',
  ),
  log('an entry overwrites another one', 'log.number + unit', 'log.used + unit', 'log'),
  log(
    'does not restart the numbering at the next millisecond',
    'newest == at and',
    'newest and',
    'log',
  ),
  log('does not delete expired entries', 'if counted == 0 then', 'if false then', 'log'),
  log(
    'never removes expired entries',
    "redis.call('ZREMRANGEBYSCORE', log.key, ",
    'tostring(',
    'oracle',
  ),
  log(
    'refunds the oldest units instead of the newest',
    'log.key, -newest, -1)',
    'log.key, 0, newest - 1)',
    'oracle',
  ),
  log(
    'refunds the newest units, although they have another decided_at',
    'and decided_at and',
    'and false and',
    'oracle',
  ),
  log(
    'refunds the units before those of decided_at',
    'log.cut - counted - log.gap, log.cut - counted - 1)',
    'log.cut - counted - log.gap - 1, log.cut - counted - 2)',
    'oracle',
  ),
  log(
    'reports the wrong remaining units after a refund of older ones',
    'n + log.gap or n',
    'n or n',
    'oracle',
  ),
  log('sets no TTL', "redis.call('PEXPIRE', log.key, ", 'tostring(', 'expiry'),

  bucket(
    'rounds the wait down',
    'math.ceil((missing - parts)',
    'math.floor((missing - parts)',
    'oracle',
  ),
  bucket(
    'overflows',
    'math.max(0, missing - (moment - at) * limit)',
    'missing - (moment - at) * limit',
    'oracle',
  ),
  bucket(
    'refills a second time when the clock goes back',
    ', moment, missing',
    ', now, missing',
    'bounds',
  ),
  bucket(
    'computes the wait from the time of the state, not from now',
    'moment - now --',
    '0 --',
    'backwards',
  ),
  bucket(
    'rounds what remains up',
    'math.floor((capacity - missing)',
    'math.ceil((capacity - missing)',
    'quota',
  ),
  bucket('uses the limit as the capacity', 'cost > burst', 'cost > limit', 'waits'),
  bucket(
    'forgets units that were taken under a plan with a larger burst',
    'missing = at and math.max(0, missing - (moment - at) * limit)',
    'missing = at and math.max(0, math.min(capacity, missing) - (moment - at) * limit)',
    'plans',
  ),
  bucket(
    'a refund removes the deficit beyond the burst',
    'math.max(0, missing + parts)',
    'math.min(capacity, math.max(0, missing + parts))',
    'plans',
  ),
  bucket('reports a full bucket while a part of a unit is missing', 'wait(0)', 'wait(1)', 'oracle'),
  bucket('a late refund is not reduced', 'if decided_at then', 'if false then', 'bounds'),
  bucket(
    'a late refund takes units',
    'math.min(0, parts + math.max(0, moment - decided_at) * limit)',
    'parts + math.max(0, moment - decided_at) * limit',
    'plans',
  ),
  bucket(
    'a refund at a time before its decided_at returns more than was taken',
    'math.max(0, moment - decided_at)',
    '(moment - decided_at)',
    'oracle',
  ),
  bucket(
    'a refund forgets the refill before the clock went back',
    'moment - decided_at',
    'now - decided_at',
    'oracle',
  ),

  penalty('the ban starts one refusal late', 'count < after', 'count <= after', 'penalty'),
  penalty('requests during a ban prolong it', 'rest > 0 or not refused', 'not refused', 'penalty'),
  penalty('every ban is as long as the first', 'math.max(ban, 2 * length)', 'ban', 'penalty'),
  penalty('bans have no maximum length', 'math.min(most, again', 'math.max(1, again', 'penalty'),
  penalty(
    'forgets a ban as soon as it ends',
    'run_out = now + 2 * length',
    'run_out = now + length',
    'penalty',
  ),
  penalty(
    'remembers a ban longer than a lowered maximum',
    'last and now < last.time + 2 * length',
    'last',
    'penalty',
  ),
  penalty(
    'a lowered maximum does not end a ban',
    'math.min(last.first, most)',
    'last.first',
    'penalty',
  ),
  penalty(
    'each refusal restarts the counting period',
    'local since = counting or',
    'local since =',
    'penalty',
  ),
  penalty('counted refusals remain after the ban', '{ run_out = 0 }', 'nil', 'penalty'),
  penalty(
    'computes the wait from the time of the ban, not from now',
    'length - now)',
    'length - math.max(now, last.time))',
    'penalty',
  ),
  penalty('a ban ends a millisecond early', 'rest > 0 or', 'rest > 1 or', 'penalty'),

  slots('a slot ends a millisecond late', 'if score > now then', 'if score >= now then', 'waits'),
  slots('counts expired slots', "'ZCOUNT', key, after", "'ZCOUNT', key, '-inf'", 'concurrency'),
  slots('a slot that is taken again counts twice', 'not holds(id)', 'true', 'concurrency'),
  slots('an expired slot is still held', 'score and score > now', 'score', 'concurrency'),
  slots('releases more slots than were taken', ') < size', ') < size or true', 'concurrency'),
  slots(
    'releases slots of other ids that begin with the same letters',
    'if id ~= gone then',
    'if not gone or string.find(id, gone, 1, true) ~= 1 then',
    'concurrency',
  ),
  slots('does not delete expired slots', 'if dead then', 'if false then', 'concurrency'),
  slots('sets no TTL', "redis.call('PEXPIRE', key, ", 'tostring(', 'expiry'),
  slots(
    'a slot ends before one that was taken earlier',
    'math.max(now + window, last)',
    'now + window',
    'concurrency',
  ),
  slots(
    'reports the end of the first slot, although more slots must end',
    'counted + remaining + 1 - limit',
    '1',
    'concurrency',
  ),
  slots(
    'takes one slot regardless of the cost',
    'counted = live + cost',
    'counted = live + 1',
    'concurrency',
  ),
  slots(
    'checks that one slot is free instead of the cost',
    'live + cost > limit',
    'live >= limit',
    'concurrency',
  ),

  driver(
    'a refusal by another limit counts for a penalty',
    'if row.own and not row.own.allowed then',
    'if row.own then',
    'penalty',
  ),
  driver(
    'a peek counts for a penalty',
    'if penalties and takes and',
    'if penalties and',
    'penalty',
  ),
  driver(
    'refusals count after their period has ended',
    'counting.run_out > now and counting',
    'counting',
    'penalty',
  ),
  driver(
    'a penalty writes without a refusal',
    'return rest == 0, rest',
    'record.charged = true\n  return rest == 0, rest',
    'commands',
  ),
  driver(
    'a refused request writes',
    'charges = admitted and takes',
    'charges = takes',
    'unchanged',
  ),
  driver(
    'a peek charges',
    "takes = mode == 'take'",
    "takes = mode == 'peek' or mode == 'take'",
    'unchanged',
  ),
  driver(
    'a follow charges after a refusal',
    "mode == 'follow' and passed",
    "mode == 'follow'",
    'follow',
  ),
  driver(
    'a follow charges after a peek or a refund',
    "admitted and mode == 'take'",
    'admitted',
    'follow',
  ),
  driver(
    'a follow without an earlier request charges nothing',
    'local passed = true',
    'local passed = false',
    'follow',
  ),
  driver(
    'a refused follow prevents the next follow from charging',
    "if mode ~= 'follow' then",
    "if mode ~= 'follow' or not admitted then",
    'follow',
  ),
  driver(
    'a refused follow refuses the next request',
    'admitted = rows[first].mode, true',
    "admitted = rows[first].mode, first == 1 or rows[first - 1].mode ~= 'follow' or rows[first - 1].allowed",
    'follow',
  ),
  driver(
    'a refusal affects requests after the next one',
    "passed = admitted and mode == 'take'",
    "passed = passed and admitted and mode == 'take'",
    'follow',
  ),
  driver('reports a refused row as charged', 'ask(row, 0) --', 'row.state = nil --', 'unchanged'),
  driver('decides with a time in whole seconds', 'floor(tonumber(time[2]) / 1000)', '0', 'expiry'),
  driver(
    'detects a log of another type too late',
    "row.view = row.mode ~= 'reset' and read(row) or nil",
    'row.view = nil',
    'arguments',
  ),
  driver(
    'the TTL is a millisecond short',
    'run_out - now + room',
    'run_out - now + room - 1',
    'oracle',
  ),
  driver('sets no TTL', ", 'PX', string.format('%.0f', run_out - now + room)", '', 'expiry'),
  driver(
    'the TTL is that of the last state, not the longest',
    'max(run_out, state.run_out)',
    'state.run_out',
    'expiry',
  ),
  driver(
    'the TTL has no tolerance for the clock of Redis',
    "ARGV[1] == '' and 0 or 60000",
    '0',
    'expiry',
  ),
  driver(
    'keeps a state that has just run out',
    'state.run_out > now then',
    'state.run_out >= now then',
    'records',
  ),
  driver(
    'counts a state that has just run out',
    'state.run_out <= now then',
    'state.run_out < now then',
    'records',
  ),
  driver(
    'the wait is longer than the time to the run-out',
    'retry_after = min(retry_after, runs_out_in)',
    '',
    'waits',
  ),
  driver(
    'a charge does not move the run-out of a live state',
    'run_out = now + reset_after',
    'run_out = state ~= absent and state.run_out or now + reset_after',
    'plans',
  ),
  driver('a refund postpones the run-out', '(cost < 0 or not time)', '(not time)', 'refund'),
  driver('encodes unchanged states again', 'text = state_text', 'text = nil', 'records'),
  driver('loses digits', "'%s:%.0f:%.0f:%.0f'", "'%s:%.0f:%.0f:%.14g'", 'records'),
  driver(
    'a reset deletes the states of other limits',
    'if record.by_tag[tag] then',
    'if next(record.states) then\n    record.states = {}',
    'operators',
  ),
  driver(
    'a reset does not delete a state that has run out',
    'if record.by_tag[tag] then',
    'if record.by_tag[tag] and record.by_tag[tag].run_out > now then',
    'oracle',
  ),
  driver(
    'a reset writes without a state',
    'if record.by_tag[tag] then',
    'if true then',
    'commands',
  ),
  driver(
    'a reset does not delete the log and the slots',
    "redis.call('DEL', KEYS[row.key])\n  else",
    '\n  else',
    'operators',
  ),
  driver(
    'a reset reads the state',
    "row.view = row.mode ~= 'reset' and read(row) or nil",
    'row.view = read(row)',
    'commands',
  ),
  driver(
    'reports the state of a log before its reset',
    "row.apart and row.mode == 'reset'",
    'false',
    'commands',
  ),
  driver(
    'a ban lasts as long as the maximum',
    'first = row.burst }',
    'first = row.cost }',
    'operators',
  ),
  driver(
    'a ban is forgotten as soon as it ends',
    'run_out = now + 2 * row.burst',
    'run_out = now + row.burst',
    'operators',
  ),
  driver(
    'counted refusals remain after a ban by an operator',
    "remove(record, row.tag)\n    if mode == 'ban'",
    "if mode == 'ban'",
    'operators',
  ),
  driver(
    'ending a ban does not delete it',
    'remove(record, ban_tag)',
    'remove(record, row.tag)',
    'operators',
  ),
  driver(
    'a ban does not replace a current one',
    "if mode == 'ban' then",
    "if mode == 'ban' and not record.by_tag[ban_tag] then",
    'operators',
  ),
  driver('ending a ban also resets the limit', "elseif mode == 'reset' then", 'else', 'operators'),
  driver(
    'a follow charges after a request of an operator',
    "passed = admitted and mode == 'take'",
    "passed = admitted and mode ~= 'peek' and mode ~= 'refund'",
    'operators',
  ),
  driver('a replay is charged', 'reply[2] = 1\n    return reply', 'reply[2] = 1', 'idempotency'),
  driver(
    'a replay reports another time',
    'reply[2] = 1',
    'reply[1], reply[2] = now, 1',
    'idempotency',
  ),
  driver(
    'a remembered reply lasts a millisecond too long',
    'tonumber(run_out) > now',
    'tonumber(run_out) >= now',
    'idempotency',
  ),
  driver(
    'calls with different fingerprints count as the same call',
    'fingerprint ~= idempotency.fingerprint or',
    '',
    'idempotency',
  ),
  driver(
    'a call with another number of rows counts as the same call',
    'or #reply ~= 6 + 5 * #rows',
    '',
    'idempotency',
  ),
  driver(
    'a remembered reply loses digits',
    "numbers[index] = string.format('%.0f', number)",
    'numbers[index] = number',
    'idempotency',
  ),
  driver('a reply overwrites a key of another type', 'text, exists,', 'text,', 'idempotency'),
  driver(
    'a reply is not remembered after the previous one has run out',
    "texts[1] and 'XX' or 'NX'",
    "'NX'",
    'idempotency',
  ),
  driver(
    'the TTL of a reply has no tolerance for the clock of Redis',
    'idempotency.window + room',
    'idempotency.window',
    'idempotency',
  ),
  driver(
    'a remembered reply of any format is accepted',
    "return fail('idempotency: its key holds something else')\n  elseif",
    "fingerprint, run_out = '', 0\n  elseif",
    'idempotency',
  ),
  args(
    'a ban may be longer than its maximum',
    "or mode == 'ban' and row.burst > row.cost and 'burst'",
    '',
    'operators',
  ),
  args('a ban is accepted without a penalty', 'if number > 0 then', 'if false then', 'operators'),
  args(
    'a row may use the idempotency key as its key',
    ' and not (idempotency and idempotency.key == row.key)',
    '',
    'arguments',
  ),
  args('accepts a fraction as a whole number', ' and number == floor(number)', '', 'arguments'),
  args('accepts the same key twice', 'if seen[KEYS[index]] then', 'if false then', 'arguments'),
  driver(
    'sends one more command for each request',
    'record.charged = true',
    "record.charged = true; redis.call('PING')",
    'commands',
  ),
]
