/** A configuration is judged as its host runs it. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hostOf, hosts, writtenFrom } from '../../cli/project/hosts.ts'
import { ConfigError } from '../../src/core/base/errors.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { createSluice } from '../../src/hosts/app/sluice.ts'
import { fastifyRateLimiter } from '../../src/hosts/node/fastify.ts'
import { rateLimitProxy } from '../../src/hosts/node/next.ts'
import { rateLimiter as ofNode } from '../../src/hosts/node/node.ts'
import { createGateway, rateLimiter } from '../../src/index.ts'
import { lintApp, lintWorker } from '../../src/lint/lint.ts'
import { redis } from '../../src/stores/redis.ts'
import { root, sluice } from '../support/dev-command.ts'
import { evaluate } from '../support/entries.ts'
import { blocksOf, pages } from '../support/pages.ts'
import * as drawn from '../support/replay-configs.ts'

/** The functions of each host, which throw when the configuration is not for them. */
const starts: Record<keyof typeof hosts, ((options: never) => unknown)[]> = {
  gateway: [createGateway],
  app: [createSluice, rateLimiter],
  node: [ofNode, fastifyRateLimiter],
  next: [rateLimitProxy],
}

/** The problems that a host has with a configuration. */
function problemsOf(start: (options: never) => unknown, options: object): string[] {
  try {
    start({ unconfigured: 'local', ...options } as never)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ path, expected }) => `${path}: ${expected}`)
  }
}

/** Each host has the problems that the check finds. */
function expectAgreement(options: object): number {
  let found = 0
  for (const [name, { parse }] of Object.entries(hosts)) {
    const judged = problemsOf(parse, options)
    for (const start of starts[name as keyof typeof hosts]) {
      expect(problemsOf(start, options), `${name} ${start.name}`).toEqual(judged)
    }
    found += judged.length
  }
  return found
}

/** The argument of a call, which begins at this place of a code. */
function argumentAt(code: string, start: number): string {
  let depth = 0
  for (let end = start; end < code.length; end += 1) {
    if ('({['.includes(code[end]!)) depth += 1
    else if (')}]'.includes(code[end]!)) depth -= 1
    if (depth < 0 || (depth === 0 && code[end] === ',')) return code.slice(start, end)
  }
  throw new Error(`The call has no end: ${code}`)
}

const CALL =
  /\b(defineConfig|createGateway|rateLimiter|createSluice|fastifyRateLimiter|rateLimitProxy)\((?=\{)/g

/** The host that the call of a guide names. A configuration with an origin is one of a gateway, another one of any app. */
function hostsOf(call: string, code: string, { origin, clientAddress }: ConfigOptions) {
  if (call === 'createGateway') return [hosts.gateway]
  if (call === 'rateLimitProxy') return [hosts.next]
  if (call === 'createSluice') return [hosts.app]
  if (call !== 'defineConfig') return [code.includes("'sluice/node'") ? hosts.node : hosts.app]
  if (origin !== undefined) return [hosts.gateway]
  return clientAddress === undefined ? [hosts.app] : [hosts.app, hosts.node]
}

/** A client of the app. */
const client = { sendCommand() {} }

/** Each configuration of a guide, with the call that gets it. */
const written = pages
  .filter(({ path }) => path.startsWith('docs/guides/'))
  .flatMap(blocksOf)
  .filter(({ language }) => language === 'ts')
  .flatMap(({ page, line, code }) =>
    [...code.matchAll(CALL)].map((found) => {
      const argument = argumentAt(code, found.index + found[0].length)
      const text = stripTypeScriptTypes(`const options = ${argument}`)
      const options: ConfigOptions = evaluate(`${text}\nreturn options`, { redis, client })
      return { place: `${page}:${line}`, call: found[1]!, code, options }
    }),
  )

describe('what the check finds is what the host says when it starts', () => {
  test('The guides have configurations for each host.', () => {
    const named = written.flatMap(({ call, code, options }) => hostsOf(call, code, options))
    expect(written.length).toBeGreaterThan(40)
    expect(new Set(named)).toEqual(new Set(Object.values(hosts)))
  })

  test.each(written.map((one) => [one.call, one.place, one] as const))(
    'The configuration of %s in %s starts in each host that it names, without a finding, and has the same problems in the check and in each host.',
    (call, _, { code, options }) => {
      for (const host of hostsOf(call, code, options)) {
        const { isGateway, parse } = host
        expect(isGateway ? lintWorker(options, {}, parse) : lintApp(options, parse)).toEqual([])
      }
      expectAgreement(options)
    },
  )

  test.each(written.map((one) => [one.call, one.place, one.options] as const))(
    'The configuration of %s in %s has no field that only another host knows.',
    (_, __, { origin, ...options }) => {
      for (const start of [createGateway, ...starts.app])
        expect(problemsOf(start, options)).toEqual([])
    },
  )

  test('Any configuration has the same problems in the check and in each host, with and without features.', () => {
    let found = 0
    const property = fc.property(drawn.configs, fc.boolean(), (options, isWhole) => {
      found += expectAgreement({ ...options, ...(isWhole && drawn.plugins) })
    })
    fc.assert(property, { numRuns: 60 })
    expect(found).toBeGreaterThan(60)
  })
})

describe('npx sluice check in a project', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(root, 'node_modules/.cache/sluice-check-'))
  })
  afterAll(() => rm(folder, { recursive: true }))
  const write = async (name: string, text: string) => {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  const check = () => sluice(['check', '--config', join(folder, 'src/limits.ts')])

  test('An app needs no origin, and what a host lacks is found.', async () => {
    const policy = "name: 'a', limit: 5, window: '1m', algorithm: 'concurrency'"
    await write('package.json', '{}')
    await write('src/limits.ts', `export default { policies: [{ ${policy} }] }`)
    await write('src/app.ts', "import limits from './limits'\nrateLimiter(limits) // of 'sluice'\n")
    expect(await check()).toMatchObject({ code: 1, stdout: expect.stringMatching(/no-origin/) })
    await write(
      'src/app.ts',
      "import { rateLimiter } from 'sluice'\nimport limits from './limits'\nrateLimiter(limits)\n",
    )
    const asApp = 'src/app.ts calls rateLimiter.\n'
    expect(await check()).toMatchObject({ code: 0, stdout: expect.stringContaining(asApp) })
    const explain = () =>
      sluice(['explain', '--path', '/', '--config', join(folder, 'src/limits.ts')])
    expect((await explain()).stdout).toMatch(
      /\nNote: judged as an app: src\/app\.ts calls rateLimiter\.\n$/,
    )
    await write(
      'src/app.ts',
      "import { rateLimitProxy } from 'sluice/next'\nimport limits from './limits'\nrateLimitProxy(limits)\n",
    )
    const { code, stdout } = await check()
    expect(code).toBe(1)
    expect(stdout).toMatch(/invalid {2}policies\[0\]\.algorithm: expected an algorithm that counts/)
    expect(stdout).not.toContain('no-origin')
    const asProxy = /\nJudged as a proxy of Next\.js: src\/app\.ts calls rateLimitProxy\.\n$/
    expect(stdout).toMatch(asProxy)
    expect((await explain()).stderr).toMatch(asProxy)
  })

  test('The configuration of wrangler is found in the root of the project, and the check says where it looked.', async () => {
    await write(
      'src/limits.ts',
      `export default {
        origin: 'zone',
        shield: { binding: 'RL', limit: 100, period: '10s' },
        policies: [{ name: 'a', limit: 5, window: '1m' }],
      }`,
    )
    await write('src/app.ts', '')
    const { stdout } = await check()
    expect(stdout).toMatch(
      /^✗ bindings\nshield\.binding: no wrangler\.json, wrangler\.jsonc or wrangler\.toml in \S+\/src or \S+$/m,
    )
    await write(
      'wrangler.toml',
      'name = "a"\n[[ratelimits]]\nname = "RL"\nnamespace_id = "1"\nsimple = { limit = 100, period = 10 }\n',
    )
    expect(await check()).toMatchObject({ code: 0 })
  }, 120_000) // loads wrangler
})

describe('the host of a project', () => {
  let folder: string
  let count = 0
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-hosts-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  /** The host of sluice.config.ts in a project with these files. */
  async function hostFor(
    files: Record<string, string>,
    config = 'sluice.config.ts',
    place = 'shop',
  ) {
    const project = join(folder, `${count++}`, place)
    const all = { 'package.json': '{}', [config]: 'export default {}', ...files }
    for (const [name, text] of Object.entries(all)) {
      await mkdir(dirname(join(project, name)), { recursive: true })
      await writeFile(join(project, name), text)
    }
    return hostOf(join(project, config))
  }
  const sentenceFor = async (...given: Parameters<typeof hostFor>) =>
    (await hostFor(...given)).sentence
  const from = (name: string, entry = 'sluice', config = './sluice.config') =>
    `import { ${name} } from '${entry}'\nimport config from '${config}'\nexport default ${name}(config)\n`

  test.each<[string, string, string]>([
    ['createGateway', 'sluice', 'a gateway: index.ts calls createGateway'],
    ['rateLimiter', 'sluice', 'an app: index.ts calls rateLimiter'],
    ['createSluice', 'sluice', 'an app: index.ts calls createSluice'],
    ['rateLimiter', 'sluice/node', 'an app of Node: index.ts calls rateLimiter of sluice/node'],
    ['fastifyRateLimiter', 'sluice/node', 'an app of Node: index.ts calls fastifyRateLimiter'],
    ['rateLimiter', 'sluice/built', 'an app: index.ts calls rateLimiter'],
    [
      'rateLimiter',
      'sluice/built/node',
      'an app of Node: index.ts calls rateLimiter of sluice/built/node',
    ],
    ['rateLimitProxy', 'sluice/built/next', 'a proxy of Next.js: index.ts calls rateLimitProxy'],
    ['rateLimitProxy', 'sluice/next', 'a proxy of Next.js: index.ts calls rateLimitProxy'],
  ])(
    'A file that calls %s of %s with the configuration names the host.',
    async (name, entry, said) => {
      expect(await sentenceFor({ 'index.ts': from(name, entry) })).toBe(`Judged as ${said}.`)
    },
  )

  test('A gateway beside an app is known, wherever it imports the configuration.', async () => {
    const app = { 'app.ts': from('rateLimiter') }
    expect((await hostFor(app)).hasGateway).toBe(false)
    const gateway = { 'config/index.ts': `export * from '../sluice.config'\n` }
    const both = {
      ...app,
      ...gateway,
      'src/gateway.ts': from('createGateway', 'sluice', '../config'),
    }
    const host = await hostFor(both)
    expect([host.key, host.hasGateway]).toEqual(['app', true])
    expect((await hostFor({})).hasGateway).toBe(true)
  })

  test('A folder above the project may have the name of one for tests.', async () => {
    const said = sentenceFor({ 'index.ts': from('rateLimiter') }, undefined, 'tests/shop')
    expect(await said).toBe('Judged as an app: index.ts calls rateLimiter.')
  })

  test('A configuration that no file imports is judged as that of a gateway.', async () => {
    expect(await sentenceFor({})).toMatch(/^Judged as a gateway: no file imports it/)
  })

  test.each([
    ['sluice.built.ts', 'generated/limits.ts'],
    ['generated/limits.ts', 'sluice.built.ts'],
  ])(
    'A module %s of sluice build is no importer beside %s; what imports it is.',
    async (module, other) => {
      const moduleIn = (path: string) =>
        `${writtenFrom(path.includes('/') ? '../sluice.config.ts' : './sluice.config.ts')}
import { built } from 'sluice/built'
import options from '${path.includes('/') ? '../' : './'}sluice.config.ts'
export { createGateway, rateLimiter } from 'sluice/built'
export default built({ config: options })
`
      const modules = { [module]: moduleIn(module), [other]: moduleIn(other) }
      expect(await sentenceFor(modules)).toMatch(/^Judged as a gateway: no file imports it/)
      const server = `import config, { rateLimiter } from './${module}'\nrateLimiter(config)\n`
      expect(await sentenceFor({ ...modules, 'server.ts': server })).toBe(
        'Judged as an app: server.ts calls rateLimiter.',
      )
      const gateway = server.replaceAll('rateLimiter', 'createGateway')
      expect(await sentenceFor({ ...modules, 'server.ts': gateway })).toBe(
        'Judged as a gateway: server.ts calls createGateway.',
      )
    },
  )

  test('A configuration with limits, and without policies, is judged as limits, whatever imports it.', async () => {
    const config = 'export default { limits: {} }'
    for (const files of [{}, { 'index.ts': from('rateLimiter') }])
      expect(await sentenceFor({ ...files, 'sluice.config.ts': config })).toBe(
        'Judged as limits by name and key: it has limits, and no policies.',
      )
  })

  test.each<[string, Record<string, string>, string?]>([
    [
      'with the extension of the output',
      { 'index.ts': from('rateLimiter', 'sluice', './sluice.config.js') },
    ],
    [
      'with its own extension',
      { 'index.mts': from('rateLimiter', 'sluice', './sluice.config.ts') },
    ],
    [
      'from another folder',
      { 'src/server/app.ts': from('rateLimiter', 'sluice', '../../sluice.config') },
    ],
    ['by an alias', { 'src/app.ts': from('rateLimiter', 'sluice', '@/sluice.config') }],
    [
      'in a folder below',
      { 'src/app.ts': from('rateLimiter', 'sluice', './limits') },
      'src/limits.ts',
    ],
    [
      'as an index',
      { 'src/app.ts': from('rateLimiter', 'sluice', './limits') },
      'src/limits/index.ts',
    ],
    [
      'with require',
      {
        'app.cjs':
          "const { rateLimiter } = require('sluice')\nconst config = require('./sluice.config')\napp.use(rateLimiter(config))\n",
      },
    ],
    [
      'with another name',
      {
        'app.ts':
          "import { rateLimiter as limit } from 'sluice'\nimport config from './sluice.config'\napp.use(limit(config))\n",
      },
    ],
    [
      'with a type argument',
      { 'app.ts': from('rateLimiter').replace('rateLimiter(', 'rateLimiter<{ Bindings: Env }>(') },
    ],
    [
      'with a type argument that has brackets',
      {
        'app.ts': from('rateLimiter').replace(
          'rateLimiter(',
          'rateLimiter<{ Variables: { user: (name: string) => void } }>(',
        ),
      },
    ],
    [
      'with a namespace',
      {
        'app.ts':
          "import * as sluice from 'sluice'\nimport config from './sluice.config'\napp.use(sluice.rateLimiter(config))\n",
      },
    ],
    [
      'and names createGateway in a text and behind code',
      {
        'app.ts': `${from('rateLimiter')}console.log('not createGateway(config)') // nor createGateway(config)\n`,
      },
    ],
    [
      'through another file',
      {
        'src/limits.ts':
          "import config from '../sluice.config'\nexport const limits = { ...config }\n",
        'src/app.ts': from('rateLimiter', 'sluice', './limits'),
      },
    ],
  ])(
    'The file of an app is found if it imports the configuration %s.',
    async (_, files, config) => {
      expect(await sentenceFor(files, config)).toMatch(
        /^Judged as an app: \S+ calls rateLimiter\.$/,
      )
    },
  )

  test.each<[string, Record<string, string>]>([
    ['a test', { 'test/app.test.ts': from('rateLimiter', 'sluice', '../sluice.config') }],
    ['a spec beside it', { 'app.spec.ts': from('rateLimiter') }],
    [
      'a package',
      { 'node_modules/a/index.ts': from('rateLimiter', 'sluice', '../../sluice.config') },
    ],
    ['the output of a build', { 'dist/app.js': from('rateLimiter', 'sluice', '../sluice.config') }],
    ['another library', { 'app.ts': from('rateLimiter', 'hono-rate-limiter') }],
    [
      'a file with another configuration',
      { 'app.ts': from('rateLimiter', 'sluice', './other.config') },
    ],
    [
      'a comment',
      {
        'app.ts': `/*\n${from('rateLimiter')}*/\n// ${from('rateLimiter').replaceAll('\n', '\n// ')}`,
      },
    ],
  ])('A call of %s does not make a configuration that of an app.', async (_, files) => {
    expect(await sentenceFor(files)).toMatch(/^Judged as a gateway: no file/)
  })
})
