import { type Mutant, mutantsOf } from './mutant.ts'

const unit = 'test/unit/core/program'
const gateway = mutantsOf('src/core/program/match.ts', 'test/unit/hosts')
const matching = mutantsOf('src/core/program/match.ts', unit)
const condition = mutantsOf('src/core/program/condition.ts', unit)
const credentials = mutantsOf('src/core/program/conditions.ts', unit)
const key = mutantsOf('src/core/program/key.ts', unit)
const sources = mutantsOf('src/core/program/source.ts', unit)
const bodySource = mutantsOf('src/features/bodies/index.ts', unit)
const paths = mutantsOf('src/core/program/paths.ts', unit)
const plan = mutantsOf('src/core/program/plan.ts', unit)
const claims = mutantsOf('src/features/jwt/claims.ts', unit)
const cost = mutantsOf('src/core/program/conditions.ts', unit)
const parts = mutantsOf('src/core/base/part.ts', 'test/unit/core/decide')
const subject = mutantsOf('src/core/decide/subject.ts', 'test/unit/core/decide')
const address = mutantsOf('src/core/request/forwarded.ts', 'test/unit/core/request')
const trusted = mutantsOf('src/core/request/forwarded.ts', 'test/unit/features/proxies')
const path = mutantsOf('src/core/request/path.ts', 'test/unit/core/request')
const values = mutantsOf('src/core/request/values.ts', unit)
const names = mutantsOf('src/core/request/names.ts', 'test/unit/core/request')
const source = mutantsOf('src/core/request/source.ts', 'test/unit/core/request')
const view = mutantsOf('src/core/request/view.ts', unit)
const ip = mutantsOf('src/core/base/ip.ts', 'test/unit/core/base')
const lru = mutantsOf('src/core/base/lru.ts', 'test/unit/core/base')
const duration = mutantsOf('src/core/base/duration.ts', 'test/unit/core/base')
const calendar = mutantsOf('src/core/base/calendar.ts', 'test/unit/core/base')

/** Mutants of `src/core/program/`, `src/core/request/` and `src/core/base/`. */
export const matchMutants: Mutant[] = [
  credentials(
    'a credential that is not valid is none',
    'found instanceof Unusable ? undefined : found !== undefined',
    'found !== undefined && !(found instanceof Unusable)',
    'match-credentials',
  ),
  mutantsOf('src/core/program/match.ts', 'test/unit/hosts')(
    'reads the body of a client that is already refused',
    'return isRefused(matched) ? matched : read()',
    'return read()',
    'bodies',
  ),
  matching(
    'denies a path only if all of its readings are denied',
    'readings.some((one) => !mismatch(one))',
    'readings.every((one) => !mismatch(one))',
    'match-readings',
  ),
  matching(
    'allows a path if one of its readings is allowed',
    'readings.every(isCertain)',
    'readings.some(isCertain)',
    'match-readings',
  ),
  matching(
    'skips policies that an entry of allow does not name',
    'policies.includes(name))',
    'true)',
    'match-conditions',
  ),
  matching('ignores the rules of a cost', '!(sized || costOf ||', '!(sized ||', 'strict'),
  matching('ignores reserves', '|| shareOf || distinct)', '|| distinct)', 'match-reserve'),
  gateway('ignores plans', '!(sized || costOf', '!(costOf', 'plans'),
  gateway('ignores calendars', '|| policy.calendar || shareOf', '|| shareOf', 'calendar-quota'),
  matching(
    'charges readings by the largest plan',
    'one.terms.limit < known.terms.limit',
    'one.terms.limit > known.terms.limit',
    'match-readings',
  ),
  matching(
    'charges the lowest cost of the readings',
    'const highest = Math.max(',
    'const highest = Math.min(',
    'match-readings',
  ),
  matching(
    'admits a path of which one reading has no key',
    "(onMissingKey === 'refuse' || !each.some(isMatch))",
    '!each.some(isMatch)',
    'match-readings',
  ),
  matching(
    'uses the smallest reserve of the readings',
    'shareOf && Math.max(',
    'shareOf && Math.min(',
    'match-reserve',
  ),
  matching(
    'exempts a request with an unreadable part of a key',
    'lacking.every(([, , other]) => !other)',
    'lacking.some(([, , other]) => !other)',
    'match-keys',
  ),
  matching(
    'counts two functions by the same key',
    "(part.source === 'function' ? 'other' : labelOf(part))",
    'labelOf(part)',
    'match-keys',
  ),
  matching(
    'refuses a request because of a shadow policy',
    "policy.onMissingKey === 'refuse' && policy.mode === 'enforce'",
    "policy.onMissingKey === 'refuse'",
    'match-keys',
  ),

  condition(
    'takes notshop.example.com for a subdomain of shop.example.com',
    'host.endsWith(name.slice(1))',
    'host.endsWith(name.slice(2))',
    'match-conditions',
  ),
  condition(
    'includes the upper bound of bot scores',
    'score >= atLeast && score < below',
    'score >= atLeast && score <= below',
    'match-bots',
  ),
  condition(
    'takes a client without a report for no bot',
    "bot !== undefined && (bot !== '') === wanted",
    'Boolean(bot) === wanted',
    'match-bots',
  ),
  condition(
    'requires one of several headers or parameters',
    'if (known === false) return false',
    'if (known === true) return true',
    'match-bots',
  ),
  condition(
    'requires all values of a repeated parameter',
    'count === all.length || undefined',
    'count === all.length',
    'match-bots',
  ),
  condition(
    'a repeated parameter matches for certain if one value does',
    'count === all.length || undefined',
    'true',
    'strict',
  ),
  condition(
    'what is unknown in `not` exempts',
    'compileCondition(condition, options, !unknown)',
    'compileCondition(condition, options, unknown)',
    'strict',
  ),
  condition(
    'allow enters by what is unknown',
    'compileCondition(rule.condition, options, false)',
    'compileCondition(rule.condition, options)',
    'strict',
  ),
  condition(
    'only the first rule that may match counts',
    'if (rule.isCertain(view)) return [found, true]',
    'return [found, true]',
    'strict',
  ),
  values('reads no other spelling of a name', 'mayBe(key, name)', 'false', 'strict'),
  values('reads no other separator', "search.includes(';')", 'false', 'strict'),
  values('no origin misses another spelling', 'own.size === 0', 'false', 'strict'),
  values('every origin reads more than 1,000 parameters', '=== LONG)', '=== -1)', 'strict'),
  values(
    'no origin leaves out a flawed parameter',
    'if (FLAW.test(search))',
    'if (false)',
    'strict',
  ),
  values('reads no query at a ; of the path', 'pathParameters !== undefined', 'false', 'strict'),
  values('reads no other spelling of a field', 'otherSpellings(headers, name)', '[]', 'strict'),
  values('reads bytes of UTF-8 as characters', 'textOfField(value)', 'value', 'strict'),
  values('keeps control characters', '!value || !CONTROL.test(value)', 'true', 'strict'),
  values('a comma in a User-Agent ends a line', '|user-agent', '', 'strict'),
  values(
    'reads only all lines of a field',
    '[value, ...value.split',
    '[value] || [...value.split',
    'strict',
  ),
  condition(
    'excludes only requests that match all conditions of not',
    'others.every((mismatch)',
    'others.some((mismatch)',
    'match-conditions',
  ),
  condition(
    'knows no code for an unknown country',
    "view.country ?? 'XX'",
    "view.country ?? ''",
    'match-conditions',
  ),

  sources(
    'gives all clients with an object as their key one quota',
    'if (Object(value) === value) throw new TypeError()\n',
    '',
    'match-keys',
  ),
  bodySource(
    'gives each spelling of an account a quota',
    'digest ? value : folded(value)',
    'value',
    'match-keys',
  ),
  key('takes the spellings of a counted value for one', 'part === exact || ', '', 'match-keys'),
  condition('white space hides a value', 'value && trimmed(value)', 'value', 'strict'),
  paths(
    'a path may have any number of readings',
    'paths.length > MAX_READINGS',
    'false',
    'match-readings',
  ),
  key(
    'takes an empty value for a key',
    "const isMissing = value === undefined || value === null || value === ''",
    'const isMissing = value === undefined || value === null',
    'match-keys',
  ),

  claims(
    'has no upper bound for the limit of a claim',
    'Math.min(units, claim.max)',
    'units',
    'match-claims',
  ),
  claims(
    'accepts a claim of no units',
    'if (units >= 1) return {',
    'if (units >= 0) return {',
    'match-claims',
  ),
  claims(
    'accepts a claim of other digits than decimal ones',
    '/^\\d+$/',
    '/^[^.]+$/',
    'match-claims',
  ),
  plan(
    'keeps the burst of the policy',
    'policy.burstIsLimit ? limit : policy.burst',
    'policy.burst',
    'match-claims',
  ),

  cost(
    'uses the last rule that matches',
    'reached(compiled, view)',
    'reached(compiled.toReversed(), view)',
    'match-conditions',
  ),
  cost(
    'accepts the cost of any client',
    '(isTrusted ? Number(value) : byRules(view))',
    'Number(value)',
    'match-conditions',
  ),

  parts(
    'mistakes a missing part for an empty one',
    '[label, value ?? null]',
    "[label, value ?? '']",
    'subject',
  ),
  subject('cuts subjects too short', 'hmac(key, text, 12)', 'hmac(key, text, 9)', 'subject'),

  address(
    'counts one proxy too many',
    "field.split(',').at(-trustedProxies)",
    "field.split(',').at(-trustedProxies - 1)",
    'client-address',
  ),
  address(
    'knows no address of a request without the field',
    'const peer = toAddress(remoteAddress)',
    'const peer = toAddress(undefined && remoteAddress)',
    'client-address',
  ),
  trusted(
    'knows only the first network of a name',
    'networks[one] ?? one',
    'networks[one]?.[0] ?? one',
    'proxies',
  ),
  address(
    'continues before an empty entry of the field',
    "if (previous.trim() === '') return address\n",
    '',
    'client-address',
  ),
  address(
    'believes the header of a client that connects directly',
    'peer && isTrusted(peer) ? sent(connection) : peer',
    'peer ? sent(connection) : peer',
    'client-address',
  ),

  path('ignores that an origin may resolve ..;', '/;|%3b/i.test(path) ? ways : ', '', 'path'),
  path(
    'ignores that an origin may decode %2f in lower case',
    '/%(2f|5c)/i.test(path)',
    '/%(2F|5C)/.test(path)',
    'path',
  ),
  path('a target names no host', "path.startsWith('//')", 'false', 'path'),
  path('a ; does not end a path', "[path.split(';', 1)[0]!]", '[path]', 'path'),
  path('a parameter is never a part of its segment', '  [whole, whole],\n', '', 'path'),
  path('a line feed is a part of a path', 'isBlank(character))', 'false)', 'path'),
  path('a line of a path is no reading', '.split(/[\\n\\r\\u2028\\u2029]/)', '.split()', 'path'),
  path('a router resolves what was sent', "() => ''", 'whole', 'path'),
  path('does not match the path above /*', "below ? '(?:/.*)?' : ''", "below ? '/.*' : ''", 'path'),
  path('keeps empty segments', "segments.filter((segment) => segment !== '')", 'segments', 'path'),
  path('merges empty segments before `..` always', '!(merges && name', '!(name', 'path'),

  source(
    'reads the first of two different values',
    'others.some((other) => other !== first) ? UNREADABLE : (first ?? undefined)',
    'first ?? undefined',
    'source',
  ),
  source(
    'takes a token with another scheme for no token',
    'TOKEN_WORD.test(field) ? [UNREADABLE] : []',
    '[]',
    'source',
  ),
  source(
    'reads the first of two tokens after one scheme',
    'schemes === 1 && token',
    'token',
    'source',
  ),
  source('a comma never separates two lines', 'isOne ?', 'true ?', 'source'),
  source('a cookie ends at no comma', '|[\\s,]/', '/', 'source'),
  names('distinguishes letter case', "'_').toLowerCase()", "'_')", 'source'),
  names('keeps what follows a NUL', ".split('\\0', 1)[0]!", '', 'source'),
  names('keeps spaces of Unicode', "character > '~'", 'false', 'source'),
  names('reads no escape of ASP.NET', 'name.replace(/%u', 'name.replace(/%v', 'source'),
  mutantsOf('src/core/request/names.ts', unit)(
    'reads no field with a dot',
    '/[^a-z\\d]/gi',
    '/_/g',
    'match-keys',
  ),
  source('reads another spelling of a cookie as none', 'mayBe(sentName, name)', 'false', 'source'),
  source('keeps spaces of Unicode around a cookie', 'ODD_VALUE.test(sent)', 'false', 'source'),
  source('reads the JSON of cookie-parser as text', "value.startsWith('j:')", 'false', 'source'),
  source(
    'reads a cookie within another pair',
    'if (words.findLastIndex(isNamed) > 0) return UNREADABLE\n',
    '',
    'source',
  ),

  view(
    'distinguishes the letter case of methods',
    'this.request.method.toUpperCase()',
    'this.request.method',
    'match-conditions',
  ),
  view('keeps the final dot of a host', ".replace(/\\.$/, '')", '', 'match-conditions'),
  view(
    'does not report clients that are no verified bots',
    "(verifiedBot === false ? '' : undefined)",
    'undefined',
    'match-bots',
  ),
  view(
    'reports countries as they are written',
    "this.known('country')?.toUpperCase()",
    "this.known('country')",
    'match-keys',
  ),

  ip('has no client in 6to4', "hex.startsWith('2002')", 'false', 'ip'),
  ip('has a client in ::1', '0{24}(?!00)', '0{24}', 'ip'),
  ip('a list does not name the IPv6 form', 'parsed?.outer ?? parsed', 'parsed', 'ip'),
  ip('reads an octal number as a decimal one', 'digit <= 9 && byte !== 0', 'digit <= 9', 'ip'),
  ip('accepts a byte of 256', 'if (byte > 255) return -1', 'if (byte > 256) return -1', 'ip'),
  ip(
    'accepts :: for no group',
    'tail ? zeros < 1 : zeros !== 0',
    'tail ? zeros < 0 : zeros !== 0',
    'ip',
  ),
  ip(
    'excludes the first address of a network',
    'compareAddresses(ranges[middle]![0], address) <= 0',
    'compareAddresses(ranges[middle]![0], address) < 0',
    'ip',
  ),
  ip(
    'shortens a network by one that it contains',
    'else if (compareAddresses(before[1], last) < 0) before[1] = last',
    'else before[1] = last',
    'ip',
  ),
  ip(
    'accepts host bits',
    'if (first.some((byte, index) => byte & ~mask(bits, index))) return undefined\n',
    '',
    'ip',
  ),

  lru(
    'evicts an entry that just fits',
    'if (this.#size <= maxSize) break',
    'if (this.#size < maxSize) break',
    'lru',
  ),
  lru(
    'evicts the entry that was used last',
    'if (value !== undefined && this.#entries.delete(key)) this.#entries.set(key, value)',
    '',
    'lru',
  ),

  duration('accepts 0', 'milliseconds >= 1', 'milliseconds >= 0', 'duration'),
  duration(
    'refuses 1.1h',
    'Math.abs(number - Math.round(number)) < 1e-6 ? Math.round(number) : number',
    'number',
    'duration',
  ),

  calendar('starts weeks on Sunday', '(day.getUTCDay() + 6) % 7', 'day.getUTCDay()', 'calendar'),
  calendar(
    'has an empty period for a day that a zone skipped',
    'later.find((instant) => instant > end)!',
    'later[0]!',
    'calendar',
  ),
  calendar(
    'returns a period after its end',
    'now >= this.#period[1]',
    'now > this.#period[1]',
    'calendar',
  ),
  calendar('returns a period before its start', 'now < this.#period[0] || ', '', 'calendar'),
]
