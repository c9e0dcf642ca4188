export interface Mutant {
  /** In `lua/`. */
  file: string
  /** What is wrong with it. */
  fault: string
  /** Stands in the file exactly once. */
  search: string
  replace: string
  /** The file in `test/script/` that must notice. */
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
    'asks whether it is full, not whether it fits',
    'count + cost > limit',
    'count >= limit',
    'bounds',
  ),
  fixed('waits from its own time', 'run_out - now', 'run_out - math.max(now, start)', 'backwards'),
  fixed('ignores the clock', 'now - now % window', 'now', 'oracle'),
  fixed(
    'a refund with a decided_at of its first millisecond returns nothing',
    'decided_at >= start',
    'decided_at > start',
    'refund',
  ),
  fixed('the next period begins late', 'now < period[2]', 'now <= period[2]', 'calendar'),
  fixed(
    'the next period is as long as this one',
    'period[3] - period[2]',
    'period[2] - period[1]',
    'calendar',
  ),
  fixed(
    'a period is as long as the window',
    'run_out = period[1], period[2]',
    'run_out = period[1], period[1] + window',
    'calendar',
  ),
  fixed(
    'a clock ahead resets the period that is open',
    'if not start then',
    'if not start or period and start < period[1] then',
    'calendar',
  ),
  fixed(
    'a clock behind goes back a period',
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
  sliding('is whole again too early', 'late + left + window', 'late + left', 'bounds'),
  sliding('waits from its own time', 'wait > 0 and late + wait or wait', 'wait', 'backwards'),

  log('a unit counts a millisecond longer', "'(%.0f', at", "'%.0f', at", 'waits'),
  log(
    'counts dead entries on the way to the one that decides',
    "log.key, log.after, '+inf', 'W",
    "log.key, '-inf', '+inf', 'W",
    'oracle',
  ),
  log(
    'one entry for all units of a millisecond',
    "'%.0f:%05.0f', log.at, log.number + unit",
    "'%.0f', log.at",
    'bounds',
  ),
  log('an entry takes the place of another', 'log.number + unit', 'log.used + unit', 'log'),
  log('numbers on from one millisecond to the next', 'newest == at and', 'newest and', 'log'),
  log('leaves dead entries behind', 'if counted == 0 then', 'if false then', 'log'),
  log('never trims', "redis.call('ZREMRANGEBYSCORE', log.key, ", 'tostring(', 'oracle'),
  log('refunds the oldest', 'log.key, -newest, -1)', 'log.key, 0, newest - 1)', 'oracle'),
  log(
    'refunds the newest, though they have another decided_at',
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
  log('tells what stays as if the newest had gone', 'n + log.gap or n', 'n or n', 'oracle'),
  log('no TTL', "redis.call('PEXPIRE', log.key, ", 'tostring(', 'expiry'),

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
  bucket('waits from its own time', 'moment - now --', '0 --', 'backwards'),
  bucket(
    'rounds what remains up',
    'math.floor((capacity - missing)',
    'math.ceil((capacity - missing)',
    'quota',
  ),
  bucket('takes the limit for the capacity', 'cost > burst', 'cost > limit', 'waits'),
  bucket(
    'forgets what a plan with a larger burst has taken',
    'missing = at and math.max(0, missing - (moment - at) * limit)',
    'missing = at and math.max(0, math.min(capacity, missing) - (moment - at) * limit)',
    'plans',
  ),
  bucket(
    'a refund forgives what is missing beyond the burst',
    'math.max(0, missing + parts)',
    'math.min(capacity, math.max(0, missing + parts))',
    'plans',
  ),
  bucket('is full while a part is missing', 'wait(0)', 'wait(1)', 'oracle'),
  bucket('a late refund is not reduced', 'if decided_at then', 'if false then', 'bounds'),
  bucket(
    'a late refund takes units',
    'math.min(0, parts + math.max(0, moment - decided_at) * limit)',
    'parts + math.max(0, moment - decided_at) * limit',
    'plans',
  ),
  bucket(
    'a refund under a clock behind its decided_at returns more than was taken',
    'math.max(0, moment - decided_at)',
    '(moment - decided_at)',
    'oracle',
  ),
  bucket(
    'a refund forgets what flowed until the clock went back',
    'moment - decided_at',
    'now - decided_at',
    'oracle',
  ),

  penalty('the ban starts a refusal late', 'count < after', 'count <= after', 'penalty'),
  penalty('knocking prolongs a ban', 'rest > 0 or not refused', 'not refused', 'penalty'),
  penalty('every ban is as long as the first', 'math.max(ban, 2 * length)', 'ban', 'penalty'),
  penalty('a ban without a maximum', 'math.min(most, again', 'math.max(1, again', 'penalty'),
  penalty(
    'forgets a ban as soon as it ends',
    'run_out = now + 2 * length',
    'run_out = now + length',
    'penalty',
  ),
  penalty(
    'remembers a ban for longer than a maximum that was lowered',
    'last and now < last.time + 2 * length',
    'last',
    'penalty',
  ),
  penalty(
    'a maximum that was lowered does not end a ban',
    'math.min(last.first, most)',
    'last.first',
    'penalty',
  ),
  penalty(
    'every refusal puts off the end of counting',
    'local since = counting or',
    'local since =',
    'penalty',
  ),
  penalty('what was counted outlasts the ban', '{ run_out = 0 }', 'nil', 'penalty'),
  penalty(
    'waits from its own time',
    'length - now)',
    'length - math.max(now, last.time))',
    'penalty',
  ),
  penalty('a ban ends a millisecond early', 'rest > 0 or', 'rest > 1 or', 'penalty'),

  slots('a slot ends a millisecond late', 'if score > now then', 'if score >= now then', 'waits'),
  slots(
    'counts dead ones among many',
    "'ZCOUNT', key, after",
    "'ZCOUNT', key, '-inf'",
    'concurrency',
  ),
  slots('what is taken again is taken twice', 'not holds(id)', 'true', 'concurrency'),
  slots('a dead slot is still held', 'score and score > now', 'score', 'concurrency'),
  slots('releases as many slots as the cost says', ') < size', ') < size or true', 'concurrency'),
  slots(
    'releases slots of other ids that begin with the same letters',
    'if id ~= gone then',
    'if not gone or string.find(id, gone, 1, true) ~= 1 then',
    'concurrency',
  ),
  slots('dead slots stay', 'if dead then', 'if false then', 'concurrency'),
  slots('no TTL', "redis.call('PEXPIRE', key, ", 'tostring(', 'expiry'),
  slots(
    'ends before one that was taken earlier',
    'math.max(now + window, last)',
    'now + window',
    'concurrency',
  ),
  slots(
    'tells the first end though more must pass',
    'counted + remaining + 1 - limit',
    '1',
    'concurrency',
  ),
  slots('one slot whatever the cost', 'counted = live + cost', 'counted = live + 1', 'concurrency'),
  slots('asks whether one fits', 'live + cost > limit', 'live >= limit', 'concurrency'),

  driver(
    'a refusal by others counts for a penalty',
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
    'refusals count beyond their time',
    'counting.run_out > now and counting',
    'counting',
    'penalty',
  ),
  driver(
    'a penalty writes though nobody was refused',
    'return rest == 0, rest',
    'record.charged = true\n  return rest == 0, rest',
    'commands',
  ),
  driver(
    'writes on the way to a refusal',
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
    'a follow charges after a peek, and after a refund',
    "admitted and mode == 'take'",
    'admitted',
    'follow',
  ),
  driver(
    'a follow without a request before it charges nothing',
    'local passed = true',
    'local passed = false',
    'follow',
  ),
  driver(
    'a refused follow keeps the next from charging',
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
    'a refusal lasts beyond the next request',
    "passed = admitted and mode == 'take'",
    "passed = passed and admitted and mode == 'take'",
    'follow',
  ),
  driver('tells a refused row as charged', 'ask(row, 0) --', 'row.state = nil --', 'unchanged'),
  driver('decides by whole seconds', 'floor(tonumber(time[2]) / 1000)', '0', 'expiry'),
  driver(
    'finds a log of another type too late',
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
  driver('no TTL', ", 'PX', string.format('%.0f', run_out - now + room)", '', 'expiry'),
  driver(
    'the TTL is that of the last state',
    'max(run_out, state.run_out)',
    'state.run_out',
    'expiry',
  ),
  driver("no room for Redis' own clock", "ARGV[1] == '' and 0 or 60000", '0', 'expiry'),
  driver(
    'keeps what has just run out',
    'state.run_out > now then',
    'state.run_out >= now then',
    'records',
  ),
  driver(
    'counts what has just run out',
    'state.run_out <= now then',
    'state.run_out < now then',
    'records',
  ),
  driver('waits beyond the run-out', 'retry_after = min(retry_after, runs_out_in)', '', 'waits'),
  driver(
    'a charge leaves the run-out of a live state where it is',
    'run_out = now + reset_after',
    'run_out = state ~= absent and state.run_out or now + reset_after',
    'plans',
  ),
  driver('a refund postpones the run-out', '(cost < 0 or not time)', '(not time)', 'refund'),
  driver('writes other states anew', 'text = state_text', 'text = nil', 'records'),
  driver('loses digits', "'%s:%.0f:%.0f:%.0f'", "'%s:%.0f:%.0f:%.14g'", 'records'),
  driver(
    'a reset forgets the other limits, too',
    'if record.by_tag[tag] then',
    'if next(record.states) then\n    record.states = {}',
    'operators',
  ),
  driver(
    'a reset leaves a state that has run out',
    'if record.by_tag[tag] then',
    'if record.by_tag[tag] and record.by_tag[tag].run_out > now then',
    'oracle',
  ),
  driver(
    'a reset writes where nothing was',
    'if record.by_tag[tag] then',
    'if true then',
    'commands',
  ),
  driver(
    'a reset leaves the log, and the slots',
    "redis.call('DEL', KEYS[row.key])\n  else",
    '\n  else',
    'operators',
  ),
  driver(
    'a reset that is not read before is not seen later',
    "row.view = row.mode ~= 'reset' and read(row) or nil",
    'row.view = read(row)',
    'commands',
  ),
  driver('tells a reset log as it stood', "row.apart and row.mode == 'reset'", 'false', 'commands'),
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
    'what was counted outlasts a ban by an operator',
    "remove(record, row.tag)\n    if mode == 'ban'",
    "if mode == 'ban'",
    'operators',
  ),
  driver(
    'the end of a ban leaves it',
    'remove(record, ban_tag)',
    'remove(record, row.tag)',
    'operators',
  ),
  driver(
    'a ban leaves one that is running',
    "if mode == 'ban' then",
    "if mode == 'ban' and not record.by_tag[ban_tag] then",
    'operators',
  ),
  driver(
    'the end of a ban forgets the limit, too',
    "elseif mode == 'reset' then",
    'else',
    'operators',
  ),
  driver(
    'a follow charges after a request of an operator',
    "passed = admitted and mode == 'take'",
    "passed = admitted and mode ~= 'peek' and mode ~= 'refund'",
    'operators',
  ),
  driver('a replay is charged', 'reply[2] = 1\n    return reply', 'reply[2] = 1', 'idempotency'),
  driver(
    'a replay tells another time',
    'reply[2] = 1',
    'reply[1], reply[2] = now, 1',
    'idempotency',
  ),
  driver(
    'an answer outlasts its time by a millisecond',
    'tonumber(run_out) > now',
    'tonumber(run_out) >= now',
    'idempotency',
  ),
  driver(
    'whatever the fingerprint, it is the same call',
    'fingerprint ~= idempotency.fingerprint or',
    '',
    'idempotency',
  ),
  driver(
    'an answer to other rows is the same call',
    'or #reply ~= 6 + 5 * #rows',
    '',
    'idempotency',
  ),
  driver(
    'an answer loses digits',
    "numbers[index] = string.format('%.0f', number)",
    'numbers[index] = number',
    'idempotency',
  ),
  driver('an answer takes the place of another type', 'text, exists,', 'text,', 'idempotency'),
  driver(
    'a forgotten answer is not remembered again',
    "texts[1] and 'XX' or 'NX'",
    "'NX'",
    'idempotency',
  ),
  driver(
    'an answer is forgotten by the clock of Redis',
    'idempotency.window + room',
    'idempotency.window',
    'idempotency',
  ),
  driver(
    'what is remembered has any form',
    "return fail('idempotency: its key holds something else')\n  elseif",
    "fingerprint, run_out = '', 0\n  elseif",
    'idempotency',
  ),
  args(
    'a ban beyond its maximum',
    "or mode == 'ban' and row.burst > row.cost and 'burst'",
    '',
    'operators',
  ),
  args('a ban without a penalty', 'if number > 0 then', 'if false then', 'operators'),
  args(
    'a row may have the idempotency key',
    ' and not (idempotency and idempotency.key == row.key)',
    '',
    'arguments',
  ),
  args('takes a fraction for a whole number', ' and number == floor(number)', '', 'arguments'),
  args('takes one key twice', 'if seen[KEYS[index]] then', 'if false then', 'arguments'),
  driver(
    'one write for each request',
    'record.charged = true',
    "record.charged = true; redis.call('PING')",
    'commands',
  ),
]
