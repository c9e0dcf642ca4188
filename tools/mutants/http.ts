import { type Mutant, mutantsOf } from './mutant.ts'

const unit = 'test/unit/core/respond'
const refusal = mutantsOf('src/core/respond/refusal.ts', unit)
const response = mutantsOf('src/core/respond/response.ts', unit)
const quantities = mutantsOf('src/core/respond/ratelimit-fields/sets.ts', unit)
const sets = mutantsOf('src/core/respond/ratelimit-fields/sets.ts', unit)
const older = mutantsOf('src/features/header-sets/sets.ts', unit)
const values = mutantsOf('src/features/header-sets/sets.ts', unit)
const existing = mutantsOf('src/core/respond/ratelimit-fields/structured.ts', unit)
const merging = mutantsOf('src/core/respond/ratelimit-fields/merge.ts', unit)
const cors = mutantsOf('src/core/respond/cors.ts', unit)
const page = mutantsOf('src/core/respond/page.ts', unit)
const waits = mutantsOf('src/core/base/duration.ts', unit)

/** Mutants of `src/core/respond/`. */
export const httpMutants: Mutant[] = [
  response(
    'gives problem documents with equal fields the same Headers',
    'answer.headers === headers ?',
    'false ?',
    'response',
  ),
  response(
    'keeps the fields of a problem document by their values alone',
    '{name}\\n$',
    "{''}$",
    'response',
  ),
  refusal(
    'sends a response of a function that was read',
    "!(answer.status >= 400 || typeof own === 'object') || answer.bodyUsed",
    "!(answer.status >= 400 || typeof own === 'object')",
    'refusal',
  ),
  refusal(
    'sends a redirect of a function',
    'answer.status >= 400',
    'answer.status >= 300',
    'refusal',
  ),
  refusal(
    'takes an entry of deny for a policy with its name',
    'Object.keys(lacking).length > 0 ? by : limit?.policy',
    'by ?? limit?.policy',
    'refusal',
  ),
  refusal('sends a page to a client that names JSON', ' && !/json/i.test(accept)', '', 'refusal'),
  refusal('leaves Retry-After to the function', '{ ...retryAfter(decision), ', '{ ', 'refusal'),

  response(
    'writes the name of a policy into the document as it is',
    'JSON.stringify(policy)',
    "'\"' + policy + '\"'",
    'response',
  ),
  response(
    'reports the wait for a slot as Retry-After',
    '(hasSlots(limit) ? limit.bannedForMs : limit.retryAfterMs) ?? 0',
    'limit.retryAfterMs ?? 0',
    'response',
  ),
  response(
    'reports requests in flight although a window refuses longer',
    'waitMs! < retryAfterMs',
    'waitMs! <= retryAfterMs',
    'response',
  ),
  response(
    'names a shadow policy as violated',
    "mode === 'enforce' && !allowed",
    '!allowed',
    'response',
  ),
  response('blames the deny list for a missing key', 'if (missing)', 'if (false)', 'response'),

  quantities(
    'rounds seconds down',
    'Math.ceil(milliseconds / 1000)',
    'Math.floor(milliseconds / 1000)',
    'response',
  ),
  quantities(
    'reports a unit later than Retry-After',
    'retryAfterMs ? Math.min(nextAfterMs, retryAfterMs) : nextAfterMs',
    'nextAfterMs',
    'response',
  ),
  values(
    'reports a reset before Retry-After',
    'seconds(Math.max(resetAfterMs, retryAfterMs ?? 0))\n',
    'seconds(resetAfterMs)\n',
    'ratelimit-fields-sets',
  ),
  values(
    'counts units that are kept free as used',
    ' - (state.reserved ?? 0)',
    '',
    'ratelimit-fields-sets',
  ),
  values(
    'reports less than 0 units as used',
    'Math.max(0, limit(state)',
    'Math.max(-Infinity, limit(state)',
    'ratelimit-fields-sets',
  ),
  quantities(
    'reports a window that is not whole seconds',
    'unit !== SLOTS && windowMs % 1000 === 0',
    'unit !== SLOTS',
    'response',
  ),

  sets(
    'reports the limit that refuses shortest',
    'const by = allowed ? rank : refusing',
    'const by = rank',
    'refusal',
  ),
  sets(
    'reports a wait in place of a cost that never fits',
    '-(retryAfterMs ?? Number.POSITIVE_INFINITY)',
    '-(retryAfterMs ?? 0)',
    'refusal',
  ),
  sets(
    'reports the earliest reset of equals',
    'wait(state) > wait(first)',
    'wait(state) < wait(first)',
    'ratelimit-fields-sets',
  ),
  older(
    'lists the shortest window of equal quotas',
    'a.windowMs - b.windowMs',
    'b.windowMs - a.windowMs',
    'ratelimit-fields-sets',
  ),
  sets(
    'reports a shadow policy',
    "state.mode !== 'enforce' || state.allowed !== allowed",
    'state.allowed !== allowed',
    'ratelimit-fields-sets',
  ),

  merging(
    'replaces the fields of an origin with as much remaining',
    'remainingIn(headers) <= remaining',
    'remainingIn(headers) < remaining',
    'ratelimit-fields-origin',
  ),
  merging(
    'joins lists that name the same policy',
    'names(existing)?.every((policy) => !added.has(policy))',
    'names(existing)?.every(() => true)',
    'ratelimit-fields-origin',
  ),
  merging(
    'appends to an empty field',
    'if (headers.get(name)) headers.append',
    'if (headers.has(name)) headers.append',
    'ratelimit-fields-origin',
  ),
  merging(
    'keeps fields that contradict the added ones',
    'for (const name of set.companions) headers.delete(name)\n',
    '',
    'ratelimit-fields-origin',
  ),
  existing(
    'ignores the remaining units of draft-6',
    "leastIn(headers, 'RateLimit-Remaining')",
    'Number.POSITIVE_INFINITY',
    'ratelimit-fields-origin',
  ),
  existing(
    'reads the last of several numbers',
    'Math.min(least, Number(value))',
    'Number(value)',
    'ratelimit-fields-origin',
  ),

  cors(
    'adds Vary for any origin',
    "if (allow !== '*') add(headers, 'Vary'",
    "add(headers, 'Vary'",
    'cors',
  ),
  cors(
    'takes * for a wildcard in a response with credentials',
    "headers.get(ALLOW_CREDENTIALS) === 'true' ? undefined : '*'",
    "'*'",
    'cors',
  ),
  cors(
    'adds names to a malformed list',
    "wellFormed ? list.filter((name) => name !== '') : []",
    "list.filter((name) => name !== '')",
    'cors',
  ),
  cors(
    'allows an origin that is not configured',
    '(one) => origins.includes(one)',
    '(one) => one === page',
    'cors',
  ),
  mutantsOf('src/core/decided-request.ts', unit)(
    'allows origins to read responses of the origin server',
    '!this.passes && this.circumstances.limiter.config.cors',
    'this.circumstances.limiter.config.cors',
    'cors',
  ),

  waits('counts 120 seconds in minutes', 'ms > 2 * size', 'ms >= 2 * size', 'page'),
  page('does not escape quotes', '/[&<>"\']/g', '/[&<>]/g', 'page'),
]
