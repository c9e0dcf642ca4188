import { type Mutant, mutantsOf } from './mutant.ts'

const of = (name: string) =>
  mutantsOf(`src/core/connection/${name}.ts`, 'test/unit/core/connection')
const leasing = (name: string) =>
  mutantsOf(`src/features/leases/${name}.ts`, 'test/unit/features/leases')
const fallback = (name: string) =>
  mutantsOf(`src/core/fallback/${name}.ts`, 'test/unit/core/fallback')
const algorithms = (name: string) =>
  mutantsOf(`src/core/connection/algorithms/${name}.ts`, 'test/unit/core/fallback')

const reply = of('upstash/reply')
const pack = of('upstash/pack')
const args = of('upstash/arguments')
const apart = of('upstash/apart')
const units = mutantsOf('src/core/base/units.ts', 'test/unit/core/connection')
/** The parts of features, by what calls and replies show. */
const partOf = (feature: string) =>
  mutantsOf(`src/features/${feature}/stages.ts`, 'test/unit/core/connection')
const bans = partOf('bans')
const overrides = partOf('overrides')
const script = of('upstash/script')
const transport = of('upstash/transport')
const upstash = of('upstash/upstash')
const batching = of('connection')
/** The algorithms, by what a reply shows. */
const algorithmsOf = (name: string) =>
  mutantsOf(`src/core/connection/algorithms/${name}.ts`, 'test/unit/core/connection')
const client = mutantsOf('src/stores/upstash.ts', 'test/unit/stores')
const ownClient = mutantsOf('src/stores/redis.ts', 'test/unit/stores')
const breaker = of('breaker')
const deadline = of('deadline')
const lease = leasing('lease')
const call = leasing('call')
const inFlight = leasing('in-flight')
const leases = leasing('leases')
const entries = fallback('entries')
const share = fallback('share')
const refund = fallback('states')
const fromReply = fallback('states')
const local = fallback('local')
const algorithm = algorithms('algorithm')
const fixed = algorithms('fixed-window')
const sliding = algorithms('sliding-window')
const bucket = algorithms('token-bucket')
const splitStore = mutantsOf('src/stores/split/split.ts', 'test/unit/stores/split')

export const storeMutants: Mutant[] = [
  ownClient('lets ioredis send a call again', 'socket?.destroyed', 'false', 'redis'),
  ownClient(
    'lets a client of Sentinels send a call again',
    'isSent || until.aborted',
    'until.aborted',
    'redis',
  ),
  ownClient(
    'lets ioredis send a late call',
    'else if (until.aborted) failure',
    'else if (!until) failure',
    'redis',
  ),
  ownClient(
    'queues calls while the connection is lost',
    "else if (wasReady) throw new StoreError('unreachable', NOT_SENT)",
    '',
    'redis',
  ),
  ownClient(
    'leaves a call that hangs in the queue of a client',
    'for (const listener of this.#listeners.splice(0)) listener()',
    'this.#listeners.splice(0)',
    'redis',
  ),
  ownClient('sends the flag of Upstash', ".replace(/^#!lua [^\\n]*\\n/, '')", '', 'redis'),
  reply(
    'accepts a time above 2^53',
    '!Number.isSafeInteger(decidedAt)',
    'Number.isNaN(decidedAt)',
    'reply',
  ),
  reply(
    'accepts more parts than requests',
    'texts.length !== requests.length',
    'texts.length < requests.length',
    'reply',
  ),
  reply(
    'accepts a refusal without a wait',
    '!state && !answer.allowed && answer.retryAfterMs === 0',
    'false',
    'reply',
  ),
  apart(
    'accepts a record whose mark contradicts its wait',
    "(mark === '+') !== (retryAfter === 0)",
    'false',
    'reply',
  ),
  reply('marks a first reply as a replay', "mark === '1' ? {", 'mark ? {', 'reply'),
  reply('accepts a state that has run out', 'end <= now', 'end < now', 'reply'),
  algorithmsOf('index')(
    'admits what the state has room for, against the script',
    'retryAfterMs = allowed ? 0 : decide(now, smaller, cost, stored).retryAfterMs',
    'retryAfterMs = decide(now, smaller, cost, stored).retryAfterMs',
    'reply',
  ),
  args('a take ignores its floor', 'floor === 0 && !(period ||', '!(period ||', 'arguments'),
  args('a take ignores its calendar period', '!(period || override', '!(override', 'script'),
  args('a take ignores its penalty', ' || limit.penalty)', ')', 'script'),
  script(
    'a log is sent without its own key',
    'limit.subject !== subject || hasOwnKey(limit.terms.algorithm)',
    'limit.subject !== subject',
    'script',
  ),
  client('accepts a client that sends a call twice', 'attempts === 0', 'attempts !== 5', 'upstash'),
  client(
    'accepts a signal that is not renewed',
    "typeof signal === 'function'",
    'signal',
    'upstash',
  ),
  client('keeps the command in an error', ".split(', command was: ')[0]!", '', 'upstash'),
  client('a client without a token is called', 'http?.hasCredentials !== false', 'true', 'upstash'),
  algorithmsOf('index')(
    'reports waits beyond the life of the state',
    'Math.min(resetAfterMs, restMs)',
    'resetAfterMs',
    'reply',
  ),
  mutantsOf('src/core/connection/algorithms/algorithm.ts', 'test/unit/core/fallback')(
    'the local store reports waits beyond the life of the state',
    'Math.min(resetAfterMs, restMs)',
    'resetAfterMs',
    'local-replies',
  ),
  bans(
    'the wait of a ban replaces a longer wait',
    'Math.max(retryAfterMs, bannedForMs)',
    'bannedForMs',
    'reply',
  ),
  bans(
    'a ban of a cost that never fits has a wait',
    'retryAfterMs === null ? null : Math.max',
    'retryAfterMs === null ? bannedForMs : Math.max',
    'reply',
  ),
  reply(
    'accepts parts after the bans',
    "parts.length === ends + 1 && parts[ends] === ''",
    "parts[ends] === ''",
    'reply',
  ),
  apart(
    'a log reports its whole floor as reserved',
    'Math.max(0, Math.min(floor, left + floor))',
    'floor',
    'reply',
  ),
  algorithmsOf('index')(
    'reports what is left above the floor as reserved, too',
    'decide(now, terms, 0, stored).remaining - answer.remaining',
    'decide(now, terms, 0, stored).remaining',
    'reply',
  ),
  reply('does not check the numbers of a state', '!state || !isSound(state)', '!state', 'reply'),

  pack(
    'the second pack has the key of the first one',
    'index > 0 ? withSuffix',
    'index > 9 ? withSuffix',
    'pack',
  ),
  pack(
    'counts a shared key once for each list',
    'keys.size + newKeys.length <= MAX_KEYS',
    'keys.size + listKeys.length <= MAX_KEYS',
    'pack',
  ),
  pack('forgets the bound of requests', ' && requests + list.length <= MAX_REQUESTS', '', 'pack'),
  pack(
    'counts one key for a limit with two',
    'keys += 2 * limits.length',
    'keys += limits.length',
    'pack',
  ),
  pack('a leading follow follows the list before', 'leads ? {', '!leads ? {', 'pack'),
  pack(
    'each list gets the states of the lists after it',
    'all.slice(next - length, next)',
    'all.slice(next - length)',
    'pack',
  ),
  pack(
    'unpacked lists share an idempotency key',
    'map((own, index) =>',
    'map((own, _, __, index = 0) =>',
    'pack',
  ),

  units('a log has any number of entries', '? MAX_ENTRIES', '? MAX_UNITS', 'arguments'),
  units('a fixed window has a small limit', "=== 'fixed-window'", "=== 'fixed'", 'arguments'),
  units('bounds no product', 'MAX_PRODUCT / windowMs', 'MAX_PRODUCT', 'arguments'),
  args(
    'does not bound the burst',
    "check(isWhole(burst, 1, most), place, 'burst')",
    '',
    'arguments',
  ),
  overrides('a key gets a limit of 0', "check(isUnits(units, 1), place, 'limit')", '', 'arguments'),
  args(
    'a refund needs no slot id',
    "(limit, modes[mode] === 'charges', place)",
    "(limit, mode === 'take', place)",
    'arguments',
  ),
  args(
    'a limit and its penalty may have the same tag',
    'limits.length > 1 || hasPenalty',
    'limits.length > 1',
    'arguments',
  ),
  bans(
    'a ban may be longer than the maximum',
    " && (request.mode !== 'ban' || banMs <= maxMs)",
    '',
    'arguments',
  ),
  args(
    'a floor may be larger than the quota',
    ' && floor <= capacityOf(terms.algorithm, terms)',
    '',
    'arguments',
  ),
  args(
    'slots may have a debt',
    "const owes = algorithm !== 'concurrency' &&",
    'const owes =',
    'arguments',
  ),
  overrides(
    'an operator may set a limit that the window does not allow',
    'termsText(resized(limit, units).terms, place)',
    '',
    'arguments',
  ),
  args(
    'an override needs no limit that has one',
    'limits.every(({ override }) => override)',
    'true',
    'arguments',
  ),
  args(
    'a limit may have the name of the idempotency key',
    'keys.indexOf(keys[0]!, 1) === -1',
    'true',
    'arguments',
  ),
  args(
    'a refund of a bucket has units that are not exact',
    "mode === 'refund' ? Math.min(cost, mostRefunded(terms)) : cost",
    'cost',
    'script',
  ),
  args(
    'a call with limits of operators does not ask for them',
    'penalty || override || hasOwnKey',
    'penalty || hasOwnKey',
    'script',
  ),
  args(
    'a refund has a penalty',
    "mode === 'refund' || mode === 'debt' ? undefined : penalty",
    "mode === 'debt' ? undefined : penalty",
    'script',
  ),
  script(
    'a log with a limit of an operator has no record',
    'if (limit.override || penaltyOf(request, limit) || ',
    'if (penaltyOf(request, limit) || ',
    'script',
  ),
  script(
    'the idempotency key has no namespace',
    'recordOf(idempotency.key, namespace)',
    'recordOf(idempotency.key)',
    'script',
  ),

  transport('follows redirects', "redirect: 'manual'", "redirect: 'follow'", 'many-lists-failures'),
  transport(
    'accepts more answers than commands',
    'reply.length === commands.length',
    'reply.length >= commands.length',
    'many-lists-failures',
  ),
  transport(
    'a single result answers each list',
    "if ('result' in answer) throw new StoreError('bad-reply')",
    '',
    'many-lists-failures',
  ),
  transport(
    'reads answers of a failed response',
    'response.ok && Array.isArray(reply)',
    'Array.isArray(reply)',
    'many-lists-failures',
  ),
  transport(
    'a deadline is an unreachable store',
    "name === 'TimeoutError' || name === 'AbortError'",
    "name === 'AbortError'",
    'upstash',
  ),
  transport(
    'takes a part of a key for an error of the plan',
    'database has been suspended|',
    'suspended|',
    'upstash',
  ),
  transport(
    'keeps the text of an unknown error',
    '/^[A-Z]{2,20}\\b/.exec(text) ?? []',
    '/^[A-Z]{2,20}\\b/.exec(text) ?? [text]',
    'upstash',
  ),
  transport(
    'reads the result of a failed response',
    "!ok || typeof error === 'string'",
    "typeof error === 'string'",
    'many-lists-failures',
  ),

  upstash('sends the script with every call', 'script.isLoaded = true', 'void 0', 'upstash'),
  upstash(
    'sends the script with every call of an HTTP request',
    '(script.isLoaded && !isResent) || carried.includes(script)',
    'script.isLoaded && !isResent',
    'many-lists',
  ),
  upstash('sends no script again', 'script.isLoaded && !isResent', 'script.isLoaded', 'many-lists'),
  upstash(
    'sends a declined call to the compiled script again',
    'isDeclined || idempotency',
    'idempotency',
    'upstash-compiled',
  ),
  upstash(
    'a call with an idempotency key goes to a compiled script',
    'isDeclined || idempotency',
    'isDeclined',
    'upstash-compiled',
  ),
  upstash('does not count declined calls', 'set.declines += 1', '', 'upstash-compiled'),
  upstash(
    'a declined call is a lost script',
    '!isResent && missing.length > 0',
    '!isResent',
    'upstash-compiled',
  ),
  upstash('aborts a call at its deadline', 'ms + LATE_MS', 'ms', 'upstash'),
  upstash(
    'gives up after the script was sent to one node',
    'isResent && missing.length === packs.length',
    'isResent',
    'many-lists-failures',
  ),
  upstash(
    'sends lists again that may have been charged',
    '/^(WRONGTYPE$|ERR sluice: (call|request|idempotency: unexpected|key)\\b)/.test(String(reply.cause))',
    'true',
    'many-lists-failures',
  ),
  upstash(
    'does not send the other lists of an invalid one',
    'lengths && hasChargedNothing',
    'lengths && lengths.length > 128 && hasChargedNothing',
    'many-lists',
  ),

  batching(
    'a batch has one limit less',
    'limits + entry.limits <= MAX_ROWS',
    'limits + entry.limits < MAX_ROWS',
    'batching',
  ),
  batching(
    'a batch has subjects of any length',
    ' && length + entry.length <= MAX_LENGTH',
    '',
    'batching',
  ),
  batching(
    'a short deadline joins a batch with a long one',
    'ms <= 2 * firstMs && firstMs <= 2 * ms',
    'ms <= 2 * firstMs',
    'batching',
  ),
  batching(
    'a long deadline joins a batch with a short one',
    'ms <= 2 * firstMs && firstMs <= 2 * ms',
    'firstMs <= 2 * ms',
    'batching',
  ),
  batching(
    'answers a request that has ended',
    'if (!isGone(entry, repliedAt)) entry.answer(results)',
    'entry.answer(results)',
    'batching',
  ),
  batching('sends a list at its deadline', 'entry.until > now', 'entry.until >= now', 'batching'),
  batching(
    'waits for the request that opened the batch beyond half of the deadline',
    'Math.min(MAX_OPEN_MS, entry.deadlineMs / 2)',
    'MAX_OPEN_MS',
    'batching',
  ),
  batching(
    'waits for a list that left in another millisecond',
    'latest?.leftAt === now && latest.call',
    'latest?.call',
    'batching',
  ),
  batching(
    'waits for a list that has its reply',
    ' && latest.call?.isOver === false',
    '',
    'batching',
  ),
  batching(
    'does not wait longer for the second list',
    'batch.entries.length > 1 ?',
    'batch.entries.length > 0 ?',
    'batching',
  ),
  batching(
    'waits longer for the third list',
    'batch.entries.length > 1 ?',
    'batch.entries.length > 2 ?',
    'batching',
  ),
  batching(
    'a clock that is set back prolongs the deadline',
    'Math.min(deadlineMs, until - now)',
    'until - now',
    'batching',
  ),
  batching('an idempotent call joins a batch', ' && !idempotency && ', ' && ', 'batching'),
  batching('a call with a time joins a batch', ' && time === undefined', '', 'batching'),
  batching('a rejected call answers no request', '.catch(failed)', '', 'batching'),
  batching('does not keep the isolate alive for its batch', 'waitUntil(promise)\n', '', 'batching'),

  breaker('opens after six failures', 'const THRESHOLD = 5', 'const THRESHOLD = 6', 'breaker'),
  breaker(
    'a success does not reset the count',
    'failures = 0\n          answeredAt',
    'answeredAt',
    'breaker',
  ),
  breaker(
    'opens for one second whatever the error is',
    '(LONG_HOLD_MS[code] ?? HOLD_MS)',
    'HOLD_MS',
    'breaker',
  ),
  breaker(
    'a later failure shortens a long hold',
    'holds(hold, now) ? Math.max(until, hold.until) : until',
    'until',
    'breaker',
  ),
  breaker(
    'reports the time since the last failure',
    'const { since = now, hold } =',
    'const since = now; const { hold } =',
    'breaker',
  ),
  breaker(
    'counts as closed when its hold has ended',
    '...(opened && {',
    '...(opened && holds(opened.hold, clock()) && {',
    'breaker',
  ),
  breaker('a late reply closes the circuit', 'if (isSlow) {', 'if (false) {', 'breaker'),
  breaker(
    'a late reply does not let calls pass',
    'if (opened) opened.hold = undefined',
    '',
    'breaker',
  ),
  breaker(
    'a second trial call starts during a long one',
    'Math.min(MAX_TRIAL_MS, Math.max(HOLD_MS, deadlineMs))',
    'HOLD_MS',
    'breaker',
  ),
  breaker(
    'a trial call that has failed blocks the next one',
    'if (isTrial) trial = undefined',
    '',
    'breaker',
  ),
  breaker(
    'a clock that is set back keeps the circuit open',
    'isWithin(now, hold.from, hold.until)',
    'now < hold.until',
    'breaker',
  ),
  breaker(
    'a mistake of the caller counts as a failure',
    "reply.code === 'idempotency-conflict' || ",
    '',
    'breaker',
  ),
  breaker(
    'the first list of a call decides for all',
    'reply.length === 0 || reply.some(isAnswer)',
    'isAnswer(reply[0])',
    'breaker',
  ),
  breaker(
    'a timer that fires late counts as a failure',
    'isLate(clock() - until) ||',
    '',
    'deadline',
  ),
  breaker(
    'a call that fails after its deadline counts twice',
    '!isSlow && !isBusy',
    '!isBusy',
    'deadline',
  ),
  breaker('a call with many limits is watched', ' || !isSmall(lists)', '', 'deadline'),

  deadline(
    'does not wait again if its timer fires late',
    'else if (isLate(lateMs)) timer = setTimeout(end, Math.min(lateMs, waitMs))\n',
    '',
    'deadline',
  ),
  deadline(
    'waits for as long as its timer was late',
    'Math.min(lateMs, waitMs)',
    'lateMs',
    'deadline',
  ),
  deadline('the isolate does not stay alive for a late reply', 'waitUntil?.(late)', '', 'deadline'),
  deadline('all lists get the late reply of the first', 'all[index]', 'all[0]', 'deadline'),
  deadline(
    'the task of an inner layer is the deadline',
    'if (dueMs < waitMs) {',
    'if (false) {',
    'deadline',
  ),
  deadline(
    'a late task prolongs the wait of the caller',
    'waitMs - dueMs - Math.max(0, lateMs)',
    'waitMs - dueMs',
    'deadline',
  ),
  deadline('a task runs twice', 'task = undefined', '', 'deadline'),
  deadline(
    'a task that is set while the caller waits is late',
    'timer = dueIn(dueMs - elapsedMs)',
    'timer = dueIn(dueMs)',
    'deadline',
  ),
  deadline('a late timer has a negative delay', 'Math.max(0, ms)', 'ms', 'deadline'),
  deadline('a task that is set after the deadline runs', 'timer = undefined', '', 'deadline'),
  deadline(
    'the task of a call that has ended runs',
    'clearTimeout(timer)\n          timer = undefined\n          resolve(result)',
    'resolve(result)',
    'deadline',
  ),

  lease(
    'the demand of the span before does not fade',
    'previous * (1 - (now - start) / spanMs)',
    'previous',
    'demand',
  ),
  lease(
    'a clock that is set back keeps the demand',
    'isWithin(now, start, start + spanMs)',
    'now < start + spanMs',
    'demand',
  ),
  lease('takes an eighth of the rest', 'const PARTS = 16', 'const PARTS = 8', 'lease'),
  lease('takes the whole demand', 'demand.recent(now) / 2', 'demand.recent(now)', 'lease'),
  lease(
    'takes units that are already in flight',
    'target - cost - inFlight',
    'target - cost',
    'lease',
  ),
  lease(
    'a reply that is overtaken replaces a later one',
    '!lastReply || decidedAt >= lastReply.decidedAt',
    'true',
    'lease',
  ),
  lease('a lease outlives its window', 'Math.min(ttlMs, endsAfterMs)', 'ttlMs', 'lease'),
  lease(
    'a lease of a sliding window lasts for the next window',
    "algorithm === 'sliding-window' ? state.resetAfterMs - windowMs : state.resetAfterMs",
    'state.resetAfterMs',
    'lease',
  ),
  lease('holds more than the maximum', 'Math.max(0, max - inFlight)', 'max', 'lease'),
  lease(
    'merged units have the later deadline',
    'until: Math.min(some.until, others.until)',
    'until: Math.max(some.until, others.until)',
    'lease',
  ),
  lease(
    'a forgotten lease receives units',
    'isForgotten || units.count === 0',
    'units.count === 0',
    'lease',
  ),
  lease(
    'refunds units of an earlier window',
    'units.count > 0 && now < units.refundableUntil',
    'units.count > 0',
    'lease',
  ),
  lease(
    'a returned unit shortens the lease of the next window',
    'now < held.refundableUntil ? merged(held, units) : units',
    'merged(held, units)',
    'lease',
  ),
  call(
    'a call has more requests than the script accepts',
    'if (!quota || room < 2) continue',
    'if (!quota) continue',
    'call',
  ),
  call(
    'holds units that a refused request did not take',
    'lastTakePassed && state.allowed ? taken.count : 0',
    'state.allowed ? taken.count : 0',
    'call',
  ),
  call(
    'a refused request loses its lent unit',
    'if (!lastTakePassed) lease.hold(units, receivedAt)',
    '',
    'call',
  ),
  call(
    'an admitted request keeps its lent unit',
    'if (!lastTakePassed) lease.hold(units, receivedAt)',
    'lease.hold(units, receivedAt)',
    'call',
  ),
  inFlight('refunded units are not in flight', 'sum + free + bound', 'sum + free', 'call'),
  inFlight(
    'several requests reserve one unit',
    'call.loads.get(quota)!.free -= cost',
    'call.loads.get(quota)!.free -= 0',
    'call',
  ),
  inFlight(
    'waits for a call that is past its deadline',
    'now < until && missing.every',
    'missing.every',
    'call',
  ),
  leases(
    'a request with a floor spends units that were leased without one',
    '{floor}',
    '{0}',
    'floor',
  ),
  leases('spends units of other terms', '{limit}', '{0}', 'held'),
  leases('an unban keeps the held units', "'ban', 'unban', ", "'ban', ", 'held'),
  leases('a new limit of an operator keeps the held units', ", 'override', 'restore'", '', 'held'),
  leases(
    'spends units after the clock is set back',
    'now < latest - MAX_STALE_MS',
    'false',
    'held',
  ),
  leases(
    'leases for an idempotent call',
    'isTake && !idempotency && givenTime',
    'isTake && givenTime',
    'calls',
  ),
  leases('leases for a request without a cost', '!lease || limit.cost === 0', '!lease', 'calls'),

  entries(
    'evicts the most exhausted limit',
    'score(other) > score(chosen)',
    'score(other) < score(chosen)',
    'entries',
  ),
  entries(
    'an eviction does not prefer expired entries',
    '(until <= now ? 2 : left)',
    'left',
    'entries',
  ),
  share(
    'a small share has no unit',
    'Math.max(1, Math.floor(units * localShare))',
    'Math.floor(units * localShare)',
    'share',
  ),
  share(
    'a cost above the share is never admitted',
    'fits ? Math.min(cost, Math.max(1, capacity - kept)) : cost',
    'cost',
    'share',
  ),
  share(
    'cuts the same units from both windows',
    'first - (less - (second - previous))',
    'first - less',
    'share',
  ),
  share(
    'the whole floor applies to a share',
    'Math.ceil(floor * localShare)',
    'floor',
    'floors-debts',
  ),
  refund(
    'refunds no window that began with the charge',
    'takenAt < state.time',
    'takenAt <= state.time',
    'local',
  ),
  refund('a refund clears the log of its time', '.slice(0, units)', '', 'local'),
  fromReply(
    'a window lasts for its whole length after the reply',
    '{ time: end - window, end, numbers',
    '{ time: at, end: at + window, numbers',
    'local-replies',
  ),
  local(
    'an older reply replaces a newer one',
    'last.decidedAt > decidedAt',
    'last.decidedAt < decidedAt',
    'local-replies',
  ),
  local(
    'a refusal of a small plan refuses a large one',
    'isCovered && !state.allowed',
    '!state.allowed',
    'local-replies',
  ),
  local(
    'forgets a ban for smaller costs',
    'Math.max(state.bannedForMs ?? 0, refusedMs)',
    'refusedMs',
    'local-replies',
  ),
  local(
    'a local unit matches several late charges',
    'entry.localUnits -= limit.cost\n      return',
    'return',
    'local-replies',
  ),
  local(
    'refusals of the store evict each other',
    'if (entries.isFull) for (const limit of limits) dropDerivedState(limit)',
    '',
    'local-replies',
  ),
  local(
    'forgets its own count when a reply arrives',
    'if (own && left(own) <= left(fromReply)) return own',
    '',
    'local-replies',
  ),
  local(
    'charges the follow of a refused take',
    "lastTakePassed ? 'take' : 'peek'",
    "'take'",
    'local',
  ),
  local(
    'charges the limits that admit a refused request',
    "mode !== 'take' || !checked.every(({ state }) => state.allowed)",
    "mode !== 'take'",
    'local',
  ),
  local(
    'a debt beyond the exact numbers is not charged',
    'Math.min(limit.cost, remaining)',
    'limit.cost',
    'floors-debts',
  ),
  local(
    'a limit of an operator lasts a millisecond too long',
    'now >= reply.receivedAt',
    'now > reply.receivedAt',
    'override',
  ),
  local(
    'forgets the limit of an operator with the counter',
    'Math.max(state.resetAfterMs, bannedForMs, overriddenForMs)',
    'Math.max(state.resetAfterMs, bannedForMs)',
    'override',
  ),
  algorithm(
    'a new limit has the old floor',
    'isSame ? (limit.floor ?? 0) : floorUnits(sized, share)',
    'limit.floor ?? 0',
    'override',
  ),
  fixed('the last unit is refused', 'cost <= limit - before', 'cost < limit - before', 'local'),
  sliding(
    'rounds the used part of the previous window down',
    'Math.ceil((previous * left) / window)',
    'Math.floor((previous * left) / window)',
    'local',
  ),
  bucket(
    'a wait is a millisecond short',
    'Math.ceil((current - target) / limit)',
    'Math.floor((current - target) / limit)',
    'local',
  ),
  bucket(
    'a clock that is set back refills the bucket',
    'Math.max(now, state.time)',
    'now',
    'local',
  ),

  splitStore(
    'refunds a call that a repeated call would find',
    'charged && !passes && !(keeps && !hasFallenBack(reply))',
    'charged && !passes',
    'idempotency',
  ),
  splitStore(
    'refunds a replay again',
    'reply.replayed ? [] : chargedIn',
    'chargedIn',
    'idempotency',
  ),
  splitStore(
    'a conflict in one part is a partial failure',
    '        !conflict &&\n',
    '',
    'idempotency',
  ),
  splitStore(
    'a reply is a replay if one part has replayed',
    'known.every(({ replayed }) => replayed)',
    'known.some(({ replayed }) => replayed)',
    'idempotency',
  ),
  splitStore(
    'the time of a decision is the latest',
    'Math.min(...answers',
    'Math.max(...answers',
    'requests',
  ),
  splitStore(
    'a refund needs the client',
    'if (plans.some(({ groups }) => groups)) options.waitUntil?.(decided)',
    '',
    'requests',
  ),
  splitStore(
    'a refused request keeps its charges',
    '          refund(fragment, reply, options)\n',
    '',
    'requests',
  ),
  splitStore(
    'a refund has the time of another limit',
    'const { decidedAt = reply.decidedAt, fallback } = states.get(limit)!',
    'const { decidedAt, fallback } = { ...states.get(limit)!, ...reply }',
    'refunds',
  ),
  splitStore(
    'one failed part is never an error',
    'const failure = conflict ?? errors[0]',
    'const failure = conflict',
    'late',
  ),
  splitStore('units of the isolate stay charged', ', ...(fallback && { fallback })', '', 'late'),
  splitStore(
    'a failed refund is not reported',
    '[...new Set(limits.map(({ subject }) => subject))], error)',
    '[...new Set(limits.map(({ subject }) => subject))])',
    'late',
  ),
]
