import { type Mutant, mutantsOf } from './mutant.ts'

const unit = 'test/unit/core/decide'
const cache = mutantsOf('src/core/decide/denial-cache.ts', unit)
const conclusion = mutantsOf('src/core/decide/conclude.ts', unit)
const decision = mutantsOf('src/core/decide/decide.ts', unit)
const fallback = mutantsOf('src/core/fallback/fallback.ts', unit)
const fallen = mutantsOf('src/core/fallback/fallback.ts', 'test/unit/core/fallback')
const limits = mutantsOf('src/core/decide/limit.ts', unit)
const settling = mutantsOf('src/core/decide/settle.ts', unit)
const shield = mutantsOf('src/features/shield/stages.ts', 'test/unit/features/shield')
const beforeShield = mutantsOf('src/core/decide/decide.ts', 'test/unit/features/shield')
const operation = mutantsOf('src/core/decide/operate.ts', unit)
const creation = mutantsOf('src/core/decide/engine.ts', unit)
const live = mutantsOf('src/features/live/live.ts', 'test/unit/features/live')
const changes = mutantsOf('src/features/overrides/documents.ts', 'test/unit/features/overrides')

/** Mutants of `src/core/decide/`. */
export const limiterMutants: Mutant[] = [
  cache(
    'caches a refusal for longer than ten seconds',
    'sentAt + Math.min(validMs, MAX_AGE_MS)',
    'sentAt + validMs',
    'denial-cache',
  ),
  cache(
    'counts the lifetime of a refusal from its reply',
    'const until = sentAt +',
    'const until = receivedAt +',
    'denial-cache',
  ),
  cache(
    'counts the wait of a refusal from its call',
    'now - entry.receivedAt',
    'now - entry.sentAt',
    'denial-cache',
  ),
  cache(
    'answers a request with another cost',
    '{ terms, partitionKey, distinct, cost, floor = 0, period }: Match)',
    '{ terms, partitionKey, distinct, floor = 0, period }: Match, cost = 1)',
    'denial-cache',
  ),
  cache(
    'answers a request with another floor',
    '{ terms, partitionKey, distinct, cost, floor = 0, period }: Match)',
    '{ terms, partitionKey, distinct, cost, period }: Match, floor = 0)',
    'denial-cache',
  ),
  cache(
    'caches a refusal below a floor',
    "if (floor && terms.algorithm !== 'fixed-window') return 0\n",
    '',
    'denial-cache',
  ),
  cache(
    'caches a refusal while units remain',
    'remaining > 0 || retryAfterMs === null',
    'retryAfterMs === null',
    'denial-cache',
  ),
  cache(
    'caches a refusal that requests in flight may refund',
    '  if (terms.settles) return 0\n',
    '',
    'denial-cache',
  ),
  cache(
    'answers in place of a limit that counts refusals towards a ban',
    "if (!entry?.state.bannedForMs && terms.penalty && terms.mode === 'enforce')",
    'if (false)',
    'denial-cache',
  ),
  cache(
    'answers under new policies that may refund',
    'if (!entry || (terms.settles && !entry.state.bannedForMs)) continue',
    'if (!entry) continue',
    'denial-cache',
  ),
  cache(
    'caches a refusal until the whole quota is free',
    'Math.min(nextAfterMs, untilPlaceMs',
    'Math.min(state.resetAfterMs, state.resetAfterMs',
    'denial-cache',
  ),
  cache(
    'caches a refusal after the limit of an operator has ended',
    'untilPlaceMs, overriddenForMs, ',
    'untilPlaceMs, ',
    'denial-cache',
  ),
  cache(
    'caches a refusal after a lease has ended',
    'terms.lease?.ttlMs ?? MAX_AGE_MS',
    'MAX_AGE_MS',
    'denial-cache',
  ),
  cache(
    'keeps a refusal in flight that was sent at the time of the refund',
    'sentAt <= (forgottenAt.get(subject) ?? allForgottenAt)',
    'sentAt < (forgottenAt.get(subject) ?? allForgottenAt)',
    'denial-cache',
  ),
  cache(
    'caches a refusal although the clock was set back',
    'if (wasClockSetBack) return',
    '',
    'denial-cache',
  ),
  cache(
    'loses refunded subjects beyond the maximum',
    '        allForgottenAt = until\n',
    '',
    'denial-cache',
  ),
  cache(
    'keeps refusals that were sent before a refund with a late clock',
    'const until = time(now)',
    'const until = now',
    'denial-cache',
  ),
  cache(
    'forgets no refusals that came after the time of a late clock',
    'time(receivedAt)',
    '',
    'denial-cache',
  ),
  cache(
    'keeps refusals in flight at a refund with a late clock',
    'find(limits, now) {\n      time(now)',
    'find(limits, now) {',
    'denial-cache',
  ),
  cache(
    'caches nothing of a refunded client after the clock was set back',
    'now < latest - MAX_AGE_MS ? now : Math.max(latest, now)',
    'Math.max(latest, now)',
    'denial-cache',
  ),
  cache(
    'does not count down a ban',
    'later.bannedForMs = left(later.bannedForMs)',
    'later.bannedForMs = state.bannedForMs',
    'denial-cache',
  ),

  conclusion(
    'reports the time of a decision that is not complete',
    'const { decidedAt, ...known } = outcome.decision',
    'const known = outcome.decision',
    'decide',
  ),
  conclusion(
    'reports the times of charges that are refunded',
    'allowed ? known.limits : known.limits.map(({ decidedAt: _, ...limit }) => limit)',
    'known.limits',
    'decide',
  ),
  conclusion(
    'falls back although another part refuses',
    'if (!known.allowed || isComplete)',
    'if (isComplete)',
    'decide',
  ),

  fallback(
    'learns from a replayed reply',
    "if (replayed || onStoreError !== 'local') continue",
    "if (onStoreError !== 'local') continue",
    'decide',
  ),
  fallback(
    'keeps the cached refusals of a refunded subject',
    'onRefund(subjects, error) // also',
    '// also',
    'decide',
  ),
  fallback(
    'leaves an error of a refund in the background unhandled',
    '.then(() => undefined, asStoreError)',
    '.then(() => undefined)',
    'decide',
  ),
  fallen(
    'learns nothing from the calls of operators',
    'if (!(reply instanceof StoreError)) learn(requests, reply, sentAt, options)',
    'if (!(reply instanceof StoreError)) options.fallback && learn(requests, reply, sentAt, options)',
    'fallback',
  ),
  fallen(
    'releases slots that a request does not take',
    'slot && cost > 0',
    'slot',
    'fallback-corrections',
  ),
  fallen(
    'refunds a refused call with an idempotency key',
    'if (late && !options.idempotency) {',
    'if (late) {',
    'fallback',
  ),
  fallback(
    'keeps a late charge after a refusal',
    'late.then(({ unmatched }) => refundAll(unmatched, options))',
    'late',
    'decide',
  ),
  fallen(
    'refunds a late charge that matches local units',
    'filter(([limit]) => !local?.matchLateCharge(limit))',
    'filter(([limit]) => local)',
    'fallback',
  ),
  fallback(
    'loses the charge in the local store',
    '...(state && isCharged && { localAt: decidedAt })',
    '',
    'decide',
  ),
  fallen(
    'charges other policies although one denies',
    "by.includes('deny') ? []",
    'false ? []',
    'fallback',
  ),
  fallback(
    'caches the refusal of a peek',
    "const isDenial = mode === 'take' && !leased",
    'const isDenial = !leased',
    'decide',
  ),
  fallen('answers a call that may not fall back', '  fallback && code', '  code', 'fallback'),
  conclusion(
    'refuses because of a shadow policy',
    "if (limit.mode !== 'enforce') continue",
    'if (false) continue',
    'decide',
  ),
  conclusion(
    'takes the state of an enforced policy for that of a shadow policy',
    "let nextShadow = requests[0]!.limits[0]!.terms.mode === 'enforce' ? 1 : 0",
    'let nextShadow = 0',
    'decide',
  ),

  decision(
    'answers a peek from the denial cache',
    "mode === 'take' ? denialCache : undefined",
    'denialCache',
    'decide',
  ),
  mutantsOf('src/core/decide/decide.ts', 'test/unit/hosts')(
    'does not count the refusal of a policy by body towards a ban',
    "penalty && mode === 'enforce'",
    'false',
    'bodies',
  ),
  beforeShield(
    'asks the shield about a peek',
    "    mode === 'take' &&\n    matches.some",
    '    matches.some',
    'shield',
  ),
  beforeShield(
    'asks the shield about a request that only shadow policies count',
    "terms.mode === 'enforce' && cost > 0",
    'cost > 0',
    'shield',
  ),
  beforeShield(
    'asks the shield about a call with an idempotency key',
    '{ ...parts, denialCache: undefined, shield: undefined }',
    '{ ...parts, denialCache: undefined }',
    'shield',
  ),
  beforeShield(
    'gives the time of the shield to the store again',
    'decideList(pending, parts, { ...options, startedAt })',
    'decideList(pending, usedParts, options)',
    'shield',
  ),
  decision(
    'leaves the store no time after a slow key function',
    'Math.max(leastMs, wholeMs - spentMs)',
    'Math.max(1, wholeMs - spentMs)',
    'decide',
  ),
  decision(
    'settles charges only if the last policy has some',
    'settles ||= limit.terms.settles',
    'settles = limit.terms.settles',
    'settle',
  ),
  decision(
    'lets a shadow policy shorten the deadline',
    'enforcedMs < Number.POSITIVE_INFINITY ? enforcedMs : shadowMs',
    'Math.min(enforcedMs, shadowMs)',
    'decide',
  ),

  limits(
    'reports the largest remaining quota',
    'one.remaining > other.remaining ? one : other',
    'one.remaining > other.remaining ? other : one',
    'limit',
  ),
  limits(
    'reports the shortest wait',
    'null : Math.max(one, other)',
    'null : one ? Math.min(one, other) : other',
    'limit',
  ),
  limits(
    'reports a wait although one quota never admits the request',
    'one === null || other === null ? null',
    'one === null || other === null ? (one ?? other)',
    'limit',
  ),
  limits(
    'names the quota that does not bind',
    'one.remaining <= other.remaining',
    'one.remaining >= other.remaining',
    'limit',
  ),
  limits(
    'combines quotas of different policies',
    'match.isFurther && match.terms.name === policy',
    'match.isFurther',
    'limit',
  ),
  limits(
    'combines two keys that a call names',
    'match.isFurther && match.terms.name === policy',
    'match.terms.name === policy',
    'limit',
  ),
  limits('reports remaining units during a ban', '  result.remaining = 0\n', '', 'limit'),
  limits('names the last of several quotas', 'if (same && binds(', 'if (!same && binds(', 'limit'),
  limits(
    'reports the longest period in place of the current one',
    'period ? period[1] - period[0] : terms.windowMs',
    'terms.windowMs',
    'limit',
  ),

  settling(
    'refunds more than the charge is',
    'Math.min(cost, Number(price))',
    'Number(price)',
    'settle',
  ),
  settling(
    'refunds responses that count',
    'response && !counts(terms, response.status)',
    'response && counts(terms, response.status)',
    'settle',
  ),
  settling(
    'loses the time of a charge',
    "mode: 'refund', limits: [{ ...limit, cost }], ...charge",
    "mode: 'refund', limits: [{ ...limit, cost }]",
    'settle',
  ),
  settling(
    'forgets the debt of a response',
    "mode: 'debt', limits: [{ ...limit, cost: -cost }]",
    "mode: 'debt', limits: [limit]",
    'settle',
  ),
  settling(
    'keeps cached refusals of units that come back',
    'denialCache?.forget(Date.now(), subjects)',
    '',
    'settle',
  ),
  settling(
    'keeps cached refusals of a ban that another one replaces',
    "if (mode === 'peek') continue",
    "if (mode === 'peek' || mode === 'ban') continue",
    'settle',
  ),
  settling(
    'forgets refusals at each response',
    'if (!isSettlement || !terms.settles) ',
    '',
    'settle',
  ),
  settling('forgets refusals at each request', "if (mode === 'peek') continue", '', 'settle'),
  settling(
    'settles a limit that onStoreError allows without a charge',
    'return mayBeCharged ? { decidedAt, fallback } : undefined',
    'return { decidedAt, fallback }',
    'settle',
  ),

  shield(
    'refuses after an answer without a result',
    'return success === false',
    'return !success',
    'shield',
  ),
  shield('calls a binding again right after a failure', 'failedAt = clock()\n', '', 'shield'),
  shield(
    'uses the keys of other applications',
    'limit({ key: `sluice:',
    'limit({ key: `',
    'shield',
  ),

  operation(
    'releases no slot of a request that costs nothing',
    'cost: Math.max(1, limit.cost)',
    'cost: limit.cost',
    'operate',
  ),
  mutantsOf('src/core/decide/operate.ts', 'test/unit/limits')(
    'settles two keys of a policy by the state of the first',
    'if (next >= 0) [state] = states.splice(next, 1)',
    'if (next >= 0) state = states[next]',
    'doors',
  ),
  mutantsOf('src/features/observe/binding.ts', 'test/unit/limits')(
    'an event names the first key of a policy',
    'own[states.indexOf(limit)]',
    'own[0]',
    'doors',
  ),
  operation(
    'keeps cached refusals after an operation',
    'for (const { requests } of sent) tellIsolate(requests, { denialCache, waiting })',
    '',
    'operate',
  ),
  operation(
    'reports a conflict of the caller as an error of the store',
    "if (failed.code !== 'idempotency-conflict') onStoreError(failed)",
    'onStoreError(failed)',
    'operate',
  ),
  operation(
    'mixes the states of several questions',
    'answered[sent.indexOf(list)]',
    'answered[lists.indexOf(list)]',
    'operate',
  ),

  mutantsOf('src/core/feature.ts', 'test/unit/core')(
    'lets the later of two features replace a stage',
    'if (owner && first !== value)',
    'if (false)',
    'feature',
  ),
  creation(
    'keeps the database after its credentials change',
    '!values?.every((value, index) => given[variables[index]!] === value)',
    '!values',
    'engine',
  ),
  creation(
    'hashes subjects with the token although there is a secret',
    "env.SLUICE_SECRET || token || 'sluice'",
    "token || env.SLUICE_SECRET || 'sluice'",
    'engine',
  ),
  creation(
    'logs calls that the open circuit has refused',
    "if (code !== 'circuit-open') log('store-error'",
    "log('store-error'",
    'engine',
  ),

  live(
    'lets an outdated document replace a newer one',
    'if (number < newestFinished) return // a later',
    '// a later',
    'live',
  ),
  live('logs a read error only once', '      lastReadError = undefined\n    }', '    }', 'live'),
  live(
    'lets a document whose parser loads replace a newer one',
    'if (number < newestFinished) return // while',
    '// while',
    'live',
  ),

  changes(
    'writes the list of limits once',
    '[list, apply, list] : [apply, list, apply]',
    '[apply, list] : [apply, list]',
    'documents',
  ),

  conclusion(
    'a refusal without a wait is admitted',
    'allowed &&= limit.allowed',
    'allowed &&= limit.retryAfterMs === 0',
    'decide',
  ),
]
