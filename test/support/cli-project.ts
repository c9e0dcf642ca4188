/** Projects outside of the repository, with `sluice` installed as a package: the command and the library are bundles. */
import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { freePort } from 'sluice-upstash-bridge'
import { pageModule } from '../../dev/dashboard/bundle.ts'
import { root } from './dev-command.ts'

/** Bundles the command and the library into a package `sluice`. */
async function buildPackage(folder: string): Promise<void> {
  const bundled = { bundle: true, format: 'esm' } as const
  await build({
    ...bundled,
    entryPoints: { cli: join(root, 'dev/cli/main.ts') },
    outdir: join(folder, 'dist'),
    platform: 'node',
    target: 'node20',
    splitting: true,
    external: ['wrangler', 'miniflare', 'esbuild'],
    plugins: [
      {
        // As in tsdown.config.ts.
        name: 'dashboard-page',
        setup(build) {
          build.onLoad({ filter: /\/dashboard\/page-files\.ts$/ }, async () => ({
            contents: await pageModule(),
            loader: 'js',
          }))
        },
      },
    ],
    banner: {
      js: "import { createRequire as r } from 'node:module'; const require = r(import.meta.url);",
    },
  })
  await build({
    ...bundled,
    entryPoints: { index: join(root, 'src/index.ts') },
    outdir: join(folder, 'dist'),
    target: 'es2022',
  })
  await cp(join(root, 'packages/upstash-bridge/src/guard'), join(folder, 'dist/guard'), {
    recursive: true,
  })
  const manifest = { name: 'sluice', type: 'module', exports: './dist/index.js' }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
}

export interface RunOptions {
  /** Written to the standard input. */
  input?: string | Uint8Array
  env?: Record<string, string>
  /** A folder of the project. Defaults to its root. */
  cwd?: string
}

/** Makes an empty folder in which `sluice`, Hono and wrangler are installed. */
export async function cliProject() {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'sluice-cli-')))
  const modules = join(folder, 'node_modules')
  await buildPackage(join(modules, 'sluice'))
  await symlink(join(root, 'node_modules/wrangler'), join(modules, 'wrangler'))
  await symlink(join(root, 'node_modules/hono'), join(modules, 'hono'))
  // A Redis that was downloaded before.
  await symlink(join(root, 'node_modules/.cache'), join(modules, '.cache')).catch(() => {})
  await mkdir(join(modules, '.bin'))
  await symlink('../sluice/dist/cli.js', join(modules, '.bin/sluice'))

  /** Starts the command, in a process group of its own. */
  function start(args: string[], { env = {}, cwd = '.' }: RunOptions = {}) {
    const child = spawn(process.execPath, [join(modules, '.bin/sluice'), ...args], {
      cwd: join(folder, cwd),
      env: { ...process.env, ...env },
      detached: true,
    })
    child.stdin.on('error', () => {}) // a command that fails or stops does not read all of its input
    return child
  }

  /** Runs the command until it exits. */
  async function sluice(args: string[], options: RunOptions = {}) {
    const child = start(args, options)
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk) => (stdout += chunk))
    child.stderr.on('data', (chunk) => (stderr += chunk))
    child.stdin.end(options.input ?? '')
    const code = await new Promise((resolve) => child.once('close', resolve))
    return { code, stdout, stderr }
  }

  let running: number | undefined

  /** Runs `sluice dev`, and waits until everything is up or the process exits. */
  async function dev(env: Record<string, string> = {}) {
    const port = env.PORT ?? String(await freePort())
    const child = start(['dev'], { env: { PORT: port, ...env } })
    running = child.pid
    let output = ''
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
    const up = new Promise<void>((resolve) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (chunk) => {
          output += chunk
          if (output.includes('Ctrl-C stops everything.')) resolve()
        })
      }
    })
    await Promise.race([up, ended])
    return { url: `http://127.0.0.1:${port}`, pid: child.pid!, ended, output: () => output }
  }

  return {
    folder,
    start,
    sluice,
    dev,
    /** Writes a file, with its folder. */
    async write(name: string, text: string) {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), text)
    },
    /** Kills the last `sluice dev`. */
    kill() {
      try {
        if (running) process.kill(-running, 'SIGKILL')
      } catch {} // it has ended
    },
    remove: () => rm(folder, { recursive: true }),
  }
}

export type CliProject = Awaited<ReturnType<typeof cliProject>>
