import { type Mutant, mutantsOf } from './mutant.ts'

const nearLimit = mutantsOf('src/features/observe/near-limit.ts', 'test/unit/features/observe')
const webhook = mutantsOf('src/features/observe/webhook.ts', 'test/unit/features/observe')
const spaceSaving = mutantsOf('src/features/observe/space-saving.ts', 'test/unit/features/observe')
const bill = mutantsOf('src/features/observe/measure.ts', 'test/unit/features/observe')
const measure = mutantsOf('src/features/observe/measure.ts', 'test/unit/features/observe')
const analytics = mutantsOf('src/features/observe/analytics.ts', 'test/unit/features/observe')
const analyticsRead = mutantsOf('cli/dashboard/analytics.ts', 'test/cli')
const otlp = mutantsOf('src/features/observe/otlp.ts', 'test/unit/features/observe')
const lastMinute = mutantsOf('src/features/observe/report.ts', 'test/cli')
const dashboardHistory = mutantsOf('cli/dashboard/history.ts', 'test/cli')
const metrics = mutantsOf('src/features/observe/metrics.ts', 'test/unit/features/observe')
const openMetrics = mutantsOf('src/features/observe/open-metrics.ts', 'test/unit/features/observe')
const counters = mutantsOf('src/features/observe/counters.ts', 'test/unit/features/observe')
const reports = mutantsOf('src/features/observe/reports.ts', 'test/unit/features/observe')
const observer = mutantsOf('src/features/observe/observer.ts', 'test/unit/features/observe')

const observeMutants: Mutant[] = [
  nearLimit(
    'a notice that failed is never sent again',
    'isDone ? Number.POSITIVE_INFINITY : clock() + RETRY_MS',
    'Number.POSITIVE_INFINITY',
    'near-limit',
  ),
  nearLimit('a share is not rounded', 'ROUNDING = 1e-9', 'ROUNDING = 0', 'near-limit-laws'),
  nearLimit(
    'leased units send no notice',
    "(decidedBy === 'store' || decidedBy === 'lease')",
    "decidedBy === 'store'",
    'near-limit',
  ),
  nearLimit(
    'the end of a window that is early by some ms is another window',
    'Math.round((decidedAt + resetAfterMs) / Math.min(1_000, windowMs))',
    'Math.floor(decidedAt + resetAfterMs)',
    'near-limit-laws',
  ),
  nearLimit('a ban sends a notice', '  !bannedForMs &&\n', '', 'near-limit'),
  nearLimit(
    'the notices of a request are sent at the same time',
    'send(notice, index, last)',
    'send(notice, index, after)',
    'near-limit',
  ),
  nearLimit(
    'thresholds are not sorted',
    '[...new Set(thresholds)].sort((one, other) => one - other)',
    '[...new Set(thresholds)]',
    'near-limit',
  ),
  webhook('a receiver that answers 408 rejects', 'status === 408 || ', '', 'webhook'),
  webhook(
    'Retry-After shortens the wait',
    'Math.max(backoffMs, answer.retryAfterMs)',
    'Math.min(backoffMs, answer.retryAfterMs)',
    'webhook',
  ),
  webhook('a delivered notice stays in flight', '      inFlight.delete(delivery)\n', '', 'webhook'),
  webhook(
    'the notices of cancelled requests stay in flight',
    'if (!isWithin(from, one.from, one.until)) inFlight',
    'if (isWithin(from, one.from, one.until)) inFlight',
    'webhook',
  ),
  webhook('redirects are followed', "redirect: 'manual'", "redirect: 'follow'", 'webhook'),
  webhook(
    'http: is accepted for any host',
    "(protocol === 'http:' && isLoopback)",
    "protocol === 'http:'",
    'webhook',
  ),
  webhook('the waits do not double', '* 2 ** attempt *', '*', 'webhook'),
  spaceSaving(
    'a new value inherits no count',
    '{ refusals: error + 1, error }',
    '{ refusals: 1, error: 0 }',
    'space-saving',
  ),
  spaceSaving('there is one entry less', 'MAX_ENTRIES = 64', 'MAX_ENTRIES = 63', 'space-saving'),
  bill('TIME is billed with the clock of the edge', 'sendsTime ? 2 : 3', '3', 'bill'),
  bill('the count of the script is ignored', 'if (counted) return', 'if (!counted) return', 'bill'),
  bill(
    'a refusal of a compiled script is billed as a write',
    "!request.includes('-')",
    'true',
    'bill',
  ),
  bill(
    'a compiled script that declines is billed as one command',
    " || cause === 'declined'",
    '',
    'bill',
  ),
  measure(
    'a conflict of idempotency keys is a failure',
    "code === 'idempotency-conflict' ||",
    '',
    'bill',
  ),
  analytics(
    'merged series lose their decisions near the limit',
    '      into.near += one.near\n',
    '',
    'analytics',
  ),
  analytics(
    'the points of the store do not count towards 25',
    'MAX_POINTS - points.length',
    'MAX_POINTS',
    'analytics',
  ),
  analytics(
    'the smallest series keep their names',
    '(a, b) => b.decisions - a.decisions',
    '(a, b) => a.decisions - b.decisions',
    'analytics',
  ),
  analyticsRead(
    'a point that stands for several counts once',
    '_sample_interval * double',
    'double',
    'dashboard-analytics',
  ),
  analyticsRead(
    'a duration counts in a lower bucket',
    '(other) => other >= bound',
    '(other) => other > bound',
    'dashboard-analytics',
  ),
  otlp('times are in µs', '(ms)}000000', '(ms)}000', 'otlp'),
  otlp('the sum of the durations is in ms', 'sum: sum / 1000', 'sum', 'otlp'),
  otlp('each report names another instance', 'instance ??=', 'instance =', 'otlp'),
  otlp('the name of the sink has the whole URL', 'new URL(url).host', 'new URL(url).href', 'otlp'),
  openMetrics('the sum is in ms', '[{}, sum / 1000,', '[{}, sum,', 'open-metrics'),
  openMetrics('an open circuit is 0', "=== 'open' ? 1 : 0", "=== 'open' ? 0 : 1", 'open-metrics'),
  lastMinute(
    'the slot in which the minute begins counts as a whole',
    'decisions: one.decisions * share',
    'decisions: one.decisions',
    'dashboard-figures',
  ),
  dashboardHistory(
    'a minute that the counts have in part replaces the whole one',
    'if (isWhole || !minutes.has(minute)) {',
    'if (true) {',
    'dashboard-history',
  ),
  metrics(
    'the near decisions of a policy are not summed',
    '(near.get(one.policy) ?? 0) + one.near',
    'one.near',
    'open-metrics',
  ),
  counters('a latency on a bound is above it', 'ms <= bound', 'ms < bound', 'counters'),
  counters('a slot takes earlier decisions', 'latest.from <= now && ', '', 'counters'),
  counters('a span ends before it begins', 'Math.max(from, now)', 'now', 'counters'),
  reports(
    'a sink that was cancelled gets no further report',
    'sentAt !== undefined && isWithin(now, sentAt, sentAt + DEADLINE_MS)) continue',
    'sentAt !== undefined) continue',
    'reports',
  ),
  observer(
    'a shielded client is no offender',
    "['limited', 'banned', 'shielded']",
    "['limited', 'banned']",
    'observer',
  ),
]

const usage = mutantsOf('src/features/bodies/usage.ts', 'test/unit/features/bodies')
const meter = mutantsOf('src/features/bodies/meter.ts', 'test/unit/features/bodies')
const allowance = mutantsOf('src/features/bodies/allowance.ts', 'test/unit/features/bodies')
const json = mutantsOf('src/features/bodies/json.ts', 'test/unit/features/bodies')
const jsonFlaw = mutantsOf('src/core/base/json-flaw.ts', 'test/unit/features/bodies')
const refusalWriter = mutantsOf('src/features/refusals/stages.ts', 'test/unit/hosts')
const refusalText = mutantsOf('src/features/refusals/stages.ts', 'test/unit/core/respond')
const jitterMutant = mutantsOf('src/features/jitter/index.ts', 'test/unit/features/jitter')
const quotaEndpoint = mutantsOf('src/features/quota/index.ts', 'test/unit/features/quota')
const quotaCaller = mutantsOf('src/features/quota/caller.ts', 'test/unit/features/quota')
const canonical = mutantsOf('src/features/bodies/json.ts', 'test/unit/features/bodies')
const errorBody = mutantsOf('src/features/bodies/error-body.ts', 'test/unit/features/bodies')
const inFlight = mutantsOf('src/features/bodies/in-flight.ts', 'test/unit/features/bodies')
const graphql = mutantsOf('src/features/graphql/graphql.ts', 'test/unit/features/graphql')

const bodiesMutants: Mutant[] = [
  inFlight(
    'keeps the bytes of a body that has ended',
    'if (all.delete(this)) held -= this.size',
    'all.delete(this)',
    'in-flight',
  ),
  inFlight(
    'never ends the bodies of cancelled requests',
    'if (one.isOld) one.end()',
    'if (one.isOld) break',
    'in-flight',
  ),
  inFlight(
    'begins a body while others use more than half of the memory',
    'hasRoom(FULL_BYTES)',
    'hasRoom(MAX_BYTES)',
    'in-flight',
  ),
  inFlight('reads on without room', 'return hasRoom(MAX_BYTES)', 'return true', 'in-flight'),
  refusalWriter(
    'a notification gets the status 200',
    'error?.isAnswer === false && ',
    'false && ',
    'refusals-by-protocol',
  ),
  refusalText(
    'a text without a value of a placeholder is sent',
    'isComplete ? text : undefined',
    'text',
    'refusal',
  ),
  jitterMutant(
    'waits are rounded down',
    'Math.ceil(ms * factor)',
    'Math.floor(ms * (factor - 0.001))',
    'jitter',
  ),
  jitterMutant(
    'each wait is longer by another part',
    'Math.ceil(ms * factor)',
    'Math.ceil(ms * (1 + Math.random() * (factor - 1)))',
    'jitter',
  ),
  quotaEndpoint('reading charges', "mode: 'peek' as const", "mode: 'take' as const", 'quota'),
  quotaEndpoint(
    'numbers of one isolate are reported',
    'if (decision.fallback)',
    'if (false)',
    'quota',
  ),
  quotaEndpoint('the endpoint has no limit', 'if (!first.allowed)', 'if (false)', 'quota'),
  quotaCaller(
    'shadow policies are public',
    "policy.mode === 'enforce' && !depends",
    '!depends',
    'quota',
  ),
  quotaCaller(
    'an exclusion of some requests excludes the sender',
    '!mentionsRequests(one)',
    'true',
    'quota',
  ),
  quotaEndpoint(
    'a missing key is a refusal',
    'if (!denied?.missing) return matched',
    'return matched',
    'quota',
  ),
  canonical(
    'a member without a value has a text',
    "isCanonical &&= value === null || typeof value === 'boolean'",
    "isCanonical &&= typeof value !== 'bigint'",
    'canonical-json',
  ),
  quotaEndpoint(
    'a policy may have the name of the limit on the endpoint',
    'if (index < 0) return',
    'return',
    'quota',
  ),
  canonical('members keep their order', '.sort()', '', 'canonical-json'),
  canonical(
    'half a surrogate pair is a text',
    '!/\\p{Surrogate}/u.test(value)',
    'true',
    'canonical-json',
  ),
  canonical('1e400 is null', 'Number.isFinite(value)', 'true', 'canonical-json'),
  errorBody(
    'a notification gets an answer',
    "Object.hasOwn(item as object, 'method') &&",
    'true &&',
    'error-body',
  ),
  errorBody('a refusal on a list looks like a limit', 'status === 429 ?', 'status ?', 'error-body'),
  errorBody(
    '100 calls are too many',
    'requests.length <= MAX_ERRORS',
    'requests.length < MAX_ERRORS',
    'error-body',
  ),
  usage('a broken-off stream is refunded', 'Math.max(this.soFar, reserved)', 'this.soFar', 'usage'),
  usage('a usage of 0 is no usage', 'value >= 0', 'value > 0', 'usage'),
  usage('a product is not rounded', 'const ROUNDING = 1e-14', 'const ROUNDING = 0', 'usage'),
  usage('a sum below 0 is a refund', 'Math.max(0, Math.ceil(units))', 'Math.ceil(units)', 'usage'),
  usage(
    'all weights are 1',
    '(this.#numbers[index] ?? 0) * weight',
    'this.#numbers[index] ?? 0',
    'usage',
  ),
  usage(
    'the events of a stream without usage cost nothing',
    'Math.max(this.#events, reserved)',
    'reserved',
    'usage',
  ),
  usage('message_start is not read', "['response', 'message']", "['response']", 'usage'),
  usage('a cost is above max', 'Math.min(units, terms.cost.max!)', 'units', 'usage'),
  meter(
    'the origin of a stream that is cut goes on',
    '    source.cancel().catch(() => {})\n    const refusal',
    '    const refusal',
    'cut',
  ),
  meter(
    'counts a part that the client did not get',
    'await target.write(bytes)',
    'target.write(bytes)',
    'bytes',
  ),
  meter(
    'charges the body of a response to HEAD',
    'metering.isSent ? answer.body : null',
    'answer.body',
    'bytes',
  ),
  meter(
    'the size has no bound',
    'Math.min(bytes, limit.terms.cost.max ?? bytes)',
    'bytes',
    'bytes',
  ),
  meter('a shadow policy ends a stream', " && terms.mode === 'enforce'", '', 'cut'),
  allowance('a stream passes max by one event', 'used >= max', 'used > max', 'cut'),
  allowance('the first usage ends a stream', 'isFirstUsage || ', '', 'cut'),
  allowance('a chunk is above max', 'Math.min(needed, max - units)', 'needed', 'cut'),
  allowance(
    'a usage above all chunks is not charged',
    'one === taken.at(-1) ? rest : Math.min(rest, one.cost)',
    'Math.min(rest, one.cost)',
    'cut',
  ),
  allowance(
    'the end of a stream names no wait',
    'allowance.refusal = { policy: name, retryAfterMs }',
    'allowance.refusal = { policy: name, retryAfterMs: null }',
    'cut',
  ),
  jsonFlaw('64 levels are too many', 'length > maxLevels', 'length >= maxLevels', 'json'),
  usage('a name with an escape is not found', '/\\\\u00[2-7]/', '/\\\\u00[89]/', 'usage'),
  json('the long s is no s', 'name.toUpperCase().toLowerCase()', 'name.toLowerCase()', 'json'),
  json(
    'inherited properties count',
    'Object.hasOwn(value as object, name)',
    '(name in value)',
    'json',
  ),
  json('a rounded number is a value', ' <= Number.MAX_SAFE_INTEGER', ' < Infinity', 'json'),
  graphql('1000 fields are too many', 'fields > MAX_FIELDS', 'fields >= MAX_FIELDS', 'cost'),
  graphql('the cheapest operation counts', '= Math.max(...(costs', '= Math.min(...(costs', 'cost'),
  graphql('a negative size counts', ' && value >= 0', '', 'cost'),
  graphql('an explicit null has the default', 'given === undefined ?', 'given == null ?', 'cost'),
  graphql('the depth is free', ' * depthFactor', '', 'cost'),
]

const claims = (file: string) => mutantsOf(`src/features/jwt/${file}.ts`, 'test/unit/features/jwt')

const jwtMutants: Mutant[] = [
  claims('claims')(
    'a token with a kid is tried with all keys',
    '(kid === undefined || key.kid === kid)',
    'true',
    'jwt-keys',
  ),
  claims('claims')('the tolerance is 6 s', 'TOLERANCE_S = 5', 'TOLERANCE_S = 6', 'jwt-claims'),
  claims('claims')('any number of keys is tried', '        .slice(0, MAX_TRIES)\n', '', 'jwt-keys'),
  claims('claims')(
    'an expired token fetches keys',
    '        if (isTokenInvalid) return undefined',
    '',
    'jwt-keys',
  ),
  claims('claims')(
    'a secret of 32 bytes is too short',
    '>= MIN_SECRET_BYTES',
    '> MIN_SECRET_BYTES',
    'jwt-algorithms',
  ),
  claims('claims')(
    'the header selects the algorithm before the fetch',
    ' || !algorithms.includes(alg)',
    '',
    'jwt-keys',
  ),
  claims('jwks')(
    'keys are renewed as often as they are retried',
    'cached ? RENEW_MS : RETRY_MS',
    'RETRY_MS',
    'jwks',
  ),
  claims('jwks')('a failure drops the keys', 'cached = keys ?? cached', 'cached = keys', 'jwks'),
  claims('jwks')(
    'requests wait while fetches in the background fail',
    '    failedAt = clock()\n    const',
    '    const',
    'jwks',
  ),
  mutantsOf('src/core/base/download.ts', 'test/unit/features/jwt')(
    'redirects are followed',
    "redirect: 'manual'",
    "redirect: 'follow'",
    'jwks',
  ),
  claims('options')(
    'a secret may have the algorithms of an issuer',
    'if (other.includes(name))',
    'if (!fitting.includes(name) && !other.includes(name))',
    'options',
  ),
]

const adapters = (file: string) => mutantsOf(`src/hosts/node/${file}.ts`, 'test/unit/hosts/node')
const client = (file: string) => mutantsOf(`src/client/${file}.ts`, 'test/unit/client')

const clientMutants: Mutant[] = [
  mutantsOf('src/core/base/ambiguous-target.ts', 'test/unit/hosts/node')(
    'an encoded dot segment passes',
    '(\\.|%2e)',
    '(\\.)',
    'node',
  ),
  mutantsOf('src/core/base/ambiguous-target.ts', 'test/unit/api')(
    'a query with dots is refused',
    ".split('?', 1)[0]!",
    '',
    'dot-segments',
  ),
  adapters('incoming')('a request may have two hosts', 'hosts.length < 2 && ', '', 'node'),
  adapters('serve')(
    'a client that disconnects counts as served',
    'NOT_HANDLED = 0',
    'NOT_HANDLED = 200',
    'node',
  ),
  adapters('serve')(
    'an app that has answered is asked to answer again',
    'if (response.headersSent) return false',
    '',
    'responses',
  ),
  adapters('serve')(
    'the fields are set on the object that they are compared with',
    'headers: new Headers(before)',
    'headers: before',
    'light-classes',
  ),
  adapters('node')(
    'a refusal replaces the cookies of the app',
    "name === 'set-cookie' ? response.appendHeader(name, value) : ",
    '',
    'servers',
  ),
  adapters('body')(
    'chunks are put back in reverse',
    '.splice(0).reverse()',
    '.splice(0)',
    'bodies',
  ),
  client('client')(
    'a redirect is followed',
    "redirect: 'manual'",
    "redirect: 'follow'",
    'client-faults',
  ),
  client('client')('every failure is logged', '    logged.add(kind)\n', '', 'client-faults'),
  client('describe')(
    'credentials can be displaced',
    'FIRST.includes(field[0]) ? 0 : size(field)',
    'size(field)',
    'client-request',
  ),
  client('describe')(
    'a URL keeps a query that is too long',
    "url.search = ''\n",
    '\n',
    'client-request',
  ),
]

const lint = (file: string) => mutantsOf(`src/lint/${file}.ts`, 'test/unit/lint')

const lintMutants: Mutant[] = [
  lint('counters')(
    'compares the counters of two namespaces',
    'config.namespace, name, key',
    'name, key',
    'counters',
  ),
  lint('counters')(
    'finds a penalty in only one configuration',
    'if (one.penalty && other.penalty) terms',
    'if (one.penalty || other.penalty) terms',
    'counters',
  ),
  lint('covers')(
    '*.a.test covers xa.test',
    'narrow.endsWith(wide.slice(1))',
    'narrow.endsWith(wide.slice(2))',
    'covers',
  ),
  lint('covers')(
    'a score covers only a smaller one',
    '(outer.below ?? 100) >= (inner',
    '(outer.below ?? 100) > (inner',
    'covers',
  ),
  lint('covers')(
    'a policy that skips some requests accompanies all',
    "    (other) =>\n      other !== policy && other.onMissingKey !== 'skip' &&",
    '    (other) =>\n      other !== policy &&',
    'trust',
  ),
  lint('shield')(
    'a sliding window admits one quota',
    "'sliding-window': (windows + 1) * limit",
    "'sliding-window': windows * limit",
    'shield',
  ),
  lint('shield')(
    'a shadow policy bounds',
    'isBound(other, policy, shield) && accompanies(other, policy, config)',
    'isBound(other, policy, shield)',
    'shield',
  ),
  lint('quota')('a cost of the limit never fits', 'units > capacity', 'units >= capacity', 'quota'),
  lint('quota')('1000 entries are a large log', 'limit <= LARGE_LOG', 'limit < LARGE_LOG', 'quota'),
  lint('trust')(
    'a /64 is a single address',
    'part.v6 <= CLIENT_BITS',
    'part.v6 < CLIENT_BITS',
    'trust',
  ),
  lint('trust')('a login that only reads fails open', 'readsOnly || ', '', 'trust'),
  lint('reserve')('the last unit is not enough', 'left >= cheapest', 'left > cheapest', 'reserve'),
  lint('trust')('a secret of 16 characters is short', '>= MIN_SECRET', '> MIN_SECRET', 'lists'),
  lint('trust')(
    'one OPTIONS makes a preflight',
    'method?.every((one)',
    'method?.some((one)',
    'lists',
  ),
]

const api = (file: string) => mutantsOf(`src/api/${file}.ts`, 'test/unit/api')

/** Faults by which a client avoids a decision with a request that is too long to describe. */
const omittedMutants: Mutant[] = [
  ['client/describe', 'header fields are left out silently', 'sent.length < all.length', 'false'],
  ['client/describe', 'a query is left out silently', "omitted.push('query')", ''],
  ['client/describe', 'a path is left out silently', "omitted.push('path')", ''],
  ['client/sent', 'a body is left out silently', "'body']", "'headers']"],
  [
    'core/program/condition',
    'an omitted path matches nothing',
    "omitted?.includes('path')",
    'false',
  ],
  [
    'core/program/condition',
    'an omitted query matches nothing',
    "omitted?.includes('query')",
    'false',
  ],
  [
    'core/program/condition',
    'an omitted field is missing',
    "omitted?.includes('headers')",
    'false',
  ],
  [
    'core/request/source',
    'an omitted part has no key',
    "view.omitted?.includes(source === 'query' ? 'query' : 'headers')",
    'false',
  ],
  ['api/described-request', 'the body of a GET is dropped', '!mayHaveBody && text', 'false'],
].map(([file, fault, search, replace]) =>
  mutantsOf(`src/${file}.ts`, 'test/unit/api')(fault!, search!, replace!, 'omitted'),
)

const target = mutantsOf('src/core/base/ambiguous-target.ts', 'test/unit/api')

const apiMutants: Mutant[] = [
  mutantsOf('src/features/bodies/read.ts', 'test/unit/core/program')(
    'a batch with a member twice costs one message',
    'items: value.length',
    'items: 1',
    'strict',
  ),
  api('call')(
    'a body with a member twice is read',
    'if (flaw) throw',
    'if (false) throw',
    'safety',
  ),
  api('forwarded')(
    'the address of the proxy counts',
    "before && last === headers.get('cf-connecting-ip') ? before : last || undefined",
    'last || undefined',
    'auth',
  ),
  target('a fragment is a part of the path', '\\x7f#]', '\\x7f]', 'dot-segments'),
  target('a backslash is a part of the path', '|\\\\/i', '/i', 'dot-segments'),
  api('forwarded')(
    'a dot segment is a part of the path',
    'if (isAmbiguous(uri))',
    'if (false)',
    'dot-segments',
  ),
  api('forward-auth')(
    'an ambiguous target is an error of the proxy',
    'return byClient ?',
    'return !byClient ?',
    'dot-segments',
  ),
  api('schema')(
    'a described path may have dot segments',
    ' && !isAmbiguous(input)',
    '',
    'dot-segments',
  ),
  api('forwarded')('the path of Envoy needs a part', 'pathname !== ENVOY && ', '', 'auth'),
  api('forward-auth')(
    'nginx gets the status 429',
    "&& rest !== '' ? 403",
    "&& rest === '' ? 403",
    'auth',
  ),
  api('forward-auth')(
    'Envoy gets 403 for 429',
    "rest.startsWith('/envoy') ? 500 : 400",
    '400',
    'auth',
  ),
  api('decide')('a refusal has the status 200', 'decision.allowed ? 200 : 429', '200', 'decide'),
  api('decide')(
    'a peek takes',
    '{ matched, mode, waitMs',
    "{ matched, mode: 'take', waitMs",
    'decide',
  ),
  api('idempotency')(
    'a key does not depend on the policies',
    'JSON.stringify([body, policies])',
    'JSON.stringify([body])',
    'decide-idempotency',
  ),
  api('idempotency')('a key has 256 characters', '{1,255}', '{1,256}', 'decide-idempotency'),
  api('operate')('a ban may be longer than max', 'banMs > penalty.maxMs', 'banMs < 0', 'operate'),
  api('operate')(
    'a policy without a penalty unbans',
    "if (mode === 'unban' && !penalty) return noBans(policy)",
    '',
    'operate',
  ),
  api('operate')(
    'a request operates on every policy',
    'terms.name === policy.name',
    'true',
    'operate',
  ),
  api('caller')(
    'a token of operations decides',
    "(operate && scopes.includes('operate'))",
    'operate',
    'safety',
  ),
  api('questions')(
    'the cost of an ask is ignored',
    ' || cost === undefined) return',
    ') return',
    'decide',
  ),
  api('refund')(
    'a refund releases no slot',
    '({ ...ask, matched })',
    '({ ...ask, slot: undefined, matched })',
    'refund',
  ),
]

const inLibraries = 'test/unit/adapters'
const adapterMutants: Mutant[] = [
  mutantsOf('src/adapters/better-auth.ts', inLibraries)(
    'a wait is shorter than announced',
    'inSeconds(retryAfterMs ?? terms.window)',
    'Math.floor((retryAfterMs ?? terms.window) / 1000) - 1',
    'better-auth',
  ),
  mutantsOf('src/adapters/express-rate-limit.ts', inLibraries)(
    'stores with other prefixes share their counters',
    'limit(this.#ready, this.prefix + key)',
    'limit(this.#ready, key)',
    'express-rate-limit',
  ),
  mutantsOf('src/adapters/nest.ts', inLibraries)(
    'the hits before a short block count after it',
    'bannedForMs === penalty.ban && penalty.ban < window',
    'false',
    'nest',
  ),
  mutantsOf('src/adapters/terms.ts', inLibraries)(
    'a wait in seconds is rounded down',
    'Math.ceil(ms / 1000)',
    'Math.floor(ms / 1000)',
    'better-auth',
  ),
]

/** Mutants of `src/features/observe/`, `src/features/bodies/`, `src/features/graphql/`, `src/features/jwt/`, `src/hosts/node/`, `src/client/`, `src/lint/` and `src/api/`. */
export const featuresMutants: Mutant[] = [
  ...adapterMutants,
  ...observeMutants,
  ...bodiesMutants,
  ...jwtMutants,
  ...clientMutants,
  ...lintMutants,
  ...apiMutants,
  ...omittedMutants,
]
