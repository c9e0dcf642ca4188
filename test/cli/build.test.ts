/** `sluice build`: a configuration as a module. */
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import * as fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { expressionOf, moduleOf, neededBy } from '../../cli/build/module.ts'
import { builtFileOf, main, staleness } from '../../cli/build.ts'
import { hostOf, hosts } from '../../cli/project/hosts.ts'
import * as exported from '../../src/built/built.ts'
import * as ofLimits from '../../src/built/limits.ts'
import { rateLimitProxy } from '../../src/built/next.ts'
import { fastifyRateLimiter, rateLimiter } from '../../src/built/node.ts'
import { parse as parseDocument } from '../../src/built/parser.ts'
import { type ConfigError, messageOf } from '../../src/core/base/errors.ts'
import type { ConfigOptions, PolicyOptions } from '../../src/core/config/options.ts'
import { owners, settingOwners } from '../../src/core/config/owners.ts'
import { type Config, parseConfig } from '../../src/core/config/parse.ts'
import { bodies } from '../../src/features/bodies/index.ts'
import * as features from '../../src/features/compile.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { jwt } from '../../src/features/jwt/index.ts'
import {
  type DecisionEvent,
  type ObserveOptions,
  observe,
} from '../../src/features/observe/index.ts'
import * as parts from '../../src/features/parts.ts'
import { turns } from '../../src/features/turns/index.ts'
import { fingerprints } from '../../src/features/verify/fingerprint.ts'
import { upstash } from '../../src/stores/upstash.ts'
import { type Drawn, drawConfig } from '../../tools/differential/configs.ts'
import { drawFrom } from '../../tools/differential/draw.ts'

const {
  built,
  Calendar,
  compared,
  createGateway,
  createSluice,
  createWorker,
  fingerprintOf,
  limiterFor,
} = exported

const parse = (options: ConfigOptions) => parseConfig(options, defaultFields)

/** Evaluates the normal form of a configuration, as its module does. */
function evaluated(config: Config, options: ConfigOptions, more: object = {}): Config {
  const names = { ...exported, ...more }
  const { text } = expressionOf(config, options)
  return new Function('options', ...Object.keys(names), `return ${text}`)(
    options,
    ...Object.values(names),
  )
}

/** Without fields that are undefined, and without what only tools read. */
function lean(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(lean)
  if (Object(value) !== value || typeof value === 'function') return value
  const fields = Object.entries(value as object).filter(
    ([name, one]) => one !== undefined && name !== 'accept' && name !== 'expect',
  )
  return Object.fromEntries(fields.map(([name, one]) => [name, lean(one)]))
}

/** A prefixed set of headers, and a feature with a maker, are made anew, so their functions are others. */
const withoutMade = ({ headers, use, ...config }: Config) => ({
  ...config,
  headers: headers.map((set) => (typeof set === 'string' ? set : set.names)),
  use: use.map((one) => (one.built ? { name: one.name, built: one.built } : one)),
})

/** In place of the maker of `observe`. */
const observing = (settings: object, destinations: object) => ({
  name: 'observe',
  built: { maker: 'observing', settings, parts: Object.keys(destinations) },
})

/** Random options of `observe`. */
const observed = fc.record<ObserveOptions>(
  {
    subjects: fc.constantFrom('hashed', 'plain'),
    to: fc.subarray(['log', 'trace', 'analytics:DATA', 'otlp:https://collector.example/metrics']),
    every: fc.constantFrom('1s', '1m'),
    webhook: fc.constant({ url: 'https://hooks.example/limits', thresholds: [50] }),
    onDecision: fc.constant(() => {}),
  },
  { requiredKeys: [] },
)

/** A random configuration, which may be invalid. */
function drawnFrom(seed: number): Drawn {
  let state = seed
  const random = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return state / 2 ** 32
  }
  return drawConfig(drawFrom(random), { has: () => true, isByDefault: () => true })
}

test('The module of a random configuration has its normal form, with the same functions and fingerprints, and the features that its fields need.', async () => {
  let valid = 0
  const claim = fc.asyncProperty(
    fc.integer({ min: 0, max: 2 ** 31 }),
    observed,
    async (seed, of) => {
      const drawn = drawnFrom(seed)
      const options = {
        ...drawn.config,
        use: [bodies(), observe(of), jwt({ secret: 'JWT_SECRET' })],
      } as unknown as ConfigOptions
      let config: Config
      try {
        config = parse(options)
      } catch {
        return
      }
      valid += 1
      const made = evaluated(config, options, { observing })
      expect(lean(withoutMade(made))).toEqual(lean(withoutMade(config)))
      expect(await fingerprints(made)).toEqual(await fingerprints(config))
      expect(neededBy(config).sort()).toEqual(neededFor(drawn.config).sort())
    },
  )
  await fc.assert(claim, { numRuns: 300 })
  expect(valid).toBeGreaterThan(50)
})

/** The parts and features that a module of a configuration has. */
const featuresFor = (config: Config) =>
  neededBy(config).map((name) => features[name as keyof typeof features])

/** Those that depend on settings alone, and not on policies. */
const OF_SETTINGS = ['denialCache', 'forwarded', 'proxies', 'shield']

/** The features that the fields of drawn options need, field by field. */
function neededFor(options: Drawn['config']): string[] {
  const { policies, refusal, clientAddress, shield, live, allow, deny, denialCache } = options
  const text = JSON.stringify([policies, shield, allow, deny])
  const has = (field: string) => policies.some((one) => one[field] !== undefined)
  const counts = (algorithm: string) => policies.some((one) => one.algorithm === algorithm)
  const isData = (value: unknown) => value !== undefined && typeof value !== 'function'
  const needs = {
    apiKeys: text.includes('"api-key"'),
    clientValues: /"(header|cookie|query):/.test(text),
    conditions:
      [allow, deny].some((list) => list !== undefined) ||
      /"path[":]|"reserve":|"match":\{"|"cost":\[|"rules":|"cost":\{"body"|"body:|"header":"x-price"/.test(
        text,
      ),
    denialCache: denialCache !== false,
    forwarded: Object(clientAddress) === clientAddress && typeof clientAddress !== 'function',
    local:
      options.unconfigured === 'local' ||
      options.api !== undefined ||
      policies.some(
        ({ algorithm, onStoreError = algorithm === 'concurrency' ? 'allow' : 'local' }) =>
          onStoreError === 'local',
      ),
    bans: has('penalty'),
    concurrency: counts('concurrency'),
    distinct: has('distinct'),
    leases: has('lease'),
    live: live !== undefined,
    overrides: has('overrides'),
    plans: has('plan') || has('limits'),
    proxies: /"trustedProxies":\[[^\]]*"(private|cloudflare)"/.test(JSON.stringify(clientAddress)),
    refusals: [refusal, ...policies.map((one) => one.refusal)].some(isData),
    settling: policies.some(
      ({ algorithm, countOnly, cost }) =>
        algorithm === 'concurrency' ||
        [countOnly, Object(cost).response, Object(cost).usage].some((one) => one !== undefined),
    ),
    shield: shield !== undefined,
    slidingLog: counts('sliding-log'),
    turns: policies.some(({ wait, mode }) => wait !== undefined && mode !== 'shadow'),
  }
  // A live document may have any field of a policy.
  const isAny = (name: string) => live !== undefined && !OF_SETTINGS.includes(name)
  return Object.entries(needs).flatMap(([name, isNeeded]) => (isNeeded || isAny(name) ? name : []))
}

describe('A field brings its feature, and no other module of a feature:', () => {
  const base = { name: 'a', limit: 5, window: '1m', onStoreError: 'allow' } as const
  const policy = (field: Partial<PolicyOptions>) => ({
    policies: [{ ...base, ...field }],
    denialCache: false,
  })
  const rows: [string, ConfigOptions, string[]][] = [
    ['none', policy({}), []],
    ['denialCache', { ...policy({}), denialCache: true }, ['denialCache']],
    ['onStoreError', policy({ onStoreError: 'local' }), ['local']],
    ['unconfigured', { ...policy({}), unconfigured: 'local' }, ['local']],
    [
      'clientAddress',
      { ...policy({}), clientAddress: { header: 'x-real-ip', trustedProxies: 1 } },
      ['forwarded'],
    ],
    ['match', policy({ match: { path: '/a' } }), ['conditions']],
    ['match by method', policy({ match: { method: 'GET' } }), ['conditions']],
    ['allow', { ...policy({}), allow: { country: 'DE' } }, ['conditions']],
    ['deny', { ...policy({}), deny: { country: 'DE' } }, ['conditions']],
    ['cost', policy({ cost: [{ method: 'GET', cost: 1 }] }), ['conditions']],
    ['cost by a header', policy({ cost: { header: 'x-price', otherwise: 1 } }), ['conditions']],
    ['reserve', policy({ reserve: [{ match: { method: 'GET' }, share: 0.5 }] }), ['conditions']],
    [
      'match by an API key',
      { ...policy({ match: { apiKey: true } }), apiKeys: { from: 'bearer', known: 'KEYS' } },
      ['apiKeys', 'conditions'],
    ],
    ['key by a header', policy({ key: 'header:x-user' }), ['clientValues']],
    [
      'onMissingKey',
      policy({ key: () => 'a', onMissingKey: { key: 'cookie:a' } }),
      ['clientValues'],
    ],
    ['key by an API key', policy({ key: 'api-key' }), ['apiKeys']],
    ['key by the path', policy({ key: 'path' }), ['conditions']],
    [
      'key by a part of the path',
      policy({ match: { path: '/:a' }, key: 'path:a' }),
      ['conditions'],
    ],
    ['penalty', policy({ penalty: 'manual' }), ['bans']],
    ['algorithm: concurrency', policy({ algorithm: 'concurrency' }), ['concurrency', 'settling']],
    ['countOnly', policy({ countOnly: ['5xx'] }), ['settling']],
    ['the price of a response', policy({ cost: { response: 'x-price', max: 9 } }), ['settling']],
    ['algorithm: sliding-log', policy({ algorithm: 'sliding-log' }), ['slidingLog']],
    ['distinct', policy({ distinct: 'header:x-user' }), ['clientValues', 'distinct']],
    ['lease', policy({ lease: { max: 5, ttl: '1s' } }), ['leases']],
    ['overrides', policy({ overrides: true }), ['overrides']],
    ['limits', policy({ plan: 'header:x-plan', limits: { pro: 9 } }), ['clientValues', 'plans']],
    [
      'tables',
      {
        ...policy({ plan: { table: 'customers', key: 'header:x-user' }, limits: { pro: 9 } }),
        tables: { customers: { u1: 'pro' } },
      },
      ['clientValues', 'plans'],
    ],
    ['wait', policy({ wait: '1s' }), ['turns']],
    ['wait, with its feature in use', { ...policy({ wait: '1s' }), use: [turns()] }, []],
    ['refusal of a policy', policy({ refusal: { status: 420 } }), ['refusals']],
    ['refusal', { ...policy({}), refusal: { status: 420 } }, ['refusals']],
    ['refusal as a function', policy({ refusal: () => new Response() }), []],
    ['headers', { ...policy({}), headers: 'github' }, ['headerSets']],
    [
      'trustedProxies',
      {
        ...policy({}),
        clientAddress: { header: 'x-real-ip', trustedProxies: ['cloudflare'] },
      } as ConfigOptions,
      ['forwarded', 'proxies'],
    ],
    [
      'shield',
      { ...policy({}), shield: { binding: 'SHIELD', limit: 5, period: '10s' } },
      ['shield'],
    ],
    [
      'live',
      { ...policy({}), live: { from: 'redis' } },
      Object.keys(features).filter((name) => !OF_SETTINGS.includes(name)),
    ],
  ]

  const root = fileURLToPath(new URL('../..', import.meta.url))
  const kebab = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  /** The files whose code is in the bundle of a middleware, without what is imported later. */
  async function filesIn(options: ConfigOptions, host = 'rateLimiter'): Promise<string[]> {
    const config = parse(options)
    const needed = neededBy(config, host === 'createGateway')
    const contents = moduleOf({ config, options, from: './none.ts', fits: [], needed })
    const { metafile } = await build({
      stdin: {
        contents: `import config, { ${host} } from 'module'; export default ${host}(config)`,
        resolveDir: root,
      },
      ...{ bundle: true, format: 'esm', write: false, metafile: true },
      define: { 'process.env.NODE_ENV': '"production"' },
      absWorkingDir: root,
      plugins: [
        {
          name: 'module',
          setup(build) {
            build.onResolve({ filter: /^module$/ }, () => ({ path: 'module', namespace: 'built' }))
            build.onLoad({ filter: /.*/, namespace: 'built' }, () => ({
              contents,
              resolveDir: root,
            }))
            build.onResolve({ filter: /^sluice\/built$/ }, () => ({
              path: join(root, 'src/built/built.ts'),
              sideEffects: false,
            }))
            build.onResolve({ filter: /none|parser$/ }, ({ path }) => ({ path, external: true }))
          },
        },
      ],
    })
    const [output] = Object.values(metafile!.outputs)
    return Object.entries(output!.inputs).flatMap(([file, { bytesInOutput }]) =>
      bytesInOutput > 0 ? [file] : [],
    )
  }
  /** The parts and features that have one of these files. */
  const partsIn = (files: string[]) => {
    const names = files.flatMap(
      (file) => /^src\/(?:core\/parts|features(?=\/[^/]+\/))\/([^/.]+)/.exec(file)?.[1] ?? [],
    )
    return [...new Set(names)].sort()
  }

  test.each(rows)('%s.', async (_, options, expected) => {
    const named = expected.filter((name) => name !== 'headerSets')
    expect(neededBy(parse(options)).sort()).toEqual([...named].sort())
    expect(partsIn(await filesIn(options))).toEqual(expected.map(kebab).sort())
  })

  test.each<[of: ObserveOptions, destinations: string[]]>([
    [{}, []],
    [{ to: 'log' }, ['reports']],
    [{ to: 'analytics:DATA' }, ['analytics', 'reports']],
    [{ to: ['log', 'otlp:https://collector.example/metrics'] }, ['otlp', 'reports']],
    [{ to: 'trace', webhook: { url: 'https://hooks.example/limits' } }, ['near-limit', 'trace']],
  ])('observe(%j) brings its destinations, and no schema.', async (of, destinations) => {
    const files = await filesIn({ ...policy({}), use: [observe(of)] })
    expect(partsIn(files)).toEqual(['observe'])
    const found = files.filter((file) =>
      /valibot|\/(analytics|near-limit|otlp|reports|trace)\./.test(file),
    )
    expect(found.sort()).toEqual(destinations.map((name) => `src/features/observe/${name}.ts`))
  })

  test('A gateway has the endpoints of operators that its policies need, and no schema.', async () => {
    const listed = policy({ penalty: { after: 5, within: '1m', ban: '1h', list: true } })
    const parts = (options: ConfigOptions) =>
      neededBy(parse(options), true).filter((name) => ['banList', 'keyLimits'].includes(name))
    expect(parts(policy({}))).toEqual([])
    expect(parts(policy({ overrides: true }))).toEqual(['keyLimits'])
    expect(parts(listed)).toEqual(['banList'])
    const others = /^src\/features\/(?!verify|endpoints)|valibot|hono\/dist/
    const filesOf = async (options: ConfigOptions) =>
      (await filesIn(options, 'createGateway')).filter((file) => others.test(file))
    expect(await filesOf(policy({}))).toEqual([])
    expect(await filesOf(policy({ overrides: true }))).toContain(
      'src/features/overrides/endpoints.ts',
    )
  })

  test('A gateway has Hono if a function gets its context. The store gets none.', async () => {
    const hono = async (options: ConfigOptions) =>
      (await filesIn(options, 'createGateway')).some((file) => file.includes('hono/dist'))
    expect(await hono({ ...policy({}), store: upstash(() => ({}) as never) })).toBe(false)
    expect(await hono(policy({ key: () => 'a' }))).toBe(true)
    expect(await hono({ ...policy({}), use: [observe({ onDecision: () => {} })] })).toBe(true)
  })

  test('A gateway without Hono answers as the one with it.', async () => {
    const origin = vi.fn(async (request: Request) => new Response(`from ${request.url}`))
    vi.stubGlobal('fetch', origin)
    const config = parse({
      ...policy({ key: 'header:x-user' }),
      unconfigured: 'local',
      origin: 'https://origin.example',
      cors: { origins: ['https://page.example'] },
    })
    const made = built({ config, features: featuresFor(config), fits: [] })
    const env = { SLUICE_API_TOKEN: 'a-token-of-at-least-16' }
    const headers = {
      Authorization: `Bearer ${env.SLUICE_API_TOKEN}`,
      Origin: 'https://page.example',
    }
    const body = JSON.stringify({ request: { url: 'https://a.example/', ip: '192.0.2.1' } })
    const sent: [path: string, init?: RequestInit, env?: object][] = [
      ['/a?b=c'],
      ['/a', { method: 'HEAD' }],
      ['/_sluice'],
      ['/_sluicex'],
      ['/_SLUICE/health'],
      ['/%5fsluice/health'],
      ['/_sluice/health', { method: 'HEAD' }],
      ['/_sluice/v1/policies'],
      ['/_sluice/v1/policies', { headers }],
      ['/_sluice/v1/decide', { method: 'POST', headers, body }],
      ['/', {}, { ORIGIN: 'nowhere' }],
      ['/', { headers: { 'cdn-loop': 'sluice, sluice, sluice' } }],
    ]
    for (const [path, init, more] of sent) {
      const answers = [createGateway(made), createWorker(made)].map(async ({ fetch }) => {
        const request = new Request(`https://www.example.com${path}`, init)
        const context = { waitUntil() {}, passThroughOnException() {}, props: {} }
        const response = await fetch(request, { ...env, ...more }, context)
        const text = (await response.text()).replace(/"decidedAt":\d+/, '')
        return { status: response.status, headers: [...response.headers], text }
      })
      const [withHono, without] = await Promise.all(answers)
      expect(without, path).toEqual(withHono)
    }
    vi.unstubAllGlobals()
    expect(origin).toHaveBeenCalled()
  })

  test('A gateway without an endpoint that its policies need is an error that names the command.', () => {
    const config = parse({ ...policy({ overrides: true }), origin: 'https://origin.example' })
    const made = built({ config, features: featuresFor(config), fits: [] })
    expect(() => createGateway(made)).toThrow('Run: npx sluice build')
  })

  test('A policy by address has no code of parts that it does not need.', async () => {
    const files = await filesIn(policy({}))
    const ofParts = ['api-key', 'fold', 'forwarded', 'names', 'path', 'source', 'values'].map(
      (name) => `src/core/request/${name}.ts`,
    )
    expect(files.filter((file) => ofParts.includes(file))).toEqual([])
    const others =
      /program\/(condition|cost|reserve)|decide\/denial-cache|core\/fallback\/(?!fallback)|calendar/
    expect(files.filter((file) => others.test(file))).toEqual([])
  })

  test('Only a calendar window brings the code of calendars.', async () => {
    const daily = policy({ algorithm: 'fixed-window', window: 'day', timeZone: 'Asia/Tokyo' })
    expect(await filesIn(daily)).toContain('src/core/base/calendar.ts')
    expect(evaluated(parse(daily), daily).policies[0]!.calendar).toEqual(
      new Calendar('day', 'Asia/Tokyo'),
    )
  })

  test('A module without a part that its configuration needs is an error that names the command.', () => {
    const env = { UPSTASH_REDIS_REST_URL: 'https://redis.example', UPSTASH_REDIS_REST_TOKEN: 't' }
    for (const [, options] of rows.filter(([, { live }]) => !live)) {
      const config = parse(options)
      for (const name of neededBy(config).filter((one) => one in parts)) {
        const others = neededBy(config).filter((one) => one !== name) as (keyof typeof features)[]
        const made = { config, features: others.map((one) => features[one]), fits: [] }
        const start = () => limiterFor(built(made)).partsOf(env)
        expect(start, name).toThrow('Run: npx sluice build')
      }
    }
  })

  test('The rows have each field of a feature.', () => {
    const fields = Object.keys({ ...owners, ...settingOwners })
    const has = (field: string) =>
      rows.some(([, options]) => field in options || field in options.policies[0]!)
    expect(fields.filter((field) => !has(field))).toEqual([])
    expect(new Set(rows.flatMap(([, , needed]) => needed))).toEqual(
      new Set([...Object.keys(features), 'headerSets']),
    )
  })
})

test('A configuration without functions needs no file besides its module.', () => {
  const options: ConfigOptions = { policies: [{ name: 'a', limit: 5, window: '1m' }] }
  const text = moduleOf({ config: parse(options), options, from: './sluice.config.ts', fits: [] })
  expect(text).not.toContain('import options')
  expect(text).toContain("import { built, compared, denialCache, local } from 'sluice/built'")
  expect(text).toContain('export { createWorker as createGateway, createSluice, rateLimiter }')
})

test('A feature with a maker needs no file besides the module, unless it has a function.', () => {
  const written = (of: ObserveOptions) => {
    const options: ConfigOptions = {
      policies: [{ name: 'a', limit: 5, window: '1m' }],
      use: [observe(of)],
    }
    return moduleOf({ config: parse(options), options, from: './sluice.config.ts', fits: [] })
  }
  const plain = written({ to: ['log', 'trace'] })
  expect(plain).not.toContain('import options')
  expect(plain).toContain('{ built, compared, denialCache, local, observing, log, trace, reports }')
  expect(plain).toContain(
    'observing({ "subjects": "hashed", "to": ["log", "trace"], "every": 10000 }, { log, trace, reports })',
  )
  const calls = written({ onDecision: () => {} })
  expect(calls).toContain('"onDecision": options["use"][0]["built"]["settings"]["onDecision"]')
  expect(calls).toContain("import options from './sluice.config.ts'")
  expect(calls).toContain('export { createGateway, createSluice, rateLimiter }')
})

test('The path of the configuration may have any character.', () => {
  const options: ConfigOptions = {
    policies: [{ name: 'a', limit: 5, window: '1m', key: () => 'x' }],
  }
  const from = "../it's \\ here/sluice.config.ts"
  const text = moduleOf({ config: parse(options), options, from, fits: [] })
  expect(text).toContain("import options from '../it\\'s \\\\ here/sluice.config.ts'")
})

test('A field that is named __proto__ stays a field.', () => {
  const headers = JSON.parse('{ "__proto__": "x" }')
  const options: ConfigOptions = {
    refusal: { headers },
    policies: [{ name: 'per-ip', limit: 1, window: '1m' }],
  }
  const made = evaluated(parse(options), options)
  expect(JSON.stringify(made.refusal)).toBe(JSON.stringify(parse(options).refusal))
  expect(JSON.stringify(made.refusal)).toContain('__proto__')
})

test('A value that the file does not have is an error.', () => {
  const options: ConfigOptions = { policies: [{ name: 'a', limit: 5, window: '1m', key: () => 1 }] }
  const other = { policies: [{ ...options.policies[0]!, key: () => 2 }] }
  expect(() => expressionOf(parse(other), options)).toThrow('a function that is not in the file')
})

test('A feature that is an object of a class is the one of the options.', () => {
  class Own {
    name = 'own'
    compile = () => ({})
    more() {}
  }
  const options: ConfigOptions = { policies: [], use: [new Own() as never] }
  const { text, usesOptions } = expressionOf(parse(options), options)
  expect(text).toContain('use: [options["use"][0]]')
  expect(usesOptions).toBe(true)
})

test('A module with other functions than at its build names the command.', () => {
  const options: ConfigOptions = { policies: [{ name: 'a', limit: 5, window: '1m', key: () => 1 }] }
  expect(compared(fingerprintOf(options), options)).toEqual({})
  const changed = { policies: [{ ...options.policies[0]!, limit: 6 }] }
  expect(() => compared(fingerprintOf(options), changed)).toThrow('Run: npx sluice build')
})

describe('In development, a module that needs no file compares itself with the configuration:', () => {
  const options: ConfigOptions = {
    unconfigured: 'local',
    clientAddress: 'socket',
    policies: [{ name: 'a', limit: 2, window: '1h' }],
  }
  const answered = async (load: () => Promise<unknown>) => {
    const config = evaluated(parse(options), options)
    const comparison = compared(fingerprintOf(options), load)
    const sluice = createSluice(
      built({ config, features: featuresFor(config), fits: [], compared: comparison }),
    )
    await load().catch(() => {})
    const runtime = { env: {}, remoteAddress: '192.0.2.1' }
    const { response } = await sluice.check(new Request('http://localhost/'), runtime)
    return response && [response.status, await response.text()].join(' ')
  }

  test('one of an older configuration refuses requests, and names the command.', async () => {
    const changed = { ...options, policies: [{ ...options.policies[0]!, limit: 1 }] }
    expect(await answered(async () => ({ default: changed }))).toMatch(
      /^500 .*sluice\.built\.ts: .*Run: npx sluice build/,
    )
  })

  test('one of this configuration decides.', async () => {
    expect(await answered(async () => ({ default: structuredClone(options) }))).toBeUndefined()
  })

  test('one without its configuration decides.', async () => {
    expect(await answered(() => Promise.reject(new Error('not found')))).toBeUndefined()
    expect(await answered(async () => ({}))).toBeUndefined()
  })
})

test('The fingerprint reads values, and the names or settings of features, and no clients.', () => {
  const client: Record<string, unknown> = new (class Client {})() as never
  client.self = client
  const store = { own: () => client, client }
  const options = { store, use: [bodies()], policies: [{ name: 'a', limit: 5, window: '1m' }] }
  const known = fingerprintOf(options)
  expect(fingerprintOf({ ...options, use: [bodies({ max: '1kb' })] })).toBe(known)
  expect(fingerprintOf({ ...options, use: [] })).not.toBe(known)
  const counting = (every: `${number}s`) => fingerprintOf({ ...options, use: [observe({ every })] })
  expect(counting('1s')).toBe(counting('1s'))
  expect(counting('1s')).not.toBe(counting('2s'))
  expect(fingerprintOf({ ...options, accept: 'no-origin' })).not.toBe(known)
})

describe('A host that lacks what a configuration needs', () => {
  const made = (fits: ('node' | 'next')[]) => {
    const options: ConfigOptions = {
      unconfigured: 'local',
      clientAddress: { header: 'x-real-ip', trustedProxies: 1 },
      policies: [{ name: 'a', limit: 1, window: '1h' }],
    }
    const config = evaluated(parse(options), options)
    return built({ config, features: featuresFor(config), fits })
  }
  test.each([
    ['node', () => rateLimiter(made(['next']))],
    ['node', () => fastifyRateLimiter(made(['next']))],
    ['next', () => rateLimitProxy(made(['node']))],
  ])('sluice/built/%s refuses its module.', (host, start) => {
    expect(start).toThrow(`The configuration needs what sluice/${host} lacks`)
  })

  test('Each other host decides with it.', async () => {
    const proxy = rateLimitProxy(made(['next']))
    const event = { waitUntil() {} }
    const request = () =>
      new Request('http://localhost/', { headers: { 'x-real-ip': '192.0.2.1' } })
    expect((await proxy(request(), event)).status).toBe(200)
    expect((await proxy(request(), event)).status).toBe(429)
    expect(rateLimiter(made(['node']))).toBeTypeOf('function')
    expect(fastifyRateLimiter(made(['node']))).toBeTypeOf('function')
  })
})

test('The parser is loaded for the first document of live policies, and knows what the host lacks.', async () => {
  const options: ConfigOptions = {
    unconfigured: 'local',
    clientAddress: 'socket',
    live: { from: 'kv:DOCUMENTS' },
    policies: [{ name: 'a', limit: 5, window: '1h' }],
  }
  const config = evaluated(parse(options), options)
  const asked: unknown[] = []
  const load = async () => {
    const { parse } = await import('../../src/built/parser.ts')
    return {
      parse: (...given: Parameters<typeof parse>) => {
        asked.push(given[1])
        return parse(...given)
      },
    }
  }
  const own = { config, features: featuresFor(config), fits: ['node' as const] }
  const made = built({ ...own, live: { options, load } })
  const limiter = limiterFor(made, 'node')
  const document = (policy: object) =>
    JSON.stringify({ policies: [{ name: 'b', limit: 1, window: '1h', ...policy }] })
  const rulesAfter = async (text: string) => {
    const waits: Promise<unknown>[] = []
    const runtime = {
      env: { DOCUMENTS: { get: async () => text } },
      context: undefined,
      waitUntil: (promise: Promise<unknown>) => void waits.push(promise),
    }
    limiter.rulesOf(runtime)
    await Promise.all(waits)
    return limiter.rulesOf(runtime).config.policies.map(({ name }) => name)
  }
  expect(asked).toEqual([])
  expect(await rulesAfter(document({}))).toEqual(['b'])
  expect(asked).toEqual(['node'])
  const usage = document({ cost: { usage: 'total_tokens', max: 9 } })
  expect(() => parseDocument({ ...JSON.parse(usage), use: [bodies()] }, 'node')).toThrow(
    'sluice/node does not see the body',
  )
})

test('A limiter of a module decides as the one of its configuration.', async () => {
  const options: ConfigOptions = {
    unconfigured: 'local',
    clientAddress: 'socket',
    policies: [{ name: 'a', limit: 2, window: '1h', key: (request) => Object(request).method }],
    use: [observe({ onDecision: ({ outcome }: DecisionEvent) => void outcomes.push(outcome) })],
  }
  const outcomes: string[] = []
  const config = evaluated(parse(options), options)
  const sluice = createSluice(built({ config, features: featuresFor(config), fits: [] }))
  const statuses = []
  for (const _ of [1, 2, 3]) {
    const { response } = await sluice.check(new Request('http://localhost/'), { env: {} })
    statuses.push(response?.status)
  }
  expect(statuses).toEqual([undefined, undefined, 429])
  expect(outcomes).toEqual(['store-error', 'store-error', 'store-error'])
})

describe('In a project', () => {
  const written = (limit: number) =>
    `export default { policies: [{ name: 'a', limit: ${limit}, window: '1m' }], clientAddress: 'socket', accept: 'no-origin' }`

  /** Runs `sluice build` in a folder with a configuration. */
  async function building(use: (run: typeof runBuild, config: string) => Promise<void>) {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-build-'))
    const log = vi.spyOn(console, 'log').mockImplementation(() => {})
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    try {
      await use(runBuild, join(folder, 'sluice.config.mjs'))
    } finally {
      log.mockRestore()
      error.mockRestore()
      await rm(folder, { recursive: true })
    }
  }

  /** @returns the exit code */
  async function runBuild(config: string, ...more: string[]): Promise<number> {
    const call = { title: 'npx sluice build', file: '', onUsageError() {} }
    await main(['--config', config, ...more], call)
    const code = Number(process.exitCode ?? 0)
    process.exitCode = 0
    return code
  }

  test('the module is written, and is stale after a change of the configuration.', () =>
    building(async (run, config) => {
      await writeFile(config, written(5))
      expect(await run(config)).toBe(0)
      const text = await readFile(builtFileOf(config), 'utf8')
      expect(text).toContain('"limit": 5')
      expect(await run(config, '--check')).toBe(0)
      await writeFile(config, written(6))
      expect(await run(config, '--check')).toBe(1)
      expect(console.error).toHaveBeenLastCalledWith(
        `sluice.built.ts is not the module of sluice.config.mjs any more. Run: npx sluice build --config ${config}`,
      )
      expect(await readFile(builtFileOf(config), 'utf8')).toBe(text)
    }))

  test('a module elsewhere is compared by the check of the project, too.', () =>
    building(async (run, config) => {
      const out = join(dirname(config), 'new/generated.ts')
      await writeFile(config, written(5))
      expect(await run(config, '--out', out)).toBe(0)
      expect(await staleness(config, await hostOf(config))).toBeUndefined()
      await writeFile(config, written(6))
      expect(await staleness(config, await hostOf(config))).toMatch(
        /^generated\.ts is not the module of sluice\.config\.mjs any more\. Run: npx sluice build --config .*sluice\.config\.mjs --out .*generated\.ts$/,
      )
    }))

  test('--check fails without a module.', () =>
    building(async (run, config) => {
      await writeFile(config, written(5))
      expect(await run(config, '--check')).toBe(1)
      expect(console.error).toHaveBeenLastCalledWith(
        `sluice.built.ts does not exist. Run: npx sluice build --config ${config}`,
      )
      expect(await staleness(config, await hostOf(config))).toBeUndefined()
    }))

  test('a module with the line ends of Windows is not stale.', () =>
    building(async (run, config) => {
      await writeFile(config, written(5))
      expect(await run(config)).toBe(0)
      const text = await readFile(builtFileOf(config), 'utf8')
      await writeFile(builtFileOf(config), text.replaceAll('\n', '\r\n'))
      expect(await run(config, '--check')).toBe(0)
    }))

  test('the module of another configuration in the folder is not compared.', () =>
    building(async (run, config) => {
      const staging = join(dirname(config), 'staging.config.mjs')
      await writeFile(config, written(5))
      await writeFile(staging, written(6))
      expect(await run(config)).toBe(0)
      expect(await staleness(staging, await hostOf(staging))).toBeUndefined()
      // Once the other is gone, it was renamed.
      await rm(config)
      expect(await staleness(staging, await hostOf(staging))).toContain('is not the module of')
    }))

  test('an import of a module that does not exist names the command.', () =>
    building(async (run, config) => {
      await writeFile(config, written(5))
      const code = `import config, { rateLimiter } from './sluice.built.ts'\nrateLimiter(config)`
      await writeFile(join(dirname(config), 'app.ts'), code)
      expect(await run(config, '--check')).toBe(1)
      expect(console.error).toHaveBeenLastCalledWith(
        `app.ts imports sluice.built.ts, which does not exist. Run: npx sluice build --config ${config}`,
      )
    }))

  test('limits are written with their names and the features of their terms.', () =>
    building(async (run, config) => {
      const limits =
        "{ invites: { limit: 5, window: '1m' }, api: { limit: 9, window: '1s', wait: '1s' } }"
      await writeFile(config, `export default { limits: ${limits}, namespace: 'shop' }`)
      expect(await run(config)).toBe(0)
      const text = await readFile(builtFileOf(config), 'utf8')
      expect(text).toContain(
        "import { built, compared, denialCache, local, turns } from 'sluice/built/limits'",
      )
      expect(text).toContain("export { limits } from 'sluice/built/limits'")
      expect(text).toContain('names: ["invites","api"]')
      expect(await run(config, '--check')).toBe(0)
      await writeFile(config, `export default { limits: ${limits} }`)
      expect(await run(config, '--check')).toBe(1)
    }))

  test.each([
    {},
    { to: 'log' },
    { to: ['analytics:DATA', 'trace', 'otlp:https://collector.example/metrics'] },
    { webhook: { url: 'https://hooks.example/limits' } },
  ] satisfies ObserveOptions[])('the entry of limits has all that observe(%j) needs.', (of) => {
    const options = { policies: [{ name: 'a', limit: 5, window: '1m' }], use: [observe(of)] }
    const from = './sluice.config.ts'
    const text = moduleOf({
      config: parse(options as ConfigOptions),
      options: options as never,
      from,
    })
    const [, names] = /import \{ (.*) \} from 'sluice\/built\/limits'/.exec(text)!
    expect(names!.split(', ').filter((name) => !(name in ofLimits))).toEqual([])
  })

  test('the problems of limits have their places in the file.', () =>
    building(async (run, config) => {
      await writeFile(
        config,
        "export default {\n  limits: {\n    a: { limit: 0, window: '1m', key: 'ip' },\n  },\n  origin: 'zone',\n}\n",
      )
      expect(await run(config)).toBe(1)
      const [[printed]] = vi.mocked(console.log).mock.calls as [[string]]
      expect(printed).toMatch(
        /:3:10 {2}invalid {2}limits\.a\.limit: expected a whole number of at least 1, got 0/,
      )
      expect(printed).toMatch(/:3:34 {2}invalid {2}limits\.a\.key: expected nothing/)
      expect(printed).toMatch(
        /:5:3 {2}invalid {2}origin: expected one of the fields .* unconfigured, namespace/,
      )
    }))

  test('a configuration that is a function names what it must be.', () =>
    building(async (run, config) => {
      await writeFile(config, 'export default (env) => ({ policies: [] })')
      expect(await run(config)).toBe(1)
      expect(vi.mocked(console.log).mock.lastCall?.[0]).toContain(
        'expected an object, got function',
      )
    }))

  test('a random invalid configuration is not written, and its problems are those that its host reports.', () =>
    building(async (run, config) => {
      const app = join(dirname(config), 'app.ts')
      const calls: [host: keyof typeof hosts, code: string][] = [
        ['gateway', ''],
        ['node', "import { rateLimiter } from 'sluice/built/node'\nrateLimiter(config)"],
        ['next', "import { rateLimitProxy } from 'sluice/built/next'\nrateLimitProxy(config)"],
      ]
      let invalid = 0
      const claim = fc.asyncProperty(
        fc.integer({ min: 0, max: 2 ** 31 }),
        fc.constantFrom(...calls),
        fc.constantFrom<unknown>(undefined, null, -1, 'x', [], {}),
        async (seed, [host, code], wrong) => {
          const { config: drawn } = drawnFrom(seed)
          const options = JSON.parse(JSON.stringify(drawn))
          const of = [options, ...options.policies][seed % (options.policies.length + 1)]
          const fields = Object.keys(of)
          of[fields[seed % fields.length]!] = wrong
          const problems = problemsFor(host, options)
          if (problems.length === 0) return
          invalid += 1
          await writeFile(app, `import config from './sluice.built.ts'\n${code}`)
          await writeFile(config, `export default ${JSON.stringify(options)}`)
          vi.mocked(console.log).mockClear()
          expect(await run(config)).toBe(1)
          const [[printed]] = vi.mocked(console.log).mock.calls as [[string]]
          const found = [...printed.matchAll(/^\S+:\d+:\d+ {2}invalid {2}(.*)$/gm)].map(
            ([, line]) => line!,
          )
          expect(found.sort()).toEqual(problems)
          expect(existsSync(builtFileOf(config))).toBe(false)
        },
      )
      await fc.assert(claim, { numRuns: 25 })
      expect(invalid).toBeGreaterThan(10)
    }))

  /** The problems that a host reports when it starts. */
  function problemsFor(host: keyof typeof hosts, options: object): string[] {
    try {
      hosts[host].parse(structuredClone(options))
      return []
    } catch (error) {
      const { problems } = error as ConfigError
      return problems.map((one) => `${one.path}: ${messageOf({ ...one, hint: '' })}`).sort()
    }
  }
})
