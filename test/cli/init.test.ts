import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { bundles } from '../../cli/init/app.ts'
import { confirm } from '../../cli/init/confirm.ts'
import { oldNode } from '../../cli/init/init.ts'
import { mergePackage } from '../../cli/init/package-json.ts'
import { tarballOf } from '../../cli/init/source.ts'
import { COMPATIBILITY_DATE, gatewayFiles, SCRIPTS } from '../../cli/init/templates.ts'
import { bundle } from '../../cli/project/bundle.ts'
import { readWrangler } from '../../cli/project/wrangler-config.ts'
import { type CliProject, cliProject } from '../support/cli-project.ts'
import { root } from '../support/dev-command.ts'
import { blocksOf, pageAt } from '../support/pages.ts'

/** What the package.json of a Worker gets. */
const WORKER = { scripts: SCRIPTS, devDependencies: ['wrangler', 'vitest'] }

/** What `npm init -y && npm i sluice hono` writes. */
const MANIFEST = `{
  "name": "My Shop",
  "version": "1.0.0",
  "main": "index.js",
  "scripts": {
    "test": "echo \\"Error: no test specified\\" && exit 1"
  },
  "type": "commonjs",
  "dependencies": {
    "hono": "^4.0.0",
    "sluice": "file:../sluice.tgz"
  }
}
`
const FILES = [
  '.gitignore',
  'package.json',
  'sluice.built.ts',
  'sluice.config.ts',
  'src/worker.ts',
  'test/policies.test.ts',
  'tsconfig.json',
  'wrangler.jsonc',
]

let project: CliProject
beforeAll(async () => {
  project = await cliProject()
})
afterAll(() => project.remove())

/** The files of the project by name, without packages. */
async function files(): Promise<Record<string, string>> {
  const names = await readdir(project.folder, { recursive: true, withFileTypes: true })
  const found = names
    .filter((one) => one.isFile() && !one.parentPath.includes('node_modules'))
    .map((one) => join(one.parentPath, one.name).slice(project.folder.length + 1))
  const texts = found
    .sort()
    .map(async (name) => [name, await readFile(join(project.folder, name), 'utf8')])
  return Object.fromEntries(await Promise.all(texts))
}

const init = (...args: string[]) => project.sluice(['init', '--no-install', ...args])
const { wrangler, vitest, typescript } = JSON.parse(await readFile(`${root}package.json`, 'utf8'))
  .devDependencies as Record<string, string>

describe('npx sluice init', () => {
  beforeEach(() => project.write('package.json', MANIFEST))
  afterEach(async () => {
    for (const name of await readdir(project.folder)) {
      if (name !== 'node_modules') await rm(join(project.folder, name), { recursive: true })
    }
  })

  test('In an empty folder init writes all files and prints the next steps.', async () => {
    const { code, stdout, stderr } = await project.spawned(['init', '--no-install'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const written = await files()
    expect(Object.keys(written)).toEqual(FILES)
    for (const name of FILES) expect(stdout).toContain(`Wrote ${name}\n`)
    expect(stdout).toContain('npm install\n')
    expect(stdout).toContain('npm run dev')
    expect(written['src/worker.ts']!.trim().split('\n')).toHaveLength(3)
    expect(written['wrangler.jsonc']).toMatch(
      /^ {2}"name": "my-shop",\n {2}"main": "src\/worker\.ts",\n/m,
    )
    expect(JSON.parse(written['package.json']!)).toEqual({
      ...JSON.parse(MANIFEST),
      scripts: {
        dev: 'sluice dev',
        check: 'sluice check',
        deploy: 'sluice build && sluice check && wrangler deploy',
        test: 'vitest run',
      },
      devDependencies: { typescript, vitest, wrangler },
    })
    expect(written['.gitignore']).toBe('node_modules/\n.dev.vars\n.env*\n.wrangler/\n')
  })

  test('The written project passes check and explain.', async () => {
    await init()
    expect(await project.sluice(['check'])).toEqual({
      code: 0,
      stdout:
        '✓ policies\n✓ bindings\n✓ namespace (none)\n✓ build\nJudged as a gateway: src/worker.ts calls createGateway.\n',
      stderr: '',
    })
    const explained = await project.sluice([
      ...['explain', '--method', 'POST', '--path', '/login', '--ip', '192.0.2.1'],
    ])
    expect(explained.stdout).toMatch(/^yes +login +limit +5 per 1m, fixed-window$/m)
  })

  test('With --store durable-objects the project needs no database, and wrangler finds the object of its Worker.', async () => {
    const { code, stdout } = await init('--store', 'durable-objects')
    expect(code).toBe(0)
    expect(stdout).not.toMatch(/redis/i)
    expect((await files())['src/worker.ts']!.trim().split('\n')).toHaveLength(4)
    expect((await project.sluice(['check'])).stdout).toContain('✓ bindings\n')
    // test/package builds it with wrangler.
    const wrangler = await readWrangler(project.folder)
    expect(wrangler).toMatchObject({
      objects: [{ name: 'SLUICE_SUBJECT', class_name: 'SluiceSubject' }],
      classes: new Map([['SluiceSubject', 'sqlite']]),
    })
    const { exports } = await bundle(project.folder, wrangler)
    expect(exports).toContain('SluiceSubject')
  })

  test('An unknown store is an error, and nothing is written.', async () => {
    const before = await files()
    expect(await init('--store', 'postgres')).toMatchObject({
      code: 2,
      stderr:
        '--store: expected "redis" or "durable-objects", got "postgres". To list all options: npx sluice init --help\n',
    })
    expect(await files()).toEqual(before)
  })

  test('For a Worker that exists init prints the lines of its Durable Objects.', async () => {
    await project.write('wrangler.toml', 'name = "app"\nmain = "src/index.ts"\n')
    await project.write('src/index.ts', 'export default { fetch: () => new Response() }\n')
    const { stdout } = await init('--store', 'durable-objects')
    expect(stdout).toContain("  export { SluiceSubject } from 'sluice/durable-objects'\n")
    expect(stdout).toContain('  [[durable_objects.bindings]]\n  name = "SLUICE_SUBJECT"\n')
    expect(stdout).toContain('  [exports.SluiceSubject]\n  type = "durable-object"\n')
    expect(stdout).not.toContain('migrations')
    // The lines import the configuration, so there is no module to build.
    expect(JSON.parse((await files())['package.json']!).scripts.deploy).toBe(
      'sluice check && wrangler deploy',
    )
    await project.write('wrangler.jsonc', '{ "main": "src/index.ts" }')
    const printed = (await init('--store', 'durable-objects', '--force')).stdout
    expect(printed).toContain('  "durable_objects": {\n')
    expect(printed).toContain('  "exports": {\n    "SluiceSubject": {\n')
  })

  test('A Worker with migrations hears of migrations, and one with exports of its entry.', async () => {
    await project.write('src/index.ts', 'export default { fetch: () => new Response() }\n')
    const printed = async (fields: string) => {
      await project.write(
        'wrangler.jsonc',
        `{ "main": "src/index.ts", /* "main": 1 */ ${fields}, }`,
      )
      return (await init('--store', 'durable-objects', '--force')).stdout
    }
    const old = await printed('"migrations": [{ "tag": "v1", "new_classes": ["Old"] }]')
    expect(old).toContain('  // in "migrations":\n  {"tag":"sluice-1",')
    expect(old).not.toContain('exports"')
    const today = await printed(
      '"exports": { "Old": { "type": "durable-object", "storage": "sqlite" } }',
    )
    expect(today).toContain('  // in "exports":\n  "SluiceSubject": {\n')
    expect(today).not.toContain('migrations')
  })

  test('A configuration that is not JSON with comments is named, and nothing is written.', async () => {
    await project.write('wrangler.jsonc', '{ "main": "src/index.ts" "name": "app" }')
    const before = await files()
    expect(await init()).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^wrangler\.jsonc: .*JSON.* Nothing was written\.\n$/),
    })
    expect(await files()).toEqual(before)
  })

  test('In a project of the command line cf init writes no second configuration, and cf runs and deploys.', async () => {
    await project.write('src/index.ts', HONO)
    await project.write(
      'cloudflare.config.ts',
      "import { defineConfig } from 'cf/config'\nexport default defineConfig({\n  worker: {\n    entrypoint: './src/index.ts',\n  },\n})\n",
    )
    const { stdout } = await init('--store', 'durable-objects')
    expect(stdout).toContain('To apply the policies, add to src/index.ts:\n')
    expect(stdout).toContain('Sluice does not read cloudflare.config.ts. Its Worker needs')
    const written = await files()
    expect(Object.keys(written)).not.toContain('wrangler.jsonc')
    expect(JSON.parse(written['package.json']!).scripts).toEqual({
      check: 'sluice check',
      test: 'vitest run',
    })
    const unbound = await project.sluice(['check'])
    expect(unbound.stdout).toContain(
      'store: cloudflare.config.ts does not name SLUICE_SUBJECT and SluiceSubject. Sluice looks for',
    )
    await project.write('cloudflare.config.ts', '// SLUICE_SUBJECT: SluiceSubject')
    expect((await project.sluice(['check'])).stdout).toContain('✓ bindings\n')
    expect(await project.refusedDev()).toMatch(/^cloudflare\.config\.ts: .* npx cf dev$/)
  })

  test('A second init changes nothing.', async () => {
    await init()
    const before = await files()
    expect(await init()).toMatchObject({ code: 0, stderr: '' })
    expect(await files()).toEqual(before)
  })

  test('Without a terminal init lists the files that exist, and writes nothing.', async () => {
    await project.write('sluice.config.ts', 'export default {}\n')
    await project.write('src/worker.ts', 'export default {}\n')
    const before = await files()
    expect(await project.sluice(['init'], { input: 'y\n' })).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'Nothing was written, because these files exist: sluice.config.ts, src/worker.ts. To overwrite them: npx sluice init --force\n',
    })
    expect(await files()).toEqual(before)
  })

  test('With --force init overwrites its files, but not tsconfig.json.', async () => {
    await project.write('sluice.config.ts', 'export default {}\n')
    await project.write('tsconfig.json', '{}\n')
    expect(await init('--force')).toMatchObject({ code: 0, stderr: '' })
    const written = await files()
    expect(written['sluice.config.ts']).toContain('defineConfig')
    expect(written['tsconfig.json']).toBe('{}\n')
  })

  test('If one file cannot be written, init removes the others.', async () => {
    await writeFile(join(project.folder, 'test'), 'a file where init needs a folder')
    const before = await files()
    const { code, stderr } = await init()
    expect(code).toBe(1)
    expect(stderr).toMatch(/^Nothing was written: .*test.*\n$/)
    expect(await files()).toEqual(before)
    expect(await readdir(project.folder)).not.toContain('src')
  })

  test.each([
    [undefined, 'package.json: the file does not exist. To write one: npm init -y\n'],
    ['{', /^package\.json: .*JSON.* Nothing was written\.\n$/],
    ['[]', 'package.json: expected an object. Nothing was written.\n'],
    ['{"scripts":"x"}', 'package.json: scripts: expected an object. Nothing was written.\n'],
    [
      '{"dependencies":[]}',
      'package.json: dependencies: expected an object. Nothing was written.\n',
    ],
  ])('With the package.json %j init writes nothing.', async (text, message) => {
    if (text === undefined) await rm(join(project.folder, 'package.json'))
    else await project.write('package.json', text)
    const before = await files()
    const { code, stderr } = await init('--force')
    expect(code).toBe(1)
    if (typeof message === 'string') expect(stderr).toBe(message)
    else expect(stderr).toMatch(message)
    expect(await files()).toEqual(before)
  })

  /** A Worker as `npm create hono` makes it. */
  const HONO = "import { Hono } from 'hono'\nconst app = new Hono()\nexport default app\n"
  const JSONC = `{
  // "main": "src/other.ts",
  "name": "my-app", "main": "./src/index.ts", "compatibility_date": "2026-10-01"
}\n`
  const wranglers: [string, string][] = [
    ['wrangler.jsonc', JSONC],
    ['wrangler.json', '{"name":"my-app","main":"src/index.ts","compatibility_date":"2026-10-01"}'],
    [
      'wrangler.toml',
      'name = "my-app"\nmain = "src/index.ts"\ncompatibility_date = "2026-10-01"\n',
    ],
  ]

  /** Runs `sluice dev`, and checks that the policies apply. */
  /** The lines that init tells to add to a file. */
  const addedIn = (stdout: string, file: string) =>
    stdout
      .split(`To apply the policies, add to ${file}:\n\n`)[1]!
      .split(/\n(?=\S)/)[0]!
      .replace(/^ {2}/gm, '')

  async function expectPolicies() {
    const run = await project.dev()
    try {
      expect(run.output()).toContain('Sluice is running.')
      expect(run.output()).toContain('\nJudged as an app: src/index.ts calls rateLimiter.\n')
      const policy = async () => {
        const answer = await fetch(run.url, { headers: { 'CF-Connecting-IP': '192.0.2.1' } })
        return answer.headers.get('ratelimit-policy')
      }
      // Without the field the store was late. A refusal has it, too.
      await expect.poll(policy).toBe('"per-ip";q=10;w=10')
    } finally {
      process.kill(-run.pid, 'SIGINT')
      await run.ended
      await rm(join(project.folder, '.wrangler'), { recursive: true, force: true })
    }
  }

  test.each(wranglers)(
    'Beside a Hono app and a %s init writes the policies, and prints the lines to add.',
    async (name, text) => {
      await project.write(name, text)
      await project.write('src/index.ts', HONO)
      const { code, stdout, stderr } = await init('--force')
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      const written = await files()
      expect(Object.keys(written)).toEqual(
        [
          ...FILES.filter((one) => !/^(src|tsconfig|wrangler|sluice.built)/.test(one)),
          'src/index.ts',
          name,
        ].sort(),
      )
      expect(written).toMatchObject({ [name]: text, 'src/index.ts': HONO })
      expect(written['sluice.config.ts']).not.toContain('origin:')
      const [imports, use] = addedIn(stdout, 'src/index.ts').split('\n\n')
      await project.write('src/index.ts', `${imports}\n${HONO.replace('()\n', `()\n${use}\n`)}`)
      if (name === 'wrangler.jsonc') await expectPolicies()
      // The next step that init prints, and the first part of its script "deploy".
      expect(stdout).toContain('npm run check')
      expect(await project.sluice(['check'])).toMatchObject({ code: 0, stderr: '' })
      const again = await init()
      expect(again).toMatchObject({ code: 0, stderr: '' })
      expect(again.stdout).not.toContain('add to src/index.ts')
    },
    60_000,
  )

  test.each([
    ['createGateway', 'an origin', true],
    ['createSluice', 'no origin, as check accepts it', false],
  ])('Beside a Worker with %s init writes %s.', async (name, _, hasOrigin) => {
    await project.write('wrangler.toml', 'main = "src/index.ts"\n')
    await project.write(
      'src/index.ts',
      `import { ${name} } from 'sluice'\nimport config from '../sluice.config'\n${name}(config)\n`,
    )
    expect(await init()).toMatchObject({ code: 0 })
    const { 'sluice.config.ts': config } = await files()
    expect(config!.includes("origin: 'zone'")).toBe(hasOrigin)
    expect(config).not.toContain('accept')
    expect(await project.sluice(['check', '--policies'])).toMatchObject({ code: 0, stderr: '' })
  })

  test('Beside a Worker with policies of its own init writes no configuration, and says how to move them.', async () => {
    const code = `import { Hono } from 'hono'
import { rateLimiter } from 'sluice'
const app = new Hono()
app.use(rateLimiter({ policies: [{ name: 'mine', limit: 5, window: '1m' }] }))
export default app
`
    await project.write('wrangler.toml', 'main = "src/index.ts"\n')
    await project.write('src/index.ts', code)
    const { stdout } = await init()
    expect(stdout).toContain(
      'src/index.ts has policies of its own, so init wrote no sluice.config.ts.',
    )
    expect(stdout).toContain("  import config from '../sluice.config'\n")
    const written = await files()
    expect(Object.keys(written)).not.toContain('sluice.config.ts')
    expect(Object.keys(written)).not.toContain('test/policies.test.ts')
    // `check` and `deploy` would fail without a configuration, and there is no test to run.
    const { scripts, devDependencies } = JSON.parse(written['package.json']!)
    expect({ scripts, devDependencies }).toEqual({
      scripts: { ...JSON.parse(MANIFEST).scripts, dev: 'sluice dev' },
      devDependencies: { wrangler },
    })
    expect(stdout.slice(stdout.indexOf('Next steps:'))).toBe(`Next steps:

  npm install
  npm run dev                                        run the Worker with a Redis and a demo origin on this machine
  npx wrangler secret put UPSTASH_REDIS_REST_URL     name the database to deploy with
  npx wrangler secret put UPSTASH_REDIS_REST_TOKEN   and its token
`)
    expect((await project.sluice(['check'])).stdout).toContain(
      'the file does not exist. To write one: npx sluice init. If your code has the policies, move them there\n',
    )
  })

  test.each([
    ['express', 'rateLimiter(config)', "clientAddress: 'socket'"],
    ['fastify', 'fastifyRateLimiter(config)', "clientAddress: 'socket'"],
    ['@hono/node-server', 'rateLimiter(config)', "clientAddress: 'socket'"],
  ])(
    'In an app with %s init writes a configuration that check accepts, and prints the lines to add.',
    async (name, line, address) => {
      const manifest = { dependencies: { [name]: '*', hono: '*', sluice: '*' } }
      await project.write('package.json', JSON.stringify(manifest))
      const { stdout } = await init()
      expect(stdout).toContain(line)
      expect(stdout).toContain("  import config from './sluice.config.ts'\n")
      expect(stdout).toMatch(/REDIS_URL=redis:\S+ if you have a Redis, or:\n {2}npx sluice bridge/)
      const written = await files()
      expect(Object.keys(written)).toEqual(['.gitignore', 'package.json', 'sluice.config.ts'])
      expect(written['sluice.config.ts']).toContain(address)
      expect(JSON.parse(written['package.json']!)).toEqual({
        ...manifest,
        scripts: { check: 'sluice check' },
      })
      await project.write('server.js', addedIn(stdout, 'your app'))
      expect(await project.sluice(['check'])).toMatchObject({ code: 0, stderr: '' })
    },
  )

  test.each([
    ['proxy.ts', undefined],
    ['src/proxy.ts', 'src/app/page.tsx'],
    ['proxy.ts', 'src/lib/database.ts'],
  ])('In an app of Next.js init writes %s.', async (proxy, file) => {
    await project.write('package.json', '{"dependencies":{"next":"*"}}')
    if (file) await project.write(file, '')
    expect((await init()).stdout).not.toContain('REDIS_URL=')
    const written = await files()
    expect(written[proxy]).toContain('export const proxy = rateLimitProxy(config)')
    expect(written['sluice.config.ts']).toContain('forwardedFor: { trustedProxies: 1 }')
    expect(await project.sluice(['check'])).toMatchObject({ code: 0, stderr: '' })
  })

  test.each([
    ['next', 'next build', 'sluice/built/next'],
    ['express', 'vite build --ssr server.ts', 'sluice/built/node'],
    ['fastify', 'tsc --noEmit && esbuild server.ts --bundle', 'sluice/built/node'],
    ['@hono/node-server', 'tsdown', 'sluice/built'],
  ])(
    'In an app with %s that %j bundles init builds the configuration in the same script.',
    async (name, build, entry) => {
      const manifest = { scripts: { build }, dependencies: { [name]: '*', sluice: '*' } }
      await project.write('package.json', JSON.stringify(manifest))
      const { stdout } = await init()
      const prefixed = `sluice build && ${build}`
      expect(stdout).toContain(
        `Put sluice build into the script "build" of package.json: ${prefixed}`,
      )
      const written = await files()
      expect(JSON.parse(written['package.json']!).scripts.build).toBe(prefixed)
      expect(written['sluice.built.ts']).toContain('export default built(')
      const lines = written['proxy.ts'] ?? addedIn(stdout, 'your app')
      const module = name === 'next' ? './sluice.built' : './sluice.built.ts'
      expect(lines).toContain(` from '${entry}'\nimport config from '${module}'\n`)
      await project.write('server.ts', lines)
      expect((await project.sluice(['check'])).stdout).toContain('✓ build')
      expect((await init()).stdout).not.toContain('Put sluice build')
    },
  )

  test.each(['tsc', 'nest build', 'next-sitemap', 'echo vitest'])(
    'The script %j is no bundler.',
    (build) => expect(bundles(build)).toBe(false),
  )

  test('In an app of Next.js with a proxy init leaves it as it is, and says what to do.', async () => {
    await project.write('package.json', '{"dependencies":{"next":"*"}}')
    await project.write('middleware.ts', 'export const middleware = () => {}\n')
    const { stdout } = await init()
    expect(stdout).toContain('To apply the policies, wrap the function of middleware.ts')
    expect(Object.keys(await files())).not.toContain('proxy.ts')
  })

  test('A user of Node 20 hears that the tools need a newer one.', () => {
    expect(oldNode('20.20.2')).toBe(
      'This is Node 20.20.2. wrangler and Vitest need Node 22 or newer: install it before the next steps.',
    )
    expect(oldNode('22.12.0')).toBeUndefined()
  })

  test('Beside a Worker without Hono init prints lines for createSluice.', async () => {
    await project.write('wrangler.toml', 'main = "index.js"\n')
    await project.write('index.js', 'export default { fetch: () => new Response() }\n')
    const { code, stdout } = await init()
    expect(code).toBe(0)
    expect(stdout).toContain(`To apply the policies, add to index.js:

  import { createSluice } from 'sluice'
  import config from './sluice.config'

  const sluice = createSluice(config)
`)
    expect((await files())['test/policies.test.ts']).toContain("main: 'index.js'")
  })

  test.each([
    ['wrangler.jsonc', '{}', '"main": "src/worker.ts"'],
    ['wrangler.toml', 'main = "src/gone.ts"\n', 'main = "src/worker.ts"'],
  ])(
    'With a %s without a Worker init writes one, and prints its main.',
    async (name, text, line) => {
      await project.write(name, text)
      const { code, stdout } = await init('--force')
      expect(code).toBe(0)
      expect(stdout).toContain(`To run src/worker.ts, write into ${name}:\n\n  ${line}\n`)
      expect(await files()).toMatchObject({ [name]: text, 'src/worker.ts': expect.anything() })
    },
  )

  test.each([
    ['wrangler.jsonc', '{ "build": { "command": "make" } }', false],
    ['wrangler.toml', '[build]\ncommand = "make"\n', false],
    ['wrangler.toml', 'build.command = "make"\n', false],
    ['wrangler.jsonc', '{}', true],
    ['wrangler.toml', 'name = "build"\n', true],
  ])(
    'In a %s with %j a second build is not written, and the command is that of pnpm.',
    async (name, text, isNew) => {
      await project.write('pnpm-lock.yaml', '')
      await project.write(name, text)
      const { stdout } = await init('--force')
      expect(stdout).toContain('pnpm exec sluice build')
      expect(/^ {2}("build"|\[build\])/m.test(stdout)).toBe(isNew)
      expect(stdout.includes('  pnpm exec sluice build &&\n')).toBe(!isNew)
      expect(stdout).not.toMatch(/\bnpx /)
    },
  )

  test.each([
    ['pnpm', 'pnpm-workspace.yaml', {}, 'pnpm exec'],
    ['yarn', 'yarn.lock', { workspaces: ['packages/*'] }, 'yarn'],
    ['bun', 'bun.lock', { workspaces: ['packages/*'] }, 'bunx'],
    ['npm', 'package-lock.json', { workspaces: ['packages/*'] }, 'npx'],
  ])('In a workspace of %s init prints its commands.', async (name, file, fields, exec) => {
    await project.write(file, '')
    await project.write('package.json', JSON.stringify(fields))
    await project.write('packages/api/package.json', '{"scripts":{"dev":"vite"}}')
    const { stdout } = await project.sluice(['init', '--no-install'], { cwd: 'packages/api' })
    const steps = stdout.slice(stdout.indexOf('Next steps:'))
    expect(steps).toContain(`  ${name} install\n`)
    expect(steps).toContain(`  ${name} run deploy  `)
    expect(steps).toContain(`  ${exec} sluice dev  `)
    expect(steps).toContain(`  ${exec} wrangler secret put `)
    if (name !== 'npm') expect(steps).not.toMatch(/\bnp[mx] /)
  })

  test('The next steps replace scripts of the user.', async () => {
    const scripts = { dev: 'wrangler dev', test: 'jest', deploy: 'wrangler deploy --minify' }
    await project.write('package.json', JSON.stringify({ scripts }))
    const { stdout } = await init()
    expect(stdout).toContain('Kept the script "dev" of package.json. Sluice\'s is: sluice dev\n')
    const commands = [...stdout.matchAll(/^ {2}(n.*?)(?: {3}|$)/gm)].map(([, command]) => command)
    expect(commands).toEqual([
      'npm install',
      ...['npx sluice dev', 'npx vitest run', 'npm run check'],
      ...['URL', 'TOKEN'].map((name) => `npx wrangler secret put UPSTASH_REDIS_REST_${name}`),
      'npm run deploy',
    ])
  })

  test('A folder in the place of a file is named, and nothing is written.', async () => {
    await mkdir(join(project.folder, 'sluice.config.ts'))
    const before = await files()
    const { code, stderr } = await init('--force')
    expect(code).toBe(1)
    expect(stderr).toMatch(/^Nothing was written: \/.*\/sluice\.config\.ts: EISDIR.*\n$/)
    expect(await files()).toEqual(before)
  })

  test('Lines that .gitignore has are not added again.', async () => {
    await project.write('.gitignore', '/dist\nnode_modules\n.env*')
    await init()
    const { '.gitignore': text } = await files()
    expect(text).toBe('/dist\nnode_modules\n.env*\n.dev.vars\n.wrangler/\n')
  })

  test('The files have the line ends of the project.', async () => {
    await project.write('package.json', MANIFEST.replaceAll('\n', '\r\n'))
    await project.write('.gitignore', 'dist\r\n')
    expect((await init()).code).toBe(0)
    const { 'sluice.built.ts': _, ...written } = await files()
    expect(Object.keys(written)).toHaveLength(FILES.length - 1)
    for (const text of Object.values(written)) expect(text).not.toMatch(/(?<!\r)\n/)
    expect((await init()).stderr).not.toContain('wrangler.jsonc')
  })

  test('init installs the missing packages, and reports an installation that fails.', async () => {
    // A package manager that records its arguments.
    const bin = join(project.folder, 'bin')
    await mkdir(bin)
    await symlink(process.execPath, join(bin, 'node'))
    const npm = (code: number) =>
      writeFile(join(bin, 'npm'), `#!/bin/sh\necho "$@" >> "${bin}/calls"\nexit ${code}\n`, {
        mode: 0o755,
      })
    await npm(1)
    const env = { PATH: `${bin}:/usr/bin:/bin` }
    expect(await project.sluice(['init'], { env })).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(
        /Next steps:\n\n {2}npm install\n {2}npx sluice build +write sluice\.built\.ts\n {2}npm run dev /,
      ),
      stderr: 'The files are written, but "npm install" failed.\n',
    })
    await project.write('package.json', MANIFEST)
    await project.write('pnpm-lock.yaml', '')
    expect(await project.sluice(['init'], { env })).toMatchObject({
      code: 1,
      stderr: 'The files are written, but "pnpm install" failed: spawn pnpm ENOENT.\n',
    })
    await rm(join(project.folder, 'pnpm-lock.yaml'))
    await npm(0)
    await project.write('package.json', MANIFEST)
    const { code, stdout } = await project.sluice(['init'], { env })
    expect(code).toBe(0)
    expect(stdout).toMatch(/\nA notice about install scripts .* is harmless: /)
    expect(stdout).toContain(
      `Installing wrangler@${wrangler}, vitest@${vitest}, typescript@${typescript} …`,
    )
    expect(stdout).not.toContain('npm install\n')
    expect(await readFile(join(bin, 'calls'), 'utf8')).toBe('install\ninstall\n')
  })
})

test('A command that npm has installed from a tarball adds this tarball, and one from a registry its version.', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-init-'))
  const modules = join(folder, 'npx/node_modules')
  await mkdir(modules, { recursive: true })
  const program = join(modules, 'sluice/dist/cli.js')
  const lock = (resolved: string) =>
    writeFile(
      join(modules, '.package-lock.json'),
      JSON.stringify({ packages: { 'node_modules/sluice': { resolved } } }),
    )
  expect(await tarballOf(program)).toBeUndefined()
  await lock('https://registry.example/sluice.tgz')
  expect(await tarballOf(program)).toBeUndefined()
  await lock('file:../sluice-0.1.0.tgz')
  const source = await tarballOf(program)
  expect(source).toBe(`file:${join(folder, 'sluice-0.1.0.tgz')}`)
  const { text, added } = mergePackage('{}', { source })
  expect(JSON.parse(text).dependencies.sluice).toBe(source)
  expect(added).toContain(`sluice@${source}`)
  await rm(folder, { recursive: true })
})

describe('the question of init', () => {
  const answered = (answer: string | undefined) => {
    const input = Object.assign(new PassThrough(), { isTTY: true })
    const output = Object.assign(new PassThrough(), { isTTY: true })
    if (answer === undefined) input.end()
    else input.write(`${answer}\n`)
    const done = confirm(['a.ts', 'b.ts'], input, output)
    return done.finally(() => {
      expect(String(output.read())).toContain(
        'These files exist: a.ts, b.ts. Overwrite them? (y/N) ',
      )
    })
  }

  test.each(['y', 'Y', 'yes', ' yes '])('The answer %j continues.', async (answer) => {
    await answered(answer)
  })

  test.each(['n', '', 'yesterday', undefined])('The answer %j writes nothing.', async (answer) => {
    await expect(answered(answer)).rejects.toThrow('Nothing was written.')
  })
})

describe('the package.json that init writes', () => {
  test('The indentation, the line ends and the order of fields stay.', () => {
    const text = '{\r\n\t"private": true,\r\n\t"scripts": {\r\n\t\t"lint": "x"\r\n\t}\r\n}'
    const merged = mergePackage(text, WORKER).text
    expect(merged).toMatch(/^\{\r\n\t"private": true,\r\n\t"scripts": \{\r\n\t\t"lint": "x",\r\n/)
    expect(merged.endsWith('}')).toBe(true)
    expect(merged.replaceAll('\r\n', '')).not.toContain('\n')
  })

  test('The scripts and packages of the user stay, and init reports the scripts.', () => {
    const merged = mergePackage(
      JSON.stringify({
        scripts: { dev: 'vite', test: 'vitest run' },
        dependencies: { zod: '1.0.0', wrangler: '4.0.0' },
        devDependencies: { vitest: '^3.0.0' },
      }),
      WORKER,
    )
    expect(merged.kept).toEqual(['dev'])
    const after = JSON.parse(merged.text)
    expect(after.scripts).toMatchObject({ dev: 'vite', test: 'vitest run', check: 'sluice check' })
    expect(Object.keys(after.dependencies)).toEqual(['sluice', 'wrangler', 'zod'])
    expect(after.dependencies.wrangler).toBe('4.0.0')
    expect(after.devDependencies).toEqual({ vitest: '^3.0.0' })
  })
})

test('The compatibility date of init is the one of this repository.', async () => {
  const toml = await readFile(`${root}wrangler.toml`, 'utf8')
  expect(toml).toContain(`compatibility_date = "${COMPATIBILITY_DATE}"`)
})

test('The tutorial shows the configuration that init writes.', () => {
  const shown = blocksOf(pageAt('docs/tutorial.md')).find(({ name }) => name === 'init')
  expect(shown?.code).toBe(gatewayFiles('limiter', false)['sluice.config.ts'])
})
