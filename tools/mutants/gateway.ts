import { type Mutant, mutantsOf } from './mutant.ts'

const folder = 'test/unit/hosts'
const proxy = mutantsOf('src/hosts/worker/proxy.ts', folder)
const gateway = mutantsOf('src/hosts/worker/answering.ts', folder)
const middleware = mutantsOf('src/hosts/app/middleware.ts', folder)
const decidedRequest = mutantsOf('src/core/decided-request.ts', folder)
const settling = mutantsOf('src/core/settle-later.ts', folder)
const health = mutantsOf('src/api/health.ts', folder)
const router = mutantsOf('src/api/router.ts', folder)
const override = mutantsOf('src/features/overrides/endpoints.ts', folder)
const forwardAuth = mutantsOf('src/api/forward-auth.ts', folder)
const cors = mutantsOf('src/core/respond/cors.ts', folder)
const refusal = mutantsOf('src/core/respond/refusal.ts', folder)

/** Mutants of `src/hosts/app/`, and of the decisions in `src/api/` and `src/core/respond/`. */
export const gatewayMutants: Mutant[] = [
  proxy(
    'A field that Connection names reaches the origin',
    'HOP_BY_HOP.test(name) || further.has(name)',
    'HOP_BY_HOP.test(name)',
    'proxy',
  ),
  proxy(
    'The hop-by-hop fields of the origin reach the client',
    '    dropFields(answer.headers, hopByHopIn(answer.headers))\n',
    '',
    'proxy',
  ),
  proxy(
    'A client removes CDN-Loop by naming it in Connection',
    "request.headers.get('cdn-loop')",
    "outgoing.headers.get('cdn-loop')",
    'origin',
  ),
  proxy('Malformed chunks are answered as a late origin', 'if (isBroken)', 'if (false)', 'origin'),
  proxy('A late origin is answered as one that is down', 'signal.aborted', 'false', 'origin'),
  proxy('The fields of the client replace those of Sluice', ' ||\n    isOwn(name)', '', 'shadow'),
  proxy(
    'A client claims a path with a field that has "_"',
    'REQUEST_CLAIMS.test(dashed)',
    'REQUEST_CLAIMS.test(name)',
    'proxy',
  ),
  proxy(
    'The path of the origin keeps its last slash',
    "origin.replace(/\\/$/, '')",
    'origin',
    'base-path',
  ),
  proxy(
    'A client leaves the base path of the origin',
    "new URL(origin).pathname !== '/'",
    "new URL(origin).pathname === '/'",
    'base-path',
  ),
  proxy(
    'A GET with a body in chunks is forwarded without its body',
    "headers.has('transfer-encoding') &&",
    'false &&',
    'origin',
  ),
  gateway(
    'A request with an invalid host is an internal error',
    "if (path === '') return badHost()",
    '',
    'origin',
  ),
  proxy('A loop is detected one pass too late', '>= MAX_PASSES', '> MAX_PASSES', 'origin'),
  proxy('Entries of CDN-Loop are compared with case', '\\s*(;|$)/i', '\\s*(;|$)/', 'origin'),
  proxy(
    'The origin does not get the address of the client',
    "if (client) headers.set('X-Forwarded-For', formatAddress(client))",
    '',
    'proxy',
  ),
  proxy('The limiter reads a compressed body', 'if (isRead)', 'if (!isRead)', 'proxy'),
  gateway(
    'Another spelling of a reserved path reaches the origin',
    'const path = normalizePath(pathname)',
    'const path = pathname',
    'origin',
  ),
  gateway(
    'sends a reserved path in upper case to the origin',
    "!path.startsWith('/_sluice') ? '/_sluice' : path",
    'false ? path : path',
    'origin',
  ),
  gateway(
    'The values of a key are decoded before they are split',
    ' || KEYS.test(pathname)',
    '',
    'overrides',
  ),
  gateway(
    'A valid origin hides later invalid ones',
    'origin === lastValidOrigin',
    'lastValidOrigin !== undefined',
    'origin',
  ),
  gateway(
    'A Worker without an origin is healthy',
    "origin === undefined && isOpen('api', env)",
    'origin === undefined',
    'health',
  ),
  proxy(
    'The origin does not see what shadow policies would refuse',
    'shadowField(decision)',
    '{}',
    'shadow',
  ),
  gateway(
    'Pages cannot read the problem of a failed origin',
    'originTimeoutMs, finishProblem',
    'originTimeoutMs, (answer) => answer',
    'headers',
  ),
  decidedRequest(
    'The log does not name the shadow policy',
    "log('shadow-refused', policy,",
    "log('shadow-refused', '',",
    'shadow',
  ),
  settling(
    'A response to HEAD never releases its slot',
    "method !== 'HEAD'",
    "method !== 'OPTIONS'",
    'outcomes',
  ),
  middleware(
    'A handler that throws a text keeps its slot',
    '        checked.settle(failed())\n',
    '',
    'outcomes',
  ),
  settling(
    'A charge is settled by the status 200 always',
    'now(response)',
    'now({ status: 200, headers })',
    'outcomes',
  ),
  middleware(
    'An app does not learn the decision on a request that passes',
    "      c.set('rateLimit', decision)\n      try {",
    '      try {',
    'penalties',
  ),
  health('One problem is healthy', 'problems.length === 0', 'problems.length < 2', 'health'),
  health(
    'A token for decisions reads the policies',
    "callerOf(token, ['operate'], env)",
    "callerOf(token, ['operate', 'api'], env)",
    'health',
  ),
  mutantsOf('src/core/decide/database.ts', 'test/unit/hosts')(
    'Any URL is that of the REST API',
    '!isRestUrl(url)',
    '!url',
    'health',
  ),
  router(
    'Each method may call an endpoint',
    'if (methods && !methods.includes(request.method))',
    'if (methods && !request.method)',
    'overrides',
  ),
  mutantsOf('src/api/caller.ts', folder)(
    'A token for decisions may operate',
    "(api && scopes.includes('api'))",
    'api',
    'reports',
  ),
  mutantsOf('src/api/decide.ts', folder)(
    'A peek counts as a decision',
    "if (ask.mode === 'peek') return //",
    '//',
    'reports',
  ),
  mutantsOf('src/api/idempotency.ts', folder)(
    'A repeated call is charged again',
    'if (key === null) return undefined',
    'return undefined',
    'namespaces',
  ),
  mutantsOf('src/core/program/explicit-key.ts', folder)(
    'A key may lack values',
    'values.length !== labels.length',
    'values.length > labels.length',
    'overrides',
  ),
  override('A limit of operators has no bound', 'body.limit > most', 'false', 'overrides'),
  override('Any text is a subject', 'if (/^[', 'if (/[', 'overrides'),
  forwardAuth(
    'a proxy admits a refused call of JSON-RPC',
    'withoutBody(request), rules',
    'request, rules',
    'refusals-by-protocol',
  ),
  forwardAuth('A proxy gets 403 for each refusal', "refused && rest !== ''", 'refused', 'refusals'),
  forwardAuth(
    'Envoy gets 403 for a 429',
    "rest.startsWith('/envoy') ? 500 : 400",
    '400',
    'refusals',
  ),
  forwardAuth(
    "nginx gets a refusal's type without its body",
    "if (bare) headers.delete('Content-Type')",
    '',
    'refusals',
  ),
  decidedRequest(
    'Each response of the origin is opened',
    '!this.passes && this.circumstances.limiter.config.cors',
    'this.circumstances.limiter.config.cors',
    'headers',
  ),
  cors('A wildcard depends on the page', "if (allow !== '*') add", 'add', 'headers'),
  refusal(
    'The refusal of the configuration never applies',
    '[ofPolicy, ofAll]',
    '[ofPolicy]',
    'refusals',
  ),
  refusal(
    'A function answers a request that is denied',
    "(isOverLimit || typeof one !== 'function')",
    'true',
    'refusal',
  ),
  refusal(
    'A request without its key does not get the refusal of its policy',
    '? by : limit?.policy',
    '? undefined : limit?.policy',
    'refusals',
  ),
  mutantsOf('src/core/respond/refusal.ts', 'test/unit/core/respond')(
    'A client without Accept gets a page',
    "get('accept') ?? ''",
    "get('accept') ?? 'text/html'",
    'refusal',
  ),
]
